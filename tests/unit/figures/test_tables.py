"""Tables as CSV and as a page: every cell is text, whatever it holds."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.figures.tables import page, said, save


class Cells(HTMLParser):
    """The texts of a page's cells, row by row."""

    def __init__(self, text):
        super().__init__()
        self.rows = []
        self.is_inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.is_inside = True

    def handle_endtag(self, tag):
        self.is_inside = self.is_inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.is_inside:
            self.rows[-1][-1] += data


def test_columns_are_those_of_all_rows_in_order(tmp_path):
    save(str(tmp_path / "made/t"), "T", [], [{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}])
    assert (tmp_path / "made/t.csv").read_text("utf-8") == 'a,b,c_mhz\n1,"x,y",\n2,,2265.6\n'
    text = (tmp_path / "made/t.html").read_text("utf-8")
    assert Cells(text).rows == [["a", "b", "c mhz"], ["1", "x,y", ""], ["2", "", "2265.6"]]


def test_page_may_show_other_tables_than_the_csv(tmp_path):
    save(str(tmp_path / "t"), "T", ["a note"], [{"a": 1}], [[{"b": 2}], [], [{"c": 3}]])
    text = (tmp_path / "t.html").read_text("utf-8")
    assert Cells(text).rows == [["b"], ["2"], ["c"], ["3"]]
    assert "<p>a note</p>" in text


def test_page_loads_nothing():
    text = page("T", ["see https://example.org"], [[{"a": 1}]])
    assert "src=" not in text
    assert "href=" not in text


@given(st.text(min_size=1).filter(lambda cell: cell.isprintable()))
def test_cells_say_what_the_rows_say(cell):
    assert Cells(page("T", [], [[{"a": cell}]])).rows == [["a"], [cell]]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, ""), (8, "8"), (1109.25, "1109.25"), (0.0617061, "0.0617061")]
)
def test_numbers_have_six_figures(value, expected):
    assert said(value) == expected
