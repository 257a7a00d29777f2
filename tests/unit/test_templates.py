"""Pages: every cell is text, whatever it holds; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from epochwatt.templates import render


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
