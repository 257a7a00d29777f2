"""Pages: every cell is text, whatever it holds; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

from epochwatt.templates import cell, columns, render, save_tables


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


def tables(*rows, title="T", notes=()):
    return render("tables.html", title=title, tables=rows, notes=notes)


def test_columns_are_those_of_all_rows_in_order():
    rows = [{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}]
    assert columns(rows) == ["a", "b", "c_mhz"]
    assert Cells(tables(rows)).rows == [
        ["a", "b", "c (MHz)"],
        ["1", "x,y", ""],
        ["2", "", "2265.6"],
    ]


def test_a_published_row_has_its_class():
    text = tables([{"source": "published", "a": 1}, {"source": "here", "a": 2}])
    assert re.findall(r'<tr class="([^"]*)"', text) == ["published", "here"]


def test_page_loads_nothing():
    text = tables([{"a": "https://example.org"}], title="A & B", notes=["see https://example.org"])
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>A &amp; B</h1>" in text
    assert re.findall(r"(?:src|href|@import|url)\s*[=(]", text) == []


@settings(max_examples=30)
@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_cells_hold_what_the_rows_hold(text):
    assert Cells(tables([{"a": text}])).rows == [["a"], [text]]


def test_a_value_that_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="notes"):
        render("tables.html", title="T", tables=[])


@pytest.mark.parametrize(
    ("value", "expected"), [(None, ""), (8, "8"), (1109.25, "1109.25"), (0.0617061, "0.0617061")]
)
def test_numbers_have_six_figures(value, expected):
    assert cell(value) == expected


def test_columns_of_the_csv_are_those_of_all_rows_in_order(tmp_path):
    rows = [{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}]
    save_tables(str(tmp_path / "made/t"), "T", [], rows)
    assert (tmp_path / "made/t.csv").read_text("utf-8") == 'a,b,c_mhz\n1,"x,y",\n2,,2265.6\n'
