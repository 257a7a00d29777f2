"""Every figure, page and table from any valid table: made, or refused in a sentence.

`EPOCHWATT_EXAMPLES=500 pytest tests/unit/test_any_table.py` looks at so many tables of each.
"""

import csv
import json
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

from epochwatt.analysis.advice import write_advice
from epochwatt.analysis.collect_study import export_tables, read_epochs
from epochwatt.analysis.energy_parts import write_energy_parts
from epochwatt.analysis.pairs import compare_pairs
from epochwatt.claims.beside_paper import compare_numbers
from epochwatt.claims.check_claims import check_claims
from epochwatt.columns import ROUND_COLUMNS
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.figures import pairs
from epochwatt.figures.common import style
from epochwatt.figures.common.job import Job
from epochwatt.figures.draw_figure import draw_figure
from epochwatt.figures.federated.draw import draw_rounds
from epochwatt.figures.federated.names import RULES
from epochwatt.figures.federated.names import stems as federated_stems
from epochwatt.figures.fulcrum.draw import WAYS, draw_schedules
from epochwatt.figures.fulcrum.names import REPLANNING, stems
from epochwatt.figures.powertrain.draw import draw_powertrain
from epochwatt.figures.roofline import rooflines, tuning
from epochwatt.figures.tables import scores, tabulate_text_only
from epochwatt.pages.printed import write_printed
from epochwatt.pages.site import Results, write_index, write_pairs
from epochwatt.pages.summary import write_summary
from epochwatt.prediction.transfer.names import TABLES
from epochwatt.roofline.collect import place_points
from epochwatt.roofline.explain import write_explanations
from epochwatt.roofline.fits import FitRow, write_fits
from epochwatt.roofline.tuning import TUNED_COLUMNS
from epochwatt.schedule.changing import SLOT_COLUMNS
from epochwatt.schedule.played import ARRIVAL_COLUMNS, LATENCY_COLUMNS, POWER_COLUMNS
from epochwatt.schedule.solver_means import write_summary as summarise_schedules
from epochwatt.schedule.study import SCORE_COLUMNS
from epochwatt.study.config import Plotting
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.tables import write_table
from tests.unit import any_table
from tests.unit.any_table import ODD, Cells, named_rows, rows_of, shapes, write_csv, write_runs

ROOT = Path(__file__).resolve().parents[2]
PLOTTING = validated(Plotting, read_yaml(ROOT / "config/plotting.yaml"), "plotting.yaml")
PUBLISHED, TWIN = str(ROOT / "config/published"), str(ROOT / "config/twin")
PALETTE = dict(zip((*ODD, "own"), PLOTTING.spare * 3, strict=False)) | PLOTTING.palette
TITLES = {"lenet": 'LeNet-5 "größer" &amp; $x_1^2$ {a} %s', "agx": "AGX $\\frac{$ $"}
MEASURED = ("host", "jetson", "fake")

EXAMPLES = int(os.environ.get("EPOCHWATT_EXAMPLES", "4" if os.environ.get("THOROUGH") else "2"))
looked_at = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 10,
    database=None,
    deadline=None,
    phases=(Phase.generate,),  # a smaller example would take minutes to find
    suppress_health_check=list(HealthCheck),
)


def any_shape(*backends):
    """Return the decorator that gives a test shapes of tables."""

    def decorate(test):
        return looked_at(given(shape=shapes(backends=backends or ("twin", *MEASURED)))(test))

    return decorate


@pytest.fixture(scope="module")
def style_file(tmp_path_factory):
    """The project's style with few pixels."""
    path = tmp_path_factory.mktemp("style") / "paper.mplstyle"
    text = (ROOT / "config/paper.mplstyle").read_text("utf-8")
    path.write_text(text.replace("savefig.dpi: 200", "savefig.dpi: 40"), "utf-8")
    return str(path)


@contextmanager
def made():
    """Yield an empty folder; whatever is made in it must be right, unless it is refused."""
    with TemporaryDirectory() as name, mock.patch.object(style, "save", saved):
        try:
            yield Path(name)
        except EpochwattError as error:  # a sentence; `--hypothesis-show-statistics` counts them
            event(f"refused: {error.problem[:60]}")
        for path in Path(name).rglob("*.vl.json"):
            strict_json(path.read_text("utf-8"))
        for path in Path(name).rglob("*.html"):
            check_page(path.read_text("utf-8"))


SAVE = style.save


def saved(figure, stem, rows, columns=()):
    """Save a figure as always; its axes must end somewhere and its files must be there."""
    SAVE(figure, stem, rows, columns)
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all(), stem
    assert Path(f"{stem}.svg").read_text("utf-8").rstrip().endswith("</svg>")
    assert Path(f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        assert len(list(csv.DictReader(handle, strict=True))) == len(rows)


def strict_json(text):
    """Read JSON as a browser does: without NaN and Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


class Page(HTMLParser):
    """The scripts of a page, and what came out of names that were not escaped."""

    def __init__(self):
        super().__init__()
        self.scripts, self.escaped, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.escaped += [name for name, _ in attrs if name == "onerror"]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def check_page(text):
    page = Page()
    page.feed(text)
    page.close()
    assert not page.escaped
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "<b>&amp; $x" not in outside
    for script in map(str.strip, page.scripts):
        if script.startswith(("{", "[")):
            strict_json(script)


# -- figures --------------------------------------------------------------------------------------


def job_of(figure, shape, folder, style_file):
    """Return the job of a figure of the papers, drawn from any runs that its settings let in."""
    entry, cells = PLOTTING.figures[figure], Cells(shape)
    records_read = "records" in entry.reads
    paths, records = write_runs(shape, folder, entry.where.items(), with_records=records_read)
    missing = []
    if shape.seed % 3 == 0:
        gone = any_table.factors_of(cells, entry.where)
        missing = [{**gone, "run": "gone", "reason": "out of memory; $ & <b> 100 %"}]
    reads = {"idle": "", "predictions": ""}
    if "idle" in entry.reads:
        reads["idle"] = any_table.write_idle(shape, folder)
    if "predictions" in entry.reads:
        reads["predictions"] = any_table.write_predictions(shape, paths, folder)
    return Job(
        **{"figure": figure, "backend": shape.backend, "draw": entry.draw, "titles": TITLES},
        **{"parameters": entry.parameters, "paper": entry.paper, "palette": PALETTE},
        panels={name: panel.model_dump() for name, panel in entry.panels.items()},
        **{"folder": str(folder / "figures"), "epochs": paths, "style": style_file},
        **{"published": PUBLISHED, "twin": TWIN, "missing": missing},
        records=records if records_read or shape.backend != "twin" else {},
        lacking=["a $ study"] if shape.odd else [],
        **reads,
    )


ONE_OF_EACH_KIND = {entry.draw: figure for figure, entry in PLOTTING.figures.items()}.values()


@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(figure, marks=[] if figure in ONE_OF_EACH_KIND else pytest.mark.thorough)
        for figure in PLOTTING.figures
    ],
)
@any_shape()
def test_figure_of_the_papers(figure, style_file, shape):
    with made() as folder:
        draw_figure(job_of(figure, shape, folder, style_file))


@any_shape("host", "jetson", "twin")
def test_rooflines(style_file, shape):
    origin = {"host": "measured", "jetson": "public", "twin": "simulated"}[shape.backend]
    with made() as folder:
        fits, points = any_table.write_roofs(shape, folder, origin)
        peaks, drawn = str(ROOT / "config/rooflines/peaks.csv"), str(folder / "figures")
        rooflines.draw(fits, points, peaks, style_file, drawn, origin, TITLES)


def named_tables(shape, folder, tables, needed, **choices):
    """Write tables, name -> columns, of any cells; return their paths by name."""
    cells, n_rows = Cells(shape), min(shape.n_things, 3) * shape.few if shape.seed % 7 else 0
    paths = {}
    for name, columns in tables.items():
        of_table = {key: some for key, some in choices.items() if key in columns}
        rows = named_rows(columns, cells, n_rows, needed, **of_table)
        paths[name] = write_csv(folder / f"{name}.csv", columns, rows)
    return paths


@any_shape()
def test_tuning(style_file, shape):
    choices = {
        **{"provenance": ("simulated", "public"), "task": ("train", "infer")},
        **{"aim": ("maxn", "least_energy", "least_energy_within_2")},
        "power_scope": ("module", "gpu"),
    }
    with made() as folder:
        needed = ("slower_pct", "saved_pct")
        paths = named_tables(shape, folder, {"tuning": TUNED_COLUMNS}, needed, **choices)
        tuning.draw_tuning(paths["tuning"], style_file, str(folder / "tuned"))


@any_shape()
def test_powertrain(style_file, shape):
    names = ODD if shape.odd else ("pt-resnet-imagenet", "pt-mobilenet-gld", "own-net")
    choices = {
        **{"provenance": ("simulated", "public"), "group": ("learning-curve", "all-modes")},
        "method": ("powertrain", "powertrain_scratch", "powertrain_all", "maxn", "own", "observed"),
        **{"reference": ("", *names), "workload": names, "device": names, "draw": ("0", "1")},
        **{"target": ("time_s", "power_w"), "n_profiled": ("10", "50", "4368")},
        **{"limit_w": ("20", "30"), "minibatches": ("1000",)},
    }
    needed = ("mape_pct", "over_pct", "over_1w_pct", "excess_area_pct", "n_limits", "n_answered")
    needed += ("median_pct", "p90_pct", "low_pct", "high_pct", "n_draws", "minutes")
    numbers = str(ROOT / "config/published/powertrain/numbers.csv")
    with made() as folder:
        tables = named_tables(shape, folder, TABLES, needed, **choices)
        modes = named_rows(("power_w", "time_s"), Cells(shape), shape.few)
        modes = write_csv(folder / "modes.csv", ("power_w", "time_s"), modes)
        draw_powertrain(tables.values(), numbers, modes, style_file, str(folder / "figures"))
        used = [tables[name] for name in ("errors", "penalties", "example")]
        compare_numbers(numbers, used, str(folder / "numbers.csv"))


@any_shape()
def test_fulcrum(style_file, shape):
    choices = {
        "provenance": ("simulated", "public", "measured"),
        "jobs": ("train", "infer", "train_and_infer", "two_infer"),
        **dict.fromkeys(("device", "train", "infer"), ODD if shape.odd else ("resnet", "bert")),
        "solver": ("exhaustive", "gmd", "gmd_verified", "random_10", "random_50", "maxn", "own"),
        **{"plan": ("", "x"), "arrivals": ("constant", "poisson", "trace")},
        "percentile": ("0", "50", "99", "100"),
    }
    needed = ("n_profiles", "kept_pct", "max_power_w", "max_latency_s", "latency_s")
    columns = {"scores": SCORE_COLUMNS, "power": POWER_COLUMNS, "latencies": LATENCY_COLUMNS}
    with made() as folder:
        tables = named_tables(
            shape, folder, {**columns, "arrivals": ARRIVAL_COLUMNS}, needed, **choices
        )
        drawn = [f"{folder}/figures/{stem}" for stem in stems(True, True)]
        draw_schedules([tables[n] for n in columns], style_file, drawn)
        arrivals = Path(tables["arrivals"])
        summarise_schedules(Path(tables["scores"]), arrivals, folder / "summary.csv")


@any_shape()
def test_replanning(style_file, shape):
    cells = Cells(shape)
    rows = [
        ["simulated", "orin", ODD[0], ODD[1], rates, "steady", 3, policy, 60 * t]
        + [cells.number() for _ in range(5)]
        for rates in ODD[: 1 + shape.n_things % 3]
        for policy in WAYS
        for t in range(shape.few)
    ]
    with made() as folder:
        table, stem = folder / "changing-slots.csv", f"{folder}/figures/twin/{REPLANNING}"
        write_table(table, "slots", SLOT_COLUMNS, rows)
        draw_schedules([str(table)], style_file, [stem])


@any_shape()
def test_federated(style_file, shape):
    names = [column.name for column in ROUND_COLUMNS]
    names += [
        n.replace("_pct", end) for n in names for end in ("_p10_pct", "_p90_pct") if "_pct" in n
    ]
    columns = ("provenance", "device", "board", "mode", "power_w", *names)
    choices = {
        **{"provenance": ("simulated",), "rule": tuple(RULES), "data": ("equal", "dirichlet_0.5")},
        **{"boards": ("10", "1000"), "waiting_factor": ("1", "0.5"), "deadline": ("0.8", "1", "2")},
        **dict.fromkeys(("device", "board"), ODD if shape.odd else ("nano", "agx")),
    }
    needed = ("around_s", "fit_s", "end_s", "energy_pct")
    with made() as folder:
        tables = dict.fromkeys(("timeline", "deadlines", "summary"), columns)
        tables = named_tables(shape, folder, tables, needed, **choices)
        drawn = [f"{folder}/figures/{stem}" for stem in federated_stems()]
        draw_rounds(tables.values(), style_file, drawn)


# -- tables and pages -----------------------------------------------------------------------------


@any_shape()
def test_exports_keep_names_and_numbers(shape):
    with made() as folder:
        paths, _ = write_runs(shape, folder)
        export_tables(paths, {"run-0": "x <b>"}, f"{folder}/all.csv", f"{folder}/runs.csv")
        written = [row for path in paths for row in read_rows(path)]
        exported = read_epochs([folder / "all.csv"])
        for name in ("model", "device", "instance", "dataset", "storage", "power_mode"):
            assert exported[name].tolist() == [row[name] for row in written]
        assert exported.e2e_s.tolist() == pytest.approx([row["e2e_s"] for row in written])


@any_shape(*MEASURED)
def test_advice_and_parts_of_energy(shape):
    with made() as folder:
        paths, records = write_runs(shape, folder, with_records=True)
        write_advice(paths, f"{folder}/advice.csv")
        scopes, idle = any_table.write_energies(shape, paths), any_table.write_idle(shape, folder)
        write_energy_parts(paths, scopes, idle, records, f"{folder}/parts.csv")


@any_shape(*MEASURED)
def test_claims(shape):
    modes = {name: {"cores": 2, "cpu_mhz": 1e3, "gpu_mhz": 5e2, "emc_mhz": 8e2} for name in "abg"}
    with made() as folder:
        paths, records = write_runs(shape, folder, with_records=True)
        idle, table = any_table.write_idle(shape, folder), f"{folder}/claims.csv"
        of_devices = dict.fromkeys(any_table.DEVICES, modes)
        texts = f"{folder}/comparisons.csv", f"{folder}/claims.txt"
        backends = [shape.backend]
        check_claims(
            paths, idle, backends, records, of_devices, [], [], TITLES, table, *texts, ROOT
        )


@any_shape()
def test_summary(shape):
    with made() as folder:
        paths, _ = write_runs(shape, folder)
        claims, gone = any_table.write_claims(shape, folder), [{"run": "x", "reason": ODD[0]}]
        write_summary(paths, claims, gone, TITLES, f"{folder}/summary.txt")


def explained(shape, paths, folder):
    """Write points.csv and explanations.csv of runs, in modes that have a roof or have none."""
    kernels = {"name": ["a", "b"], "kind": ["gemm", "elementwise"], "phase": ["forward"] * 2}
    kernels |= {f"{n}_{p}": [1e6, 1e5] for n in ("flops", "bytes", "elements")
                for p in ("fixed", "per_sample")}  # fmt: skip
    counts = {"schema_version": 1, "model": "own", "parameters": 5, "input": [1, 28, 28]}
    (folder / "counts.json").write_text(json.dumps({**counts, "kernels": kernels}), "utf-8")
    cells, runs, fits = Cells(shape), [], []
    for path in paths:
        first = read_rows(path)[0]
        origin = {"fake": "fake", "twin": "simulated"}.get(shape.backend, "measured")
        place = {"provenance": origin, "device": first["device"], "precision": first["precision"]}
        columns = {**place, "instance": first["instance"], "workload": first["model"], "cores": 2}
        columns |= {"task": first["task"], "batch_size": first["batch_size"]}
        run = {"run": first["run"], "epochs": path, "counts": f"{folder}/counts.json"}
        runs.append({**run, **columns})
        for processor in ("cpu", "gpu"):
            same = {**place, "processor": processor, "cores": 2, "cached_bytes_per_s": None}
            same |= {"instance": ""}
            here = rows_of(FitRow, cells, 2, **same)
            fits += [replace(here[0], cpu_mhz=None, gpu_mhz=None, emc_mhz=None), here[1]]
    write_fits(folder / "fits.csv", fits)
    place_points(runs, f"{folder}/points.csv")
    write_explanations(runs, f"{folder}/fits.csv", f"{folder}/explanations.csv")


@any_shape()
def test_numbers_of_the_text(shape):
    places = {
        "setup": ["sigmetrics2023"],
        "device": ["agx", "orin"],
        "power_mode": ["e", "f", "g", "gpu114"],
        "num_workers": [0, 4, 8],
    }
    with made() as folder:
        paths, _ = write_runs(shape, folder, places.items())
        stem = f"{folder}/text_only"
        tabulate_text_only.write(paths, [], shape.backend, PUBLISHED, TWIN, stem)


@any_shape(*MEASURED)
def test_pairs(style_file, shape):
    with made() as folder:
        several = replace(shape, n_things=max(shape.n_things, 2))
        paths, _ = write_runs(several, folder, with_records=True)
        runs = [Path(path).stem for path in paths]
        sides = list(zip(runs[::2], runs[1::2], strict=False))
        tables = f"{folder}/pairs.csv", f"{folder}/verdicts.csv"
        compare_pairs(paths, sides, "container", 2.0, f"{folder}/measured", *tables)
        pairs.draw_pairs(*tables, style_file, f"{folder}/differences")
        write_pairs(*tables, f"{folder}/differences.svg", "", f"{folder}/index.html")


@any_shape()
def test_scores_of_predictions(shape):
    group = ("board_group", "device", "instance", "storage", "num_workers", "batch_size", "setup")
    group += ("target", "method", "learned_from", "networks")
    minutes = tuple(f"board_minutes_{part}" for part in ("low", "median", "high"))
    beside = (*group, "n", "median_pct", "p90_pct", "worst_pct", "by_construction")
    beside += (*minutes, "left_out", *(f"error_ratio_to_paper_q{q}" for q in (25, 50, 75)))
    counts = (*group, "modes", "statistic", "value", "n_subsets", "n_predictions")
    counts += ("published", "n_published", "criterion", "agrees", "is_paper")
    choices = {
        **{"board_group": ("0", "1"), "num_workers": ("0", "4"), "is_paper": ("True", "False")},
        "target": ("time_s", "power_w", "energy_wh"),
        "method": ("paper", "physical", ODD[0]),
        "learned_from": ("every subset of four", "designed: a b"),
        "by_construction": ("True", "False"),
    }
    with made() as folder:
        tables, needed = (
            {"scores": beside, "statistics": counts},
            ("median_pct", "p90_pct", *minutes),
        )
        named_tables(shape, folder, tables, needed, **choices)
        with mock.patch.object(scores, "STYLE", str(ROOT / scores.STYLE)):
            scores.draw_scores(str(folder), shape.backend, {}, str)
        scores.write_page(str(folder), shape.backend, f"{folder}/scores.html")


@any_shape()
def test_index(style_file, shape, monkeypatch):
    figure = "fig08"
    entry = PLOTTING.figures[figure]
    with made() as folder, monkeypatch.context() as patch:
        patch.chdir(folder)
        Path("results").mkdir()
        job = replace(job_of(figure, shape, Path(), style_file), folder="results/figures")
        draw_figure(job)
        _, records = write_runs(shape, Path("all"), with_records=True)
        paths = sorted(map(str, Path("all").glob("*.csv")))
        export_tables(paths, {}, "results/epochs.csv", "results/runs.csv")
        measured = paths if shape.backend != "twin" else []
        write_advice(measured, "results/advice.csv")
        scopes = any_table.write_energies(shape, measured)
        write_energy_parts(measured, scopes, "", records, "results/parts.csv")
        explained(shape, paths, Path())
        inputs = {name: f"results/{name}.csv" for name in ("runs", "advice")}
        inputs |= {"energy_parts": "results/parts.csv", "validation": "", "published": PUBLISHED}
        inputs |= {
            "claims": any_table.write_claims(shape, Path()),
            "printed": "results/printed.csv",
        }
        write_printed("results/epochs.csv", "", PUBLISHED, TWIN, inputs["printed"])
        inputs |= {"explanations": "explanations.csv" if measured else ""}
        stem = f"results/figures/{figure}"
        drawn = {"stem": stem, "backend": shape.backend, "paper": entry.paper, "title": ODD[0]}
        drawn |= {"section": entry.section, "caption": ODD[1], "claims": [], "words": list(ODD)}
        inputs |= {"epochs": "results/epochs.csv"}
        Path("a.yaml").write_text('title: "</script><img src=x onerror=a>"\n', "utf-8")
        Path("vega.js").write_text("", "utf-8")
        more = {"records": records, "specs": [f"{stem}.vl.json"], "config": ["a.yaml"]}
        more |= {"vega": "vega.js"}
        more |= {"excluded": [{"run": "x", "reason": ODD[0]}]}
        more |= {"figures": [drawn], "numbers": [f"{stem}.csv"]}
        results = Results(tables=inputs, titles=TITLES, palette=PALETTE, **more)
        write_index(results, "results/index.html")
