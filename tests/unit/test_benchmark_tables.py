"""Tables that the documentation reads: made from the results, and none differs from them."""

import pytest

from benchmarks import methods_tables, public_sweeps, roofline_tables, tables
from benchmarks.methods import CASES
from benchmarks.prediction_measured import SUMMARY, summary
from benchmarks.results import REPOSITORY, read_table
from epochwatt.claims.table_claims import read_rows
from epochwatt.counting.count_workload import write_workload
from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
from epochwatt.prediction.evaluation.sweep_scores import HELD, TITLES, as_text, error_table, judged
from epochwatt.roofline.tuning import write_tuning
from epochwatt.sweeps.table import SweepTable, sweep_names
from epochwatt.twin.sweep import write_simulated_sweep
from tests.unit.prediction.sweeps import limited, planted

FOLDER = tables.FOLDER
FILES = sorted(FOLDER.rglob("*.csv"))
QUARTERS = ("q25", "q50", "q75")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_has_a_cell_for_each_column(path):
    header, *rows = read_table(path)
    assert rows
    assert {len(row) for row in rows} == {len(header)}


def test_committed_bounds_are_those_of_the_results():
    made = tables.bound_tables()
    assert made == {name: read_table(FOLDER / f"instrument/{name}.csv") for name in made}


def test_committed_summary_is_that_of_its_tables():
    names = {name for name, _ in SUMMARY.values()}
    by_name = {name: read_table(FOLDER / f"prediction/{name}.csv") for name in names}
    assert summary(by_name) == read_table(FOLDER / "prediction/measured-summary.csv")


def test_tables_of_real_sweeps_hold_the_cells_of_the_scores():
    names = ["paper", "physical"]
    sweeps = [planted(), *(limited(batch_size=n) for n in (8, 16))]
    rows = as_text(score_tables(sweeps, names, n_draws=2).rows)
    made = public_sweeps.sweep_tables(rows)
    for head, *cells in made.values():
        assert {len(row) for row in cells} <= {len(head)}
    unit = judged(rows)[0]
    head, *errors = made["time"]
    assert head == ["sweep", "learned from", *names]
    assert [row[:2] for row in errors] == [
        ["planted: planted", column] for column in ("4 designed", "4 modes", "10 modes")
    ]
    assert [row[3] for row in errors] == error_table(unit, "time_s")[2][1:]
    held = unit.cell(("random", 10), "physical", "time_s", HELD)
    assert ["time", "physical", "more", "1", *[f"{held.value:.0f}"] * 3] in made["held"]
    assert made["budgets"][1][:3] == ["planted: planted", "10 modes", "paper"]


def _judged(method, median, spread, over=1.0, case="tx2-5000"):
    """Return a row of results/methods/ as it is written."""
    bounds = {"_low": median - spread, "": median, "_high": median + spread}
    row = {"case": case, "n_profiled": 10, "target": "time_s", "method": method, "held_pct": 90.0}
    row |= {f"median_pct{end}": value for end, value in bounds.items()}
    for network in CASES[case].networks:
        row |= {f"over_{network}{end}": over for end in bounds}
    return row


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
    rows = [
        _judged("utilisation", median, spread),
        _judged("powertrain", 10.0, 1.0),
        _judged("powertrain_log", 8.0, 1.0),
    ]
    made = methods_tables.method_tables(rows)
    goal = {(row[1], row[2]): row[3] for row in made["goal"] if row[0] == "time"}
    assert goal["utilisation", "PowerTrain"] == published
    assert goal["utilisation", "the better one"] == better
    assert goal["utilisation_transfer", "PowerTrain"] == "0 of 0"
    for head, *cells in made.values():
        assert {len(row) for row in cells} <= {len(head)}
    assert made["held"][1] == ["tx2-5000", "10", "time", "-", "-", "90", "-"]


def test_committed_tables_of_real_sweeps_have_every_method_that_is_judged():
    heads = [read_table(FOLDER / f"prediction/real-sweeps-{t}.csv")[0] for t in TITLES.values()]
    assert {name for head in heads for name in head[2:]} == {*judged_methods(REPOSITORY)}


def test_errors_of_the_roofline_are_those_of_the_table_of_times():
    head, *rows = read_table(FOLDER / "prediction/real-sweeps-time.csv")
    medians = {
        (sweep.partition(":")[0], size, name): cell.partition(" / ")[0]
        for sweep, size, *cells in rows
        for name, cell in zip(head[2:], cells, strict=True)
    }
    (_, _, *sizes), *ours = read_table(FOLDER / "roofline/method.csv")
    names = {words: name for name, words in roofline_tables.METHODS.items()}
    for sweep, words, *cells in ours:
        of = sweep.partition(",")[0], names[words]
        shown = [cell.partition(" ")[0] for cell in cells]
        assert shown == [medians.get((of[0], size, of[1]), "") for size in sizes]


def _tuning_rows(sweeps, tmp_path):
    """Return the rows of the table of tuned modes that come from sweeps."""
    path = tmp_path / "tuning.csv"
    write_tuning(map(str, sweeps), [], str(path), str(tmp_path / "balances.csv"))
    return roofline_tables.tuning_table(read_rows(str(path)))[1:]


def _committed_tuning(origin):
    return [row for row in read_table(FOLDER / "roofline/tuning.csv") if row[0] == origin]


def test_committed_modes_that_save_are_those_of_the_boards_of_others(tmp_path):
    folder = REPOSITORY / "config/sweeps"
    boards = sorted(folder.glob("translucence-*.csv.gz"))
    made = _tuning_rows([folder / "energy-time-fairness-tx2.csv.gz", *boards], tmp_path)
    assert made == _committed_tuning("public")


@pytest.mark.thorough
def test_committed_modes_that_save_are_those_of_the_simulated_board(tmp_path):
    """Of all of Pagoda's sweeps, as the workflow simulates them."""
    names = [name for name in sweep_names(REPOSITORY) if name.startswith("pagoda-")]
    for name in names:
        sweep = SweepTable().named(name, REPOSITORY)
        factors = sweep.run.factors
        counts = str(tmp_path / f"{factors['model']}.json")
        write_workload({"model": factors["model"]}, counts, factors["task"])
        table = tmp_path / f"{name}.csv"
        write_simulated_sweep(sweep.facts, REPOSITORY / "config/twin", counts, table)
    made = _tuning_rows([tmp_path / f"{name}.csv" for name in names], tmp_path)
    assert made == _committed_tuning("simulated")
