"""Tables that the documentation reads: made from the results, and none differs from them."""

import csv

from benchmarks import tables
from benchmarks.measured import SUMMARY, summary
from benchmarks.results import REPOSITORY
from epochwatt.figures.frames import read_texts
from epochwatt.prediction.evaluation.score_sweeps import judged_methods
from epochwatt.prediction.evaluation.sweep_scores import TITLES
from epochwatt.roofline.tuning import write_tuning

FOLDER = tables.FOLDER


def assert_committed(name, made):
    assert made.to_csv(index=False, lineterminator="\n") == (FOLDER / f"{name}.csv").read_text()


def test_committed_bounds_are_those_of_the_results():
    for name, table in tables.bound_tables().items():
        assert_committed(f"instrument/{name}", table)


def test_committed_summary_is_that_of_its_tables():
    by_name = {name: read_texts(FOLDER / f"prediction/{name}.csv") for name, _ in SUMMARY.values()}
    assert_committed("prediction/measured-summary", summary(by_name))


def test_committed_tables_of_real_sweeps_have_every_method_that_is_judged():
    heads = [read_texts(FOLDER / f"prediction/real-sweeps-{t}.csv") for t in TITLES.values()]
    assert {name for head in heads for name in head.columns[2:]} == {*judged_methods(REPOSITORY)}


def assert_tuning(sweeps, origin, tmp_path):
    """Compare the rows of the table of tuned modes of some sweeps with the committed ones."""
    path = tmp_path / "tuning.csv"
    write_tuning(map(str, sweeps), [], str(path), str(tmp_path / "balances.csv"))
    made = tables.tuning_tables(path)["tuning"].to_numpy().tolist()
    with (FOLDER / "roofline/tuning.csv").open(newline="", encoding="utf-8") as file:
        assert made == [row for row in csv.reader(file) if row[0] == origin]


def test_committed_modes_that_save_are_those_of_the_boards_of_others(tmp_path):
    folder = REPOSITORY / "config/sweeps"
    boards = sorted(folder.glob("translucence-*.csv.gz"))
    sweeps = [folder / "energy-time-fairness-tx2.csv.gz", *boards]
    assert_tuning(sweeps, "public", tmp_path)
