"""Figure of schedules: means by kind of jobs and solver, and all files of a figure."""

import json
from pathlib import Path

import pytest

from epochwatt.figures.schedules import draw_schedules, summarised
from epochwatt.published.tables import write_table

STYLE = Path(__file__).parents[3] / "config/paper.mplstyle"
HEAD = ("provenance", "jobs", "solver", "answered_pct", "kept_pct", "loss_mean_pct", "n_profiles")
ROWS = (
    ("simulated", "train", "gmd", "80", "100", "2", "15"),
    ("simulated", "train", "gmd", "100", "100", "4", "13"),
    ("simulated", "train", "physical_10", "50", "40", "", "10"),
    ("simulated", "infer", "own_method_10", "100", "90", "1", "50"),
    ("simulated", "infer", "exhaustive", "", "", "", ""),  # nothing to solve
)


def test_answers_within_budgets_are_shares_of_all_solvable_problems():
    rows = summarised(dict(zip(HEAD, row, strict=True)) for row in ROWS)
    gmd, physical, own = rows
    assert (gmd["kept_pct"], gmd["loss_pct"], gmd["n_profiles"]) == (90, 3, 14)
    assert (physical["kept_pct"], physical["loss_pct"]) == (pytest.approx(20), "")
    assert own["solver"] == "own_method_10"


def test_files_of_the_figure(tmp_path):
    write_table(tmp_path / "scores.csv", "scores", HEAD, ROWS)
    draw_schedules(str(tmp_path / "scores.csv"), str(STYLE), str(tmp_path / "out"))
    assert {path.suffix for path in tmp_path.glob("out.*")} == {
        *(".svg", ".png", ".csv", ".txt", ".json")
    }
    assert "Simulated boards, not measured." in (tmp_path / "out.txt").read_text()
    spec = json.loads((tmp_path / "out.vl.json").read_text())
    assert len(spec["data"]["values"]) == 2
