"""Studies on the landing page and on pages of their own: PowerTrain, Fulcrum, pairs."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_numbers import differing
from planted_page import plant

from epochwatt.analysis.pairs import pair_rows, verdict_rows
from epochwatt.claims.beside_paper import Beside
from epochwatt.claims.table_claims import TableClaimRow
from epochwatt.figures.fulcrum.names import gallery_entries
from epochwatt.figures.pairs import draw_pairs
from epochwatt.figures.powertrain import looks
from epochwatt.pages.site import write_pairs, write_powertrain
from epochwatt.pages.studies import fulcrum, methods_rows, powertrain
from epochwatt.schedule.solver_means import SUMMARY_COLUMNS

STYLE = str(Path(__file__).resolve().parents[3] / "config/paper.mplstyle")
NUMBER = dict.fromkeys(Beside._fields, "") | {
    **{"id": "PT-01", "place": "Fig. 6", "exactness": "printed", "paper_workload": "YOLOv8n"},
    **{"workload": "pt-ssdlite-coco", "reference": "pt-resnet-imagenet", "method": "powertrain"},
    **{"n_profiled": "50", "target": "time_s", "statistic": "mape_pct", "unit": "%"},
    **{"qualifier": "less_than", "published": "15", "provenance": "simulated", "ours": "10.32"},
    **{"low": "9.1", "high": "11.9", "n_draws": "10"},
}
CLAIM = dict.fromkeys(TableClaimRow._fields, "") | {
    **{"claim": "PT-C1", "provenance": "simulated", "status": "holds", "sentence": "a < b"},
    **{"section": "abstract", "paper_value": "> 97 %", "our_value": "worst = 10 %"},
}
SOLVER = dict.fromkeys(SUMMARY_COLUMNS, "") | {
    **{"provenance": "simulated", "jobs": "train_and_infer", "solver": "gmd", "n_rows": "5"},
    **{"n_profiles": "29.5", "kept_pct": "90.31", "kept_least_pct": "80", "kept_most_pct": "100"},
    **{"loss_pct": "26.2", "loss_least_pct": "3", "loss_most_pct": "61", "late_pct": "8.46"},
    **{"kept_p99_pct": "61"},
}
UNPLAYED = SOLVER | {"jobs": "train", "solver": "physical_10_verified", "late_pct": ""}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes tables, name -> rows; it gives their paths by name."""

    def call(**tables):
        paths = {}
        for name, rows in tables.items():
            paths[name] = str(tmp_path / f"{name}.csv")
            pd.DataFrame(rows or None, columns=None if rows else ["provenance"]).to_csv(
                paths[name], index=False
            )
        return paths

    return call


@pytest.fixture
def powertrain_tables(write):
    """Tables of one number with ours, one without, and two claims."""
    return write(
        numbers=[NUMBER, NUMBER | {"ours": "", "provenance": "", "missing": "no row of ours"}],
        claims=[CLAIM, CLAIM | {"status": "not_evaluable", "missing": "rows of errors.csv"}],
        errors=[],
        penalties=[],
    )


@pytest.fixture
def fulcrum_tables(write):
    """Tables of three solvers and two claims."""
    return write(
        summary=[SOLVER, UNPLAYED, SOLVER | {"provenance": "public", "loss_pct": ""}],
        claims=[CLAIM, CLAIM | {"status": "does_not_hold"}],
    )


def planted_figure(stem):
    path = Path(f"results/figures/{stem}.svg")
    path.parent.mkdir(parents=True)
    path.write_text("<svg viewBox='0 0 9 9'></svg>")
    return [f"results/figures/{stem}"]


def test_powertrain_is_on_the_landing_page_where_it_was_made_and_has_one_of_its_own(
    checkout, powertrain_tables, write_epochs
):
    text = plant([], write_epochs).read_text("utf-8")
    assert "PowerTrain" not in text
    assert "Fulcrum" not in text
    shutil.rmtree("results")
    figure = looks.gallery_entries(planted_figure("twin/powertrain_limits"))
    page = plant([], write_epochs, figures=figure, powertrain=powertrain_tables)
    assert differing(page, Path()) == []
    text = page.read_text("utf-8")
    assert '<section id="powertrain">' in text
    assert text.count('data-column="ours"') == 1
    assert "no row of ours" in text
    assert "Under power limits: time lost, and limits broken" in text
    svg = Path("results/figures/twin/powertrain_limits.svg")
    svg.with_suffix(".txt").write_text("A title.\n\nWhat one sees.\n")
    write_powertrain(powertrain_tables, [str(svg)], "results/powertrain.html")
    page = Path("results/powertrain.html").read_text("utf-8")
    assert 'src="figures/twin/powertrain_limits.svg"' in page
    assert "What one sees." in page
    assert "of 2 claims 1 hold, 0 do not, 1 cannot be evaluated" in page
    assert "&gt; 97 %" in page


def test_numbers_say_which_workload_is_ours_and_how_the_papers_is_known(powertrain_tables):
    first, second = powertrain(powertrain_tables)["table"].lines
    assert first.cells["workload"] == "YOLOv8n (ours: SSDLite320 on COCO)"
    assert (first.cells["what"], first.cells["exactness"]) == ("error (MAPE) of time", "printed")
    assert first.cells["published"].sign == "< "
    shown = [first.cells[name].text for name in ("ours", "low", "high")]
    assert shown == ["10.3", "9.1", "11.9"]
    assert (second.cells["ours"], second.cells["provenance"]) == (None, "no row of ours")


def test_methods_stand_beside_each_other_of_one_provenance_alone():
    shared = {"provenance": "public", "group": "public", "device": "tx2", "n_profiled": "50"}
    shared |= {"reference": "", "target": "time_s"}
    errors = [
        shared | {"workload": w, "method": m, "draw": d, "mape_pct": v}
        for w, m, d, v in [
            *(("a", "physical", "0", "4"), ("a", "physical", "1", "6")),
            *(("b", "physical", "0", "9"), ("a", "powertrain_scratch", "0", "30")),
        ]
    ]
    errors.append(errors[0] | {"provenance": "simulated", "mape_pct": "1000"})
    board = {"board": "Jetson TX2"}
    scratch = {"method": "same network from scratch", "error of time, %": "30"}
    physical = {"method": "physical terms", "error of time, %": "7 (5 to 9)"}
    assert methods_rows(pd.DataFrame(errors), pd.DataFrame(), "public") == [
        board | scratch | {"workloads": "1", "draws": "1"},
        board | physical | {"workloads": "2", "draws": "2"},
    ]


def test_fulcrum_is_on_the_landing_page_where_it_was_made(checkout, fulcrum_tables, write_epochs):
    figure = gallery_entries(planted_figure("twin/fulcrum_power"))
    page = plant([], write_epochs, figures=figure, fulcrum=fulcrum_tables)
    assert differing(page, Path()) == []
    text = page.read_text("utf-8")
    assert '<section id="fulcrum">' in text
    assert text.count('data-column="kept_least_pct"') == 3
    assert text.count('data-column="kept_pct"') == 4  # in the key sentence, too
    assert "of 2 claims 1 hold, 1 do not" in text
    assert "Training beside a stream of requests, over power budgets" in text
    assert "one of inference takes and draws what one of training does" in text
    shown = fulcrum(fulcrum_tables)
    (answer,) = shown["answers"]  # the public row has no loss
    assert (answer["kept"].text, answer["late"].text) == ("90.3", "8.5")
    assert "our reading of GMD answers " in text
    assert " of requests are late; with steady ones none." in text
    assert shown["table"].lines[1].cells["solver"].startswith("physical terms, verified")


OTHERS = ("cpu_util_pct", "gpu_util_pct", "ram_used_mib", "energy_wh")  # not measured


@pytest.fixture
def pairs_page(tmp_path):
    """Return a function that makes page and figure of pairs whose B is slower by some %."""

    def make(slower_pct, n=6, flags="", differs=""):
        means = {}
        for seed in range(n):
            for side, factor in (("none", 1.0), ("podman", 1 + slower_pct / 100)):
                time_s = factor * (10 + (0.01 * seed if side == "podman" else 0.0))
                means[f"{side}-{seed}"] = {
                    **{"backend": "host", "device": "host", "model": "lenet", "storage": "disk"},
                    **{"num_workers": 1, "batch_size": 16, "power_mode": "asis", "dvfs": "on"},
                    **{"seed": seed, "container": side, "all_flags": flags, "started_unix_s": 1.0},
                    **{"minibatch_s": time_s, "undisturbed_s": time_s, "e2e_s": time_s},
                    **{"wait_s": 0.1},
                }
        frame = pd.DataFrame.from_dict(means, orient="index").reindex(
            columns=[*next(iter(means.values())), *OTHERS]
        )
        pairs = {(f"none-{seed}", f"podman-{seed}"): differs for seed in range(n)}
        rows = pair_rows(frame, pairs, "container")
        verdicts = verdict_rows(rows, frame, "container", 3.0)
        paths = []
        for name, content in (("pairs", rows), ("verdicts", verdicts)):
            paths.append(str(tmp_path / f"{name}.csv"))
            content.to_csv(paths[-1], index=False)
        stem = str(tmp_path / "differences")
        draw_pairs(*paths, STYLE, stem)
        write_pairs(*paths, f"{stem}.svg", [], str(tmp_path / "index.html"))
        spec = json.loads(Path(f"{stem}.vl.json").read_text("utf-8"))
        return (tmp_path / "index.html").read_text("utf-8"), spec

    return make


def test_the_page_of_pairs_says_what_is_different_and_what_disturbed_it(pairs_page, tmp_path):
    page, spec = pairs_page(slower_pct=5.0)
    assert "different: mini-batch time (copy, compute), mini-batch time, 10th percentile, " in page
    assert "equivalent: wait for the loader" in page
    assert "other programs" not in page
    assert spec["layer"][0]["data"]["values"] == [{"from": -3.0, "to": 3.0}]  # the margin
    assert "podman against none" in (tmp_path / "differences.svg").read_text("utf-8")
    page, _ = pairs_page(slower_pct=0.0, flags="cold_process machine_shared")
    assert "other programs took CPUs during 6 of 6 pairs" in page
    page, spec = pairs_page(slower_pct=5.0, differs="torch 1.8 / 2.1")
    assert "Pairs that do not count" in page
    assert "torch 1.8 / 2.1" in page
    assert spec["data"]["values"] == []
