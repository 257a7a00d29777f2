"""Numbers of the landing page: how they look, and that a missing one is none."""

import pytest

from epochwatt.pages.numbers import PRINTED, Table, shown


@pytest.mark.parametrize(
    ("value", "how", "unit", "text"),
    [
        (2.8603, "", "s", "2.86"),
        (2.9, "", "s", "2.90"),
        (42.0, "", "s", "42.0"),
        (99.96, "", "s", "100"),
        (0.02844, "", "Wh", "0.0284"),
        (12345.6, "", "s", "12,346"),
        (0.0, "", "s", "0"),
        (20.44, "share", "%", "20.4"),
        (0.04, "share", "%", "0.0"),
        (12.43, "deviation", "%", "+12.4"),
        (-0.36, "deviation", "%", "−0.4"),
        (-0.01, "deviation", "%", "0.0"),
        (53.06, "difference", "%", "+53.1"),
        (22.0, PRINTED, "s", "22"),
        (7.527, PRINTED, "W", "7.527"),
        (-38.7, PRINTED, "%", "−38.7"),
    ],
)
def test_a_number_has_three_figures_and_per_cent_one_decimal(value, how, unit, text):
    assert shown(value, how, unit) == text


def test_a_number_names_its_cells_and_what_is_no_number_is_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n3,2,,0\nx,nan,1..2,5\n")
    table = Table(str(path))
    number = table.number(0, "a", "s")
    assert (number.text, number.unit, number.row, number.column) == ("3.00", "s", 0, "a")
    assert number.source == str(path)
    of_two = {"share": "150", "deviation": "+50.0", "difference": "+1.0"}
    assert {how: table.number(0, "a", "%", per="b", how=how).text for how in of_two} == of_two
    for row, column, per in ((0, "c", ""), (1, "a", ""), (1, "b", ""), (1, "c", ""), (0, "z", "")):
        assert table.number(row, column, per=per) is None
    assert table.number(0, "a", "%", per="d", how="share") is None  # nothing is divided by zero
