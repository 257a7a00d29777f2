"""Drawings and page of scores on sweeps: every number that is drawn is one of the table's."""

import csv

import pytest

from epochwatt.figures.tables.sweep_scores import DRAWINGS, draw_sweep_scores
from epochwatt.prediction.evaluation.score_sweeps import score_tables
from epochwatt.prediction.evaluation.sweep_scores import MEDIAN, as_text
from tests.unit.prediction.sweeps import limited, planted

STYLE = "config/paper.mplstyle"


@pytest.fixture(scope="module")
def rows():
    tables = [planted(workload="<planted>"), *(limited(batch_size=n) for n in (8, 16))]
    return as_text(score_tables(tables, ["paper", "physical", "gaussian_process"], n_draws=2).rows)


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_what_is_drawn_is_in_the_table(rows, tmp_path):
    draw_sweep_scores(rows, tmp_path, STYLE)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"sweep_{name}.{end}" for name in DRAWINGS for end in ("svg", "png", "csv")
    }
    learned = read(tmp_path / "sweep_learning_time.csv")
    assert {row["workload"] for row in learned} == {"<planted>"}  # the others have one point each
    assert {row["n_profiled"] for row in learned} == {"4", "10"}
    table = {
        (row["sweep"], row["method"], row["n_profiled"]): row["value"]
        for row in rows
        if (row["statistic"], row["target"], row["learned_from"]) == (MEDIAN, "time_s", "random")
    }
    for row in learned:
        assert float(row["value"]) == float(table[row["sweep"], row["method"], row["n_profiled"]])
    four = read(tmp_path / "sweep_four_modes.csv")
    assert {row["sweep"] for row in four} == {"planted", "limits"}
    text = (tmp_path / "sweep_learning_time.svg").read_text("utf-8")
    assert "measured by others; 2 draws of profiled modes" in text
    assert "Measured by others · Error of predicted time" in text


def test_simulated_sweeps_are_called_so(rows, tmp_path):
    made = [row | {"provenance": "simulated"} for row in rows]
    draw_sweep_scores(made, tmp_path, STYLE)
    assert "simulated, not measured" in (tmp_path / "sweep_four_modes.svg").read_text("utf-8")
