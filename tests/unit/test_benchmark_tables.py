"""Tables that the documentation reads: made from the results, and none differs from them."""

import pytest

from benchmarks import methods_tables, public_sweeps, roofline_tables, simulated_sweeps, tables
from benchmarks.methods import CASES
from benchmarks.results import REPOSITORY, Budget, Row, at_most
from epochwatt.claims.table_claims import read_rows
from epochwatt.counting.count_workload import write_workload
from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
from epochwatt.prediction.evaluation.sweep_files import as_text
from epochwatt.prediction.evaluation.sweep_names import HELD
from epochwatt.prediction.evaluation.sweep_text import TITLES, error_table, judged
from epochwatt.prediction.names import EVERY, POWER, TIME
from epochwatt.prediction.registry import load_methods
from epochwatt.roofline.tuning import write_tuning
from epochwatt.sweeps.table import SweepTable, sweep_names
from epochwatt.twin.sweep_table import write_simulated_sweep
from tests.unit.prediction.sweeps import limited, planted

FOLDER = tables.FOLDER
FILES = sorted(FOLDER.rglob("*.csv"))
QUARTERS = ("q25", "q50", "q75")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_has_a_cell_for_each_column(path):
    header, *rows = tables.read(path)
    assert rows
    assert {len(row) for row in rows} == {len(header)}


def test_committed_bounds_are_those_of_the_results():
    made = tables.bound_tables()
    assert made == {name: tables.read(FOLDER / f"instrument/{name}.csv") for name in made}


def test_committed_summary_is_that_of_its_tables():
    by_name = {name: tables.read(FOLDER / f"prediction/{name}.csv") for name in tables.TITLES}
    committed = tables.read(FOLDER / "prediction/measured-summary.csv")
    assert tables.summary(by_name) == committed


def test_tables_are_found_with_the_line_above_them():
    first = "# A page\n\nFirst, in %\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    text = f"{first}\nSecond\n\n| c |\n| --- |\n| 3 |"
    assert list(tables.tables(text)) == [
        ("First, in %", [["a", "b"], ["1", "2"]]),
        ("Second", [["c"], ["3"]]),
    ]


def test_timed_rows_keep_their_verdict():
    rows = [Row("a", [1.0, 3.0, 2.0], "s", 1, at_most(1.5)), Row("b", [7.0], "s", 1)]
    head, *cells = tables.timed_table([row.as_json() for row in rows])
    assert [dict(zip(head, row, strict=True))["verdict"] for row in cells] == ["NOT MET", "-"]
    assert cells[0][:2] == ["a", "2.00 s"]
    share = Row("c", [90.0], "%", 0, Budget(95.0, 100.0, "95 to 100"))
    (_, cells) = tables.timed_table([share.as_json()])
    assert cells[-2:] == ["95 to 100 %", "NOT MET"]


def test_a_benchmark_with_a_table_of_its_own_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    rows = [Row("a", [1.0], "s", 1).as_json()]
    tables.write_timed({"interleaver": {"rows": rows}, "planted": {"rows": rows}})
    (path,) = tmp_path.rglob("*.csv")
    assert tables.read(path) == tables.timed_table(rows)


def test_the_sweep_that_is_timed_is_powertrains():
    assert simulated_sweeps.grid().shape == (4368, 5)
    assert len(simulated_sweeps.WORKLOADS) == 7


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
    heads = [tables.read(FOLDER / f"prediction/real-sweeps-{t}.csv")[0] for t in TITLES.values()]
    assert {name for head in heads for name in head[2:]} == {*judged_methods(REPOSITORY)}


def test_errors_of_the_roofline_are_those_of_the_table_of_times():
    head, *rows = tables.read(FOLDER / "prediction/real-sweeps-time.csv")
    medians = {
        (sweep.partition(":")[0], size, name): cell.partition(" / ")[0]
        for sweep, size, *cells in rows
        for name, cell in zip(head[2:], cells, strict=True)
    }
    (_, _, *sizes), *ours = tables.read(FOLDER / "roofline/method.csv")
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
    return [row for row in tables.read(FOLDER / "roofline/tuning.csv") if row[0] == origin]


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


def test_errors_from_every_subset_are_those_of_the_scores(tmp_path):
    percent = dict(
        zip(("median_pct", "p90_pct", "worst_pct"), ("8.54", "30.2", "2112"), strict=True)
    )
    ratios = {
        f"error_ratio_to_paper_{of}": value for of, value in zip(QUARTERS, "123", strict=True)
    }
    shared = {"target": TIME, "learned_from": EVERY, **percent}
    rows = [
        {**shared, "method": "paper", **dict.fromkeys(ratios, "1")},
        {**shared, "method": "physical", **ratios},
        {**shared, "method": "physical", "learned_from": "published", **ratios},
        {**shared, "method": "physical", "target": POWER, **dict.fromkeys(ratios, "")},
    ]
    path = tmp_path / "scores.csv"
    tables.write(path, [list(rows[0]), *(list(row.values()) for row in as_columns(rows))])
    _, paper, physical = tables.subsets_table(path)
    errors = "8.5 / 30 / 2112"
    assert paper == ["paper", errors, "-", "-", "-", "-"]
    assert physical == ["physical", errors, "2.00 (1.00 to 3.00)", errors, "-", "-"]
    names = {row[0] for row in tables.read(FOLDER / "prediction/every-subset-of-four.csv")[1:]}
    scored = {name for name, method in load_methods(REPOSITORY).items() if method.is_scored}
    assert names == scored


def as_columns(rows):
    """Return rows with their keys in the order of the first one."""
    return [{name: row[name] for name in rows[0]} for row in rows]
