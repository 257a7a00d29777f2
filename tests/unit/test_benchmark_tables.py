"""Tables that the documentation reads: made from the results, and none differs from them."""

import pytest

from benchmarks import methods_tables, public_sweeps, simulated_sweeps, tables
from benchmarks.methods import CASES
from benchmarks.results import Budget, Row, at_most
from epochwatt.prediction.evaluation.score_sweeps import score_tables
from epochwatt.prediction.evaluation.sweep_files import as_text
from epochwatt.prediction.evaluation.sweep_names import HELD
from epochwatt.prediction.evaluation.sweep_text import error_table, judged
from tests.unit.prediction.sweeps import limited, planted

FOLDER = tables.FOLDER
FILES = sorted(FOLDER.rglob("*.csv"))


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


def test_checks_against_others_are_split_by_question():
    head = ["question", "licence", *tables.SHOWN]
    rows = [[title, "MIT", *map(str, range(len(tables.SHOWN)))] for title in tables.QUESTIONS]
    made = tables.external_tables([head, *rows, rows[0]])
    assert {name: len(table) for name, table in made.items()} == {
        **dict.fromkeys(tables.QUESTIONS.values(), 2),
        "energy": 3,
    }
    assert made["energy"][1] == [str(i) for i in range(len(tables.SHOWN))]


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
