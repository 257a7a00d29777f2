"""Tables that the documentation reads: made from the results, and none differs from them."""

import pytest

from benchmarks import tables

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
