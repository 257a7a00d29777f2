"""Read the numbers of the landing page, and compare each with the cell of the table it names."""

import csv
import re
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
    elif item.how == "factor":
        value /= float(row[item.per])
    elif item.how == "difference":
        value -= float(row[item.per])
    return shown(value, item.how, item.unit)


NEAR = re.compile(r": (-?[\d.]+)(?: %)? near (-?[\d.]+)")
SAME = 0.01  # relative: a claim reads no more epochs than the paper had


def contradicting(page: Path, root: Path) -> list[str]:
    """Return where the papers' numbers differ from a figure, or a claim, about the same number.

    Each row of the page has to have the number of every figure that it links, and what a claim of
    its section compares with its published number.
    """
    table.cache_clear()
    rows = papers_rows(page.read_text("utf-8"))
    wrong = []
    for row in rows:
        for backend, panel in row.figures:
            path = root / f"results/figures/{backend}/{panel}.csv"
            cells = [c for c in table(str(path)) if c.get("published_id") == row.id]
            if cells and not any(shown(float(c["value"]), "", row.unit) == row.ours for c in cells):
                wrong.append(f"{row.id}: {row.ours} on the page, else in {panel}")
    for claim in table(str(root / "results/claims.csv")):
        for ours, published in NEAR.findall(claim["comparison"]):
            printed = [
                row
                for row in rows
                if (row.section, row.published) == (claim["takeaway"], float(published))
            ]
            if printed and not any(_same(row.ours, float(ours)) for row in printed):
                on_page = " or ".join(row.ours for row in printed)
                wrong.append(f"{claim['claim']}: {ours} near {published}, {on_page} on the page")
    return wrong


class PapersRow(NamedTuple):
    """A row of the papers' numbers on the page."""

    id: str
    section: str
    published: float
    ours: str
    unit: str
    figures: list[tuple[str, str]]  # backend and panel


def papers_rows(text: str) -> list[PapersRow]:
    """Return the rows of the papers' numbers with one number each."""
    rows = []
    for name, html in re.findall(r'<tr [^>]*data-id="([^"]*)"[^>]*>\n(.*?)</tr>', text, re.S):
        cells = dict(re.findall(r'<td data-label="([^"]*)"[^>]*>(.*?)</td>', html, re.S))
        numbers = {
            name: re.findall(r'<span class="num"[^>]*?(?: data-unit="([^"]*)")?>([^<]*)<', cell)
            for name, cell in cells.items()
        }
        (_, published), *_ = numbers["paper"]
        (unit, ours), *_ = numbers["ours"]
        figures = re.findall(r"#fig-([a-z]+)-(\w+)", cells["shown in"])
        section = re.sub("<.*?>", "", cells["section"])
        rows.append(PapersRow(name, section, _float(published), ours, unit, figures))
    return rows


def _float(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


def _same(on_page: str, value: float) -> bool:
    """Say whether a number of the page is a value, as far as its digits and epochs tell."""
    digits = len(on_page.partition(".")[2])
    return abs(_float(on_page) - value) <= 0.51 * 10**-digits + SAME * abs(value)
