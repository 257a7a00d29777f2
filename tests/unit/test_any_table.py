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
from types import SimpleNamespace
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
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.figures import front, pairs
from epochwatt.figures.common import style
from epochwatt.figures.common.job import Job
from epochwatt.figures.draw_figure import draw_figure
from epochwatt.figures.fulcrum.draw import WAYS, draw_schedules
from epochwatt.figures.fulcrum.names import REPLANNING, stems
from epochwatt.figures.powertrain.draw import draw_powertrain
from epochwatt.figures.roofline import rooflines, tuning
from epochwatt.figures.tables import scores, sweep_scores, tabulate_text_only
from epochwatt.figures.tables.sweep_scores import draw_sweep_scores
from epochwatt.pages.printed import write_printed
from epochwatt.pages.site import Results, write_index, write_pairs
from epochwatt.pages.summary import write_summary
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.evaluation import sweep_scores as sweep_table
from epochwatt.prediction.recommend import text as recommend_text
from epochwatt.prediction.recommend.recommend import Estimate
from epochwatt.prediction.transfer.names import TABLES
from epochwatt.roofline.collect import place_points
from epochwatt.roofline.explain import write_explanations
from epochwatt.roofline.fits import FitRow, read_fits, write_fits, write_fits_of
from epochwatt.roofline.points import Point, write_points
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

EXAMPLES = int(os.environ.get("EPOCHWATT_EXAMPLES", "2"))
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
        figure=figure,
        backend=shape.backend,
        draw=entry.draw,
        parameters=entry.parameters,
        paper=entry.paper,
        panels={name: panel.model_dump() for name, panel in entry.panels.items()},
        palette=PALETTE,
        titles=TITLES,
        folder=str(folder / "figures"),
        epochs=paths,
        style=style_file,
        published=PUBLISHED,
        twin=TWIN,
        records=records if records_read or shape.backend != "twin" else {},
        missing=missing,
        lacking=["a $ study"] if shape.odd else [],
        **reads,
    )


@pytest.mark.parametrize("figure", PLOTTING.figures)
@any_shape()
def test_figure_of_the_papers(figure, style_file, shape):
    with made() as folder:
        draw_figure(job_of(figure, shape, folder, style_file))


OWN = {
    "epochwatt.figures.sigmetrics2023.power_modes.draw": {
        "x": "power_mean_w",
        "marker_by": "cores",
    },
    "epochwatt.figures.hipcw2021.medians.draw_workers": {"quantity": "e2e_s", "label": "s"},
}


@pytest.mark.parametrize("draw", OWN)
@any_shape()
def test_own_figure(draw, style_file, shape):
    panel = {"title": TITLES["lenet"], "width_in": 4.0, "height_in": 3.0, "claims": []}
    changes = {"figure": "own", "draw": draw, "parameters": OWN[draw], "paper": "none"}
    with made() as folder:
        job = job_of("fig02", shape, folder, style_file)
        draw_figure(replace(job, **changes, panels={"own": panel}))


@any_shape("host", "jetson", "twin")
def test_rooflines(style_file, shape):
    origin = {"host": "measured", "jetson": "public", "twin": "simulated"}[shape.backend]
    with made() as folder:
        fits, points = any_table.write_roofs(shape, folder, origin)
        peaks, drawn = str(ROOT / "config/rooflines/peaks.csv"), str(folder / "figures")
        rooflines.draw(fits, points, peaks, style_file, drawn, origin, TITLES)


@any_shape("host")
def test_rooflines_of_any_ceilings(style_file, shape):
    with made() as folder:
        ceilings, fits = any_table.write_ceilings_of(shape, folder), str(folder / "fits.csv")
        write_fits_of([ceilings], fits)
        points = [
            point
            for fit in read_fits(fits)
            for point in rows_of(Point, Cells(shape), 1, **any_table.place_of(fit))
        ]
        write_points(folder / "points.csv", points)
        peaks, drawn = str(ROOT / "config/rooflines/peaks.csv"), str(folder / "figures")
        rooflines.draw(
            fits, str(folder / "points.csv"), peaks, style_file, drawn, "measured", TITLES
        )


@any_shape()
def test_tuning(style_file, shape):
    cells = Cells(shape)
    choices = {
        "provenance": ("simulated", "public"),
        "task": ("train", "infer"),
        "aim": ("maxn", "least_energy", "least_energy_within_2"),
        "power_scope": ("module", "gpu"),
    }
    numbers = ("slower_pct", "saved_pct")
    with made() as folder:
        n_rows = shape.n_things * shape.few
        rows = named_rows(TUNED_COLUMNS, cells, n_rows, numbers, **choices)
        write_csv(folder / "tuning.csv", TUNED_COLUMNS, rows)
        tuning.draw_tuning(str(folder / "tuning.csv"), style_file, str(folder / "tuned"))


@any_shape()
def test_powertrain(style_file, shape):
    names = ODD if shape.odd else ("pt-resnet-imagenet", "pt-mobilenet-gld", "own-net")
    choices = {
        "provenance": ("simulated", "public"),
        "group": ("learning-curve", "all-modes"),
        "method": ("powertrain", "powertrain_scratch", "powertrain_all", "maxn", "own", "observed"),
        "reference": ("", *names),
        "workload": names,
        "device": names,
        "target": ("time_s", "power_w"),
        "n_profiled": ("10", "50", "4368"),
        "draw": ("0", "1"),
        "limit_w": ("20", "30"),
        "minibatches": ("1000",),
    }
    needed = ("mape_pct", "over_pct", "over_1w_pct", "excess_area_pct", "n_limits", "n_answered")
    needed += ("median_pct", "p90_pct", "low_pct", "high_pct", "n_draws", "minutes")
    cells, n_rows = Cells(shape), shape.n_things * shape.few if shape.seed % 7 else 0
    numbers = str(ROOT / "config/published/powertrain/numbers.csv")
    with made() as folder:
        tables = {}
        for name, columns in TABLES.items():
            of_table = {key: some for key, some in choices.items() if key in columns}
            rows = named_rows(columns, cells, n_rows, needed, **of_table)
            tables[name] = write_csv(folder / f"{name}.csv", columns, rows)
        modes = named_rows(("power_w", "time_s"), cells, shape.few)
        modes = write_csv(folder / "modes.csv", ("power_w", "time_s"), modes)
        figures = str(folder / "figures")
        draw_powertrain(tables.values(), numbers, modes, style_file, figures)
        used = [tables[name] for name in ("errors", "penalties", "example")]
        compare_numbers(numbers, used, str(folder / "numbers.csv"))


@any_shape()
def test_fulcrum(style_file, shape):
    names = ODD if shape.odd else ("resnet", "bert")
    choices = {
        "provenance": ("simulated", "public", "measured"),
        "jobs": ("train", "infer", "train_and_infer", "two_infer"),
        **dict.fromkeys(("device", "train", "infer"), names),
        "solver": ("exhaustive", "gmd", "gmd_verified", "random_10", "random_50", "maxn", "own"),
        "plan": ("", "x"),
        "arrivals": ("constant", "poisson", "trace"),
        "percentile": ("0", "50", "99", "100"),
    }
    needed = ("n_profiles", "kept_pct", "max_power_w", "max_latency_s", "latency_s")
    cells, n_rows = Cells(shape), shape.n_things * shape.few if shape.seed % 7 else 0
    with made() as folder:
        tables = {}
        for name, columns in (
            ("scores", SCORE_COLUMNS),
            ("power", POWER_COLUMNS),
            ("latencies", LATENCY_COLUMNS),
            ("arrivals", ARRIVAL_COLUMNS),
        ):
            of_table = {key: some for key, some in choices.items() if key in columns}
            rows = named_rows(columns, cells, n_rows, needed, **of_table)
            tables[name] = write_csv(folder / f"{name}.csv", columns, rows)
        drawn = [f"{folder}/figures/{stem}" for stem in stems(True, True)]
        draw_schedules([tables[n] for n in ("scores", "power", "latencies")], style_file, drawn)
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


@any_shape("jetson", "twin", "fake")
def test_picture_of_a_recommendation(style_file, shape):
    cells, mode = Cells(shape), Mode(2, 1000.0, 500.0, 800.0)

    def numbers(modes):
        return np.array([cells.positive() for _ in modes])

    def estimate():
        value = cells.positive()
        return Estimate(value, *((None, None) if cells.is_empty() else (0.5 * value, 3 * value)))

    budgets = {"power_w": cells.positive(), "epoch_s": cells.positive()}
    names = ("epoch_s", "power_w", "energy_wh")
    plans = [
        SimpleNamespace(mode=mode, **{name: cells.positive() for name in names})
        for _ in range(shape.few)
    ]
    place = {"backend": shape.backend, "device": ODD[0], "instance": "d1", "model": ODD[2]}
    model = SimpleNamespace(mean=numbers)
    advice = SimpleNamespace(
        folder="advice",
        request=SimpleNamespace(**place, budgets=budgets if shape.odd else {}),
        title=ODD[2],
        aim="fastest",
        method=SimpleNamespace(name="own", title=ODD[3]),
        profiled=[mode] * shape.n_things,
        fitted=SimpleNamespace(workload=place, time=model, power=model, runs=()),
        recommendation=SimpleNamespace(
            mode=mode, n_modes=29232, front=plans, estimates={name: estimate() for name in names}
        ),
    )
    with made() as folder, mock.patch.object(front, "STYLE", style_file):
        (folder / "config").symlink_to(ROOT / "config")
        with mock.patch.object(recommend_text, "profiled_means", return_value={}):
            front.draw_front(advice, recommend_text.write_front(advice, folder), folder)


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
        backends, text = [shape.backend], f"{folder}/claims.txt"
        compared = f"{folder}/comparisons.csv"
        check_claims(
            *(paths, idle, backends, records, of_devices, [], []),
            TITLES,
            table,
            compared,
            text,
            ROOT,
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
def test_points_and_explanations(shape):
    with made() as folder:
        paths, _ = write_runs(shape, folder)
        explained(shape, paths, folder)


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
    names = ("target", "method", "learned_from", "networks")
    minutes = tuple(f"board_minutes_{part}" for part in ("low", "median", "high"))
    beside = (*group, *names, "n", "median_pct", "p90_pct", "worst_pct", "by_construction")
    beside += (*minutes, "left_out", *(f"error_ratio_to_paper_q{q}" for q in (25, 50, 75)))
    counts = (*group, *names, "modes", "statistic", "value", "n_subsets", "n_predictions")
    counts += ("published", "n_published", "criterion", "agrees", "is_paper")
    choices = {
        "board_group": ("0", "1"),
        "num_workers": ("0", "4"),
        "target": ("time_s", "power_w", "energy_wh"),
        "method": ("paper", "physical", ODD[0]),
        "learned_from": ("every subset of four", "designed: a b"),
        "by_construction": ("True", "False"),
        "is_paper": ("True", "False"),
    }
    cells = Cells(shape)
    with made() as folder:
        for table, columns in (("scores", beside), ("statistics", counts)):
            of_table = {key: some for key, some in choices.items() if key in columns}
            needed = ("median_pct", "p90_pct", *minutes)
            rows = named_rows(columns, cells, shape.few, needed, **of_table)
            write_csv(folder / f"{table}.csv", columns, rows)
        with mock.patch.object(scores, "STYLE", str(ROOT / scores.STYLE)):
            scores.draw_scores(str(folder), shape.backend)
        scores.write_page(str(folder), shape.backend, f"{folder}/scores.html")


@any_shape()
def test_scores_of_sweeps(style_file, shape):
    cells, rows = Cells(shape), []
    statistics = [v for k, v in vars(sweep_table).items() if k.isupper() and isinstance(v, str)]
    targets = ("time_s", "power_w", "energy_wh", sweep_table.RECOMMENDED)
    for _ in range(min(shape.n_things, 2)):
        shared = dict(zip(("sweep", "device", "workload"), cells.random.choices(ODD, k=3),
                          strict=True))  # fmt: skip
        shared |= {"provenance": cells.random.choice(("public", "simulated")), "n_draws": "10"}
        shared |= {"n_workloads": cells.random.choice(("1", "3")), "n_modes": "29"}
        shared |= {"knobs": "cpu_mhz gpu_mhz", "learned_from": sweep_table.RANDOM}
        for method in ("paper", "physical", "own"):
            for n_profiled in (4, 10, 50)[: shape.few]:
                for target in targets:
                    for statistic in statistics:
                        value = cells.number()
                        ends = (value, value) if cells.is_empty() else ("", "")
                        row = {"method": method, "n_profiled": n_profiled, "target": target}
                        row |= {"statistic": statistic, "value": value, "note": ODD[0]}
                        row |= {"low": ends[0], "high": ends[1]}
                        rows += [shared | row] if cells.random.random() < 0.6 else []
    with made() as folder:
        write_csv(folder / "scores.csv", sweep_table.SCORE_COLUMNS, rows)
        texts = sweep_table.read_scores([str(folder / "scores.csv")])
        draw_sweep_scores(texts, folder / "figures", style_file)
        sweep_scores.write_page(texts, folder / "figures", folder / "scores.html")


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
        more = {"records": records, "specs": [f"{stem}.vl.json"], "config": ["a.yaml"]}
        more |= {"excluded": [{"run": "x", "reason": ODD[0]}]}
        more |= {"figures": [drawn], "numbers": [f"{stem}.csv"]}
        results = Results(tables=inputs, titles=TITLES, palette=PALETTE, **more)
        write_index(results, "results/index.html")
