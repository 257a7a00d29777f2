"""Rules score_sweep and score_sweeps, on one small sweep; and the command, on the same table."""

import csv
import shutil
from pathlib import Path

import pytest

from epochwatt.cli import main
from epochwatt.sweeps.mode_table import write_mode_tables
from tests.unit.prediction.sweeps import GRID, planted

REPOSITORY = Path(__file__).resolve().parents[2]
SCORES = "results/sweeps/scores/tiny.csv"


@pytest.fixture
def tiny(checkout, monkeypatch):
    """A checkout with a public sweep of twelve modes."""
    folder = checkout.path / "config/sweeps"
    folder.mkdir()
    shutil.copy(REPOSITORY / "config/paper.mplstyle", checkout.path / "config")
    write_mode_tables(folder / "tiny.csv.gz", [planted(GRID[::4], sweep="tiny")])
    monkeypatch.chdir(checkout.path)
    return checkout.path


@pytest.mark.thorough
def test_rules_and_command_judge_the_same(tiny, run_rule, capsys):
    run_rule("score_sweep", SCORES)
    run_rule("score_sweeps", "results/sweeps/sweep_scores.html")
    made = (tiny / "results/sweeps/scores.csv").read_text("utf-8")
    assert made == (tiny / SCORES).read_text("utf-8")
    rows = list(csv.DictReader(made.splitlines()))
    assert {row["n_profiled"] for row in rows} == {"4"}
    assert {row["sweep"] for row in rows} == {"tiny"}
    page = (tiny / "results/sweeps/sweep_scores.html").read_text("utf-8")
    assert "tiny: planted on board, 12 modes of cpu_mhz, gpu_mhz, emc_mhz (public)" in page
    assert 'src="../figures/public/sweep_learning_time.svg"' in page
    assert (tiny / "results/figures/public/sweep_four_modes.png").stat().st_size > 1000

    assert main(["score", "config/sweeps/tiny.csv.gz", "--csv", "mine.csv"]) == 0
    assert (tiny / "mine.csv").read_text("utf-8") == made
    said = capsys.readouterr()
    assert "time, from         4 designed" in said.out
    assert "scored tiny, planted: 4 random modes (2 of 2)" in said.err


def test_command_names_what_there_is(tiny, capsys):
    (tiny / "config/sweeps/registry.yaml").write_text("sources: {}\nsweeps: {}\n")
    assert main(["score", "nowhere"]) == 1
    assert "no such sweep\n  found: nowhere" in capsys.readouterr().err
