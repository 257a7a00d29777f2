"""The parts of a page: every cell is text, whatever it holds; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.markup import (
    BAR_PX,
    Markup,
    bar,
    element,
    folded,
    key,
    page,
    paragraphs,
    said,
    table,
)

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


def test_columns_are_those_of_all_rows_in_order():
    text = table([{"a": 1, "b": "x,y"}, {"a": 2, "c_mhz": 2265.6}])
    assert Cells(text).rows == [["a", "b", "c mhz"], ["1", "x,y", ""], ["2", "", "2265.6"]]


def test_a_published_row_has_its_class():
    text = table([{"source": "published", "a": 1}, {"source": "here", "a": 2}])
    assert re.findall(r"<tr class='([^']*)'", text) == ["published", "here"]


def test_no_rows_are_no_table():
    assert table([]) == ""


def test_page_holds_its_parts_below_its_title_and_loads_nothing():
    text = page("A & B", paragraphs(["see https://example.org"]), folded("more", table([{"a": 1}])))
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>A &amp; B</h1><p>see https://example.org</p><details><summary>more" in text
    assert re.findall(r"(?:src|href|@import|url)\s*[=(]", text) == []


@given(st.text(min_size=1).filter(lambda cell: cell.isprintable()))
def test_cells_say_what_the_rows_say(cell):
    assert Cells(page("T", table([{"a": cell}]))).rows == [["a"], [cell]]


def test_markup_goes_in_as_it_is_and_text_does_not():
    assert element("p", "a < b", Markup("<br>")) == "<p>a &lt; b<br></p>"
    assert element("p", "a", css="it's") == "<p class='it&#x27;s'>a</p>"


@pytest.mark.parametrize(
    ("value", "expected"), [(None, ""), (8, "8"), (1109.25, "1109.25"), (0.0617061, "0.0617061")]
)
def test_numbers_have_six_figures(value, expected):
    assert said(value) == expected


def widths(text):
    return [float(width) for width in re.findall(r"<rect x='[^']+' width='([^']+)'", text)]


def test_a_bar_shares_its_length():
    text = bar({"stall": 0.25, "compute": 0.7, "overhead": 0.05}, COLOURS)
    assert widths(text) == pytest.approx([0.25 * BAR_PX[0], 0.7 * BAR_PX[0], 0.05 * BAR_PX[0]])
    assert "stall 25.0 %, compute 70.0 %, overhead 5.0 %" in text
    assert re.findall(r"fill='([^']+)'", text) == list(COLOURS.values())


def test_a_bar_is_never_longer_than_the_whole():
    """Overhead is the rest of an epoch, and may be a little below nothing."""
    text = bar({"stall": 0.5, "compute": 0.501, "overhead": -0.001}, COLOURS)
    assert widths(text) == pytest.approx([50.0, 50.0, 0.0])


def test_each_colour_is_explained():
    assert [colour in key(COLOURS) for colour in COLOURS.values()] == [True] * 3
    assert "overhead" in key(COLOURS)
