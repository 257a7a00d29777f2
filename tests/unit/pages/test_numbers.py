"""Numbers of the landing page: how they look, and that a missing one is none."""

from epochwatt.pages.numbers import Table


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
