"""Page and figure of a study in pairs."""

import csv
import json
from pathlib import Path

import pytest

from epochwatt.analysis.pairs import PAIR_COLUMNS, VERDICT_COLUMNS, pair_rows, verdict_rows
from epochwatt.figures.pairs import draw_pairs
from epochwatt.pages.show_pairs import write_pairs

REPOSITORY = Path(__file__).resolve().parents[3]
OTHERS = ("cpu_util_pct", "gpu_util_pct", "ram_used_mib", "energy_wh")  # not measured
STYLE = str(REPOSITORY / "config/paper.mplstyle")


@pytest.fixture
def tables(tmp_path):
    """Return a function that writes pairs.csv and verdicts.csv of B slower by some %."""
    import pandas as pd

    def write(slower_pct, n=6, flags="", differs=""):
        means = {}
        for seed in range(n):
            for side, factor in (("none", 1.0), ("podman", 1 + slower_pct / 100)):
                time_s = factor * (10 + 0.01 * seed * (side == "podman"))
                means[f"{side}-{seed}"] = {
                    **{"backend": "host", "device": "host", "model": "lenet", "storage": "disk"},
                    **{"num_workers": 1, "batch_size": 16, "power_mode": "asis", "dvfs": "on"},
                    **{"seed": seed, "container": side, "all_flags": flags, "started_unix_s": 1.0},
                    **{
                        "minibatch_s": time_s,
                        "undisturbed_s": time_s,
                        "e2e_s": time_s,
                        "wait_s": 0.1,
                    },
                }
        frame = pd.DataFrame.from_dict(means, orient="index").reindex(
            columns=[*next(iter(means.values())), *OTHERS]
        )
        pairs = {(f"none-{seed}", f"podman-{seed}"): differs for seed in range(n)}
        rows = pair_rows(frame, pairs, "container")
        verdicts = verdict_rows(rows, frame, "container", 3.0)
        for name, columns, content in (
            ("pairs", PAIR_COLUMNS, rows),
            ("verdicts", VERDICT_COLUMNS, verdicts),
        ):
            with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as handle:
                writer = csv.DictWriter(handle, columns)
                writer.writeheader()
                writer.writerows(content)
        return str(tmp_path / "pairs.csv"), str(tmp_path / "verdicts.csv")

    return write


def shown(tables, tmp_path):
    stem = str(tmp_path / "differences")
    draw_pairs(*tables, STYLE, stem)
    write_pairs(*tables, f"{stem}.svg", [], str(tmp_path / "index.html"))
    return (tmp_path / "index.html").read_text("utf-8"), json.loads(
        (tmp_path / "differences.vl.json").read_text("utf-8")
    )


def test_the_page_says_what_is_different_and_the_figure_shows_the_margin(tables, tmp_path):
    page, spec = shown(tables(slower_pct=5.0), tmp_path)
    assert "different: mini-batch time (copy, compute), mini-batch time, 10th percentile, " in page
    assert "equivalent: wait for the loader" in page
    assert "other programs" not in page
    assert spec["layer"][0]["data"]["values"] == [{"from": -3.0, "to": 3.0}]
    assert (tmp_path / "differences.png").stat().st_size > 1000
    picture = (tmp_path / "differences.svg").read_text("utf-8")
    assert "container: podman against none" in picture
    assert "how much more podman takes than none (%)" in picture
    assert "wait for the loader, % of E2E time" in picture


def test_a_machine_that_others_used_is_named(tables, tmp_path):
    page, _ = shown(tables(slower_pct=0.0, flags="cold_process machine_shared"), tmp_path)
    assert "other programs took CPUs during 6 of 6 pairs" in page


def test_pairs_with_other_software_are_listed_and_decide_nothing(tables, tmp_path):
    page, spec = shown(tables(slower_pct=5.0, differs="torch 1.8 / 2.1"), tmp_path)
    assert "Pairs that do not count" in page
    assert "torch 1.8 / 2.1" in page
    assert spec["data"]["values"] == []
