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
from epochwatt.figures.pairs import draw_pairs
from epochwatt.figures.powertrain import looks
from epochwatt.pages.site import write_pairs, write_powertrain

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
    assert spec["data"]["values"] == [{"text": "no numbers"}]
