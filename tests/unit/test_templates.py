"""Pages: every cell is text, whatever it holds; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from epochwatt.templates import cell, columns, render, segments

COLOURS = {"stall": "#111111", "compute": "#222222", "overhead": "#333333"}


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


def summary(shares):
    rows = [{"parts": shares, "runs": "1"}]
    part = {"title": "Where an epoch goes", "note": "", "rows": rows, "is_drawn": True}
    section = {"title": "Measured", "head": [], "tables": [part]}
    return render("summary.html", title="T", sections=[section], colours=COLOURS, notes=[])


def test_columns_are_those_of_all_rows_in_order():
    rows = [{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}]
    assert columns(rows) == ["a", "b", "c_mhz"]
    assert Cells(tables(rows)).rows == [["a", "b", "c MHz"], ["1", "x,y", ""], ["2", "", "2265.6"]]


def test_a_published_row_has_its_class():
    text = tables([{"source": "published", "a": 1}, {"source": "here", "a": 2}])
    assert re.findall(r'<tr class="([^"]*)"', text) == ["published", "here"]


def test_no_rows_are_no_table():
    assert "<table>" not in tables([])


def test_page_loads_nothing():
    text = tables([{"a": "https://example.org"}], title="A & B", notes=["see https://example.org"])
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>A &amp; B</h1>" in text
    assert re.findall(r"(?:src|href|@import|url)\s*[=(]", text) == []


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


def test_a_bar_shares_its_length():
    shares = {"stall": 0.25, "compute": 0.7, "overhead": 0.05}
    assert segments(shares) == [
        ("stall", 0.0, pytest.approx(25.0)),
        ("compute", pytest.approx(25.0), pytest.approx(70.0)),
        ("overhead", pytest.approx(95.0), pytest.approx(5.0)),
    ]
    text = summary(shares)
    assert "stall 25.0 %, compute 70.0 %, overhead 5.0 %" in text
    assert re.findall(r'<rect x=.* fill="([^"]+)"/></svg>', text) == ["#333333"]
    assert re.findall(r'fill="([^"]+)"', text)[-3:] == list(COLOURS.values())


def test_a_bar_is_never_longer_than_the_whole():
    """Overhead is the rest of an epoch, and may be a little below zero."""
    parts = segments({"stall": 0.5, "compute": 0.501, "overhead": -0.001})
    assert [width for _, _, width in parts] == pytest.approx([50.0, 50.0, 0.0])


def test_each_colour_is_explained():
    text = summary({"stall": 1.0})
    assert re.findall(r'fill="([^"]+)"/></svg> (\w+)', text) == [
        (colour, name) for name, colour in COLOURS.items()
    ]
