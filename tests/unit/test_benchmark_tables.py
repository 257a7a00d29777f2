"""Tables that the documentation reads: made from the results, and none differs from them."""

import csv

import pandas as pd
import pytest

from benchmarks import tables
from benchmarks.measured import SUMMARY, summary
from benchmarks.methods import CASES
from benchmarks.results import REPOSITORY
from epochwatt.counting.count_workload import write_workload
from epochwatt.figures.frames import read_texts
from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
from epochwatt.prediction.evaluation.sweep_scores import TITLES, write_scores
from epochwatt.roofline.tuning import write_tuning
from epochwatt.sweeps.table import SweepTable, sweep_names
from epochwatt.twin.sweep import write_simulated_sweep
from tests.unit.prediction.sweeps import limited, planted

FOLDER = tables.FOLDER


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.csv")), ids=lambda path: path.stem)
def test_every_row_has_a_cell_for_each_column(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert {len(row) for row in rows} == {len(header)}


def assert_committed(name, made):
    assert made.to_csv(index=False, lineterminator="\n") == (FOLDER / f"{name}.csv").read_text()


def test_committed_bounds_are_those_of_the_results():
    for name, table in tables.bound_tables().items():
        assert_committed(f"instrument/{name}", table)


def test_committed_summary_is_that_of_its_tables():
    by_name = {name: read_texts(FOLDER / f"prediction/{name}.csv") for name, _ in SUMMARY.values()}
    assert_committed("prediction/measured-summary", summary(by_name))


def test_tables_of_real_sweeps_hold_the_cells_of_the_scores(tmp_path):
    names = ["paper", "physical"]
    sweeps = [planted(), *(limited(batch_size=n) for n in (8, 16))]
    write_scores(tmp_path / "scores.csv", score_tables(sweeps, names, n_draws=2).rows)
    made = tables.sweep_tables(tmp_path / "scores.csv")
    scores = read_texts(tmp_path / "scores.csv")
    assert [*made["time"].columns] == ["sweep", "learned from", *names]
    mine = made["time"][made["time"].sweep.eq("planted: planted")].set_index("learned from")
    assert [*mine.index] == ["4 designed", "4 modes", "10 modes"]
    own = scores[
        scores.sweep.eq("planted") & scores.method.eq("physical") & scores.n_profiled.eq("10")
    ]
    of_time = own[own.target.eq("time_s")].set_index("statistic").value.astype(float)
    median, p90 = of_time["median error, %"], of_time["90th percentile of errors, %"]
    assert mine.physical["10 modes"].startswith(f"{median:.1f} / ")
    assert float(mine.physical["10 modes"].split()[2]) == pytest.approx(p90, rel=0.06, abs=0.06)
    held = f"{of_time['held by intervals of 90 %, %']:.0f}"
    assert ["time", "physical", "more", "1", held, held, held] in made["held"].to_numpy().tolist()
    assert made["budgets"].iloc[0, :3].tolist() == ["planted: planted", "10 modes", "paper"]


def _judged(method, median, spread, case="tx2-5000"):
    """Return a row of results/methods/ as it is written."""
    bounds = {"_low": median - spread, "": median, "_high": median + spread}
    row = {"case": case, "n_profiled": 10, "target": "time_s", "method": method, "held_pct": 90.0}
    row |= {f"median_pct{end}": value for end, value in bounds.items()}
    return row | {f"over_{n}{end}": 1.0 for n in CASES[case].networks for end in bounds}


@pytest.mark.parametrize(
    ("median", "spread", "published", "better"),
    [
        (5.0, 0.5, "1 of 1", "1 of 1"),
        (6.5, 0.5, "1 of 1", "0 of 1"),
        (5.0, 4.5, "0 of 1", "0 of 1"),
    ],
)
def test_the_goal_asks_for_a_lower_error_and_for_intervals_apart(median, spread, published, better):
    """Against networks of 10 and of 8 %, each known to 1."""
    networks = [_judged("powertrain", 10.0, 1.0), _judged("powertrain_log", 8.0, 1.0)]
    made = tables.method_tables(pd.DataFrame([_judged("utilisation", median, spread), *networks]))
    goal = made["goal"].set_index(["target", "method", "network"])["all sweeps"]
    assert goal["time", "utilisation", "PowerTrain"] == published
    assert goal["time", "utilisation", "the better one"] == better
    assert goal["time", "utilisation_transfer", "PowerTrain"] == "0 of 0"
    assert made["held"].iloc[0].tolist() == ["tx2-5000", "10", "time", "-", "-", "90", "-"]


def test_committed_tables_of_real_sweeps_have_every_method_that_is_judged():
    heads = [read_texts(FOLDER / f"prediction/real-sweeps-{t}.csv") for t in TITLES.values()]
    assert {name for head in heads for name in head.columns[2:]} == {*judged_methods(REPOSITORY)}


def test_errors_of_the_roofline_are_those_of_the_table_of_times():
    times = read_texts(FOLDER / "prediction/real-sweeps-time.csv")
    times = times.assign(sweep=times.sweep.str.partition(":")[0])
    times = times.set_index(["sweep", "learned from"])
    names = {words: name for name, words in tables.ROOFLINE_METHODS.items()}
    for row in read_texts(FOLDER / "roofline/method.csv").to_dict("records"):
        sweep = row["sweep"].partition(",")[0]
        for size in (f"{n} modes" for n in tables.SIZES):
            theirs = times[names[row["method"]]].get((sweep, size), "")
            assert row[size].partition(" ")[0] == theirs.partition(" / ")[0]


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


@pytest.mark.thorough
def test_committed_modes_that_save_are_those_of_the_simulated_board(tmp_path):
    """Of all of Pagoda's sweeps, as the workflow simulates them."""
    paths = []
    for name in (name for name in sweep_names(REPOSITORY) if name.startswith("pagoda-")):
        sweep = SweepTable().named(name, REPOSITORY)
        factors = sweep.run.factors
        counts = str(tmp_path / f"{factors['model']}.json")
        write_workload({"model": factors["model"]}, counts, factors["task"])
        paths.append(tmp_path / f"{name}.csv")
        write_simulated_sweep(sweep.facts, REPOSITORY / "config/twin", counts, paths[-1])
    assert_tuning(paths, "simulated", tmp_path)
