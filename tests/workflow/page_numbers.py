"""Read the numbers of the landing page, and compare each with the cell of the table it names."""

import csv
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from epochwatt.pages.numbers import shown

NUMERIC = {"td": "n", "dd": ""}  # elements whose digits all have to be from a cell -> their class
VOID = {"meta", "link", "img", "input", "br", "hr"}


class Shown(NamedTuple):
    """A number or a text of the page: what it says, and of which cell it says so."""

    text: str
    source: str
    row: int
    column: str
    per: str
    how: str
    unit: str
    is_number: bool


class Page(HTMLParser):
    """What a page shows of tables.

    Attributes
    ----------
    shown : in order
    stray : digits of cells for numbers that name no cell
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown: list[Shown] = []
        self.stray: list[str] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self._text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self._open.append((tag, dict(attrs)))
        if self._is_shown(dict(attrs)):
            self._text = ""

    def handle_data(self, data):
        self._text += data
        inside = [attributes for _, attributes in self._open]
        if any(map(self._is_shown, inside)) or not any(c.isdigit() for c in data):
            return
        for tag, attributes in self._open:
            if tag in NUMERIC and NUMERIC[tag] in [*attributes.get("class", "").split(), ""]:
                self.stray.append(data.strip())

    def handle_endtag(self, tag):
        name, attributes = self._open.pop()
        assert name == tag, f"<{name}> is closed by </{tag}>"
        if self._is_shown(attributes):
            places = [attributes, *(above for _, above in reversed(self._open))]
            source, row = (
                next(place[key] for place in places if key in place)
                for key in ("data-source", "data-row")
            )
            column = attributes.get("data-column") or attributes["data-text"]
            keys = (attributes.get(f"data-{key}", "") for key in ("per", "how", "unit"))
            is_number = "data-column" in attributes
            self.shown.append(Shown(self._text, source, int(row), column, *keys, is_number))

    @staticmethod
    def _is_shown(attributes):
        return "data-column" in attributes or "data-text" in attributes


@cache
def table(path: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def differing(page: Path, root: Path) -> list[str]:
    """Return what the page shows otherwise than its tables below `root` say."""
    table.cache_clear()
    parsed = Page(page.read_text("utf-8"))
    wrong = [f"{text!r} names no cell" for text in parsed.stray]
    for item in parsed.shown:
        row = table(str(root / item.source))[item.row]
        expected = of_cell(item, row)
        if item.text != expected:
            wrong.append(f"{item.source} row {item.row} {item.column}: {item.text} != {expected}")
    return wrong


def of_cell(item: Shown, row: dict[str, str]) -> str:
    """Return what the page has to say of a cell."""
    if not item.is_number:
        return row[item.column]
    value = float(row[item.column])
    if item.how == "share":
        value = value / float(row[item.per]) * 100
    elif item.how == "deviation":
        value = (value - float(row[item.per])) / float(row[item.per]) * 100
    elif item.how == "difference":
        value -= float(row[item.per])
    return shown(value, item.how, item.unit)
