"""Show cells of tables on the landing page: each number names the cell that it was taken from.

The page writes numbers through `shown` alone, so a test can read every cell again and compare.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from epochwatt import columns
from epochwatt.board.records.files import csv_rows
from epochwatt.tables import read_cells

HOW: Mapping[str, Callable[[float, float], float]] = {
    "share": lambda value, whole: 100.0 * value / whole,
    "deviation": lambda value, other: 100.0 * (value / other - 1.0),
    "difference": lambda value, other: value - other,
    "factor": lambda value, other: value / other,
}
SIGNED = ("deviation", "difference")
_COLUMNS = csv_rows(__file__, "numbers.csv")
PRINTED = "printed"  # shown with the digits of its cell, as somebody else has rounded it


class Number(NamedTuple):
    """A number of the page and where it is from."""

    text: str  # as it is shown
    unit: str  # beside it; may be empty
    source: str  # path of the table
    row: int  # of the table, the first below the header is 0
    column: str  # its own
    per: str = ""  # column of the value that it is compared with; empty: it is the cell itself
    how: str = ""  # key of `HOW`, `PRINTED`, or empty
    value: float = math.nan  # as it is computed with


def shown(value: float, how: str = "", unit: str = "") -> str:
    """Return a number as the page shows it.

    Three figures, a large one in full; per cent and points to one decimal; what is printed
    elsewhere as it is; a difference with its sign, a factor with its own.
    """
    if how == PRINTED:
        return f"{value:,g}".replace("-", "\u2212")
    size = abs(value)
    if float(f"{size:.3g}") >= 100:
        text = f"{size:,.0f}"
    elif not unit and size == round(size):  # a count
        text = f"{size:g}"
    elif unit in ("%", "points"):
        text = f"{size:.1f}"
    else:
        text = f"{size:#.3g}".rstrip(".") if size else "0"
    is_zero = not text.strip("0.")
    if how == "factor":
        return f"\u00d7\u2009{text}"
    sign = "" if is_zero else "\u2212" if value < 0 else "+" if how in SIGNED else ""
    return sign + text


class Table:
    """A CSV file whose numbers are shown.

    `path`: of the file, as it is named on the page; empty: it was not made

    Attributes:
    `rows`: its lines, texts by column
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows = read_cells(path) if path else []

    def frame(self, *names: str) -> pd.DataFrame:
        """Return its texts as a frame by number of line; without lines it has columns `names`."""
        return pd.DataFrame(self.rows, columns=None if self.rows else names, dtype=object)

    def number(
        self, row: int, column: str, unit: str = "", per: str = "", how: str = ""
    ) -> Number | None:
        """Return a number of a row; None where a cell that it needs holds none."""
        value = self.value(row, column)
        if value is not None and per:
            other = self.value(row, per)
            if other is None or (other == 0.0 and how != "difference"):
                return None
            value = HOW[how](value, other)
        if value is None:
            return None
        return Number(shown(value, how, unit), unit, self.path, row, column, per, how, value)

    def value(self, row: int, column: str) -> float | None:
        """Return the number in a cell; None where it holds none."""
        try:
            value = float(self.rows[row][column])
        except (KeyError, ValueError, TypeError):
            return None
        return None if math.isnan(value) else value


# -- tables of the page --------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of a table of the page."""

    name: str  # of the cell in each row
    title: str = ""  # empty: the label of the column of that name (columns.py)
    # class of the style sheet: n (numbers), bars, advice, why (long text), wide, middle
    kind: str = ""

    @property
    def heading(self) -> str:
        """Its title, or else the label of the column."""
        return self.title or columns.label(self.name)


def columns_of(table: str) -> tuple[Column, ...]:
    """Return the columns of a table of the page, as `numbers.csv` lists them."""
    return tuple(Column(*cells) for name, *cells in _COLUMNS if name == table)


class Several(NamedTuple):
    """Numbers of one cell of the page, as the two ends of a range."""

    numbers: Sequence[Number]
    joint: str = " to "
    sign: str = ""
    grade: str = ""  # class of the style sheet: good or bad


class Quote(NamedTuple):
    """Two texts of a row of another table: the second one is smaller."""

    source: str
    row: int
    columns: tuple[str, str]
    texts: tuple[str, str]
    kind: str = ""


class Bar(NamedTuple):
    """A stacked bar."""

    length: float  # % of the room
    parts: Mapping[str, float]  # class of the style sheet -> share of the bar, %
    title: str


class Line(NamedTuple):
    """A row of a table of the page."""

    # by the columns' names: text, markup, a `Number`, `Several`, a `Quote`, bars, or None
    cells: Mapping[str, object]
    find: str = ""  # what a search looks through
    # the table and its row that numbers of the line are from, where they do not say
    source: str = ""
    row: int = 0
    more: Mapping[str, str] = {}  # further attributes of the element


class Shown(NamedTuple):
    """A table of the page."""

    id: str  # of its element; the first word says what its rows are counted as in a search
    columns: Sequence[Column]
    lines: Sequence[Line]
    # buttons above it: word -> title; each shows the rows whose `data-has` has the word
    filters: Mapping[str, str] = {}
    is_tall: bool = True  # it scrolls by itself


def link(anchor: str, text: str) -> Markup:
    """Return a link to a section, row or figure of the page."""
    return Markup('<a href="#{}">{}</a>').format(anchor, text)


def small(text: str) -> Markup:
    """Return a text in small grey letters; nothing where it is empty."""
    return Markup(' <small class="grey">{}</small>').format(text) if text else Markup()


def graded(text: str, grade: str) -> Markup:
    """Return a text in the colour of a grade: good, bad, or grey."""
    return Markup('<span class="{}">{}</span>').format(grade, text)


def text_table(name: str, rows: Iterable[Mapping[str, object]], *given: Column) -> Shown:
    """Return rows of texts as a table; without `given` columns, those of all rows by their names.

    A cell `parts` holds bars.
    """
    rows = list(rows)
    names = dict.fromkeys(column for row in rows for column in row)
    shown_columns = given or [Column(n, n, "bars" if n == "parts" else "") for n in names]
    found = (" ".join(map(str, filter(None, row.values()))).lower() for row in rows)
    lines = [Line(row, words) for row, words in zip(rows, found, strict=True)]
    return Shown(name, list(shown_columns), lines)
