"""HTML pages of the report, rendered by Jinja2 from the templates beside this file.

A page is self-contained, all text in it is escaped, and the same values give the same bytes. A .txt
is plain text, so nothing in it is escaped.
"""

import csv
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from epochwatt.columns import axis_title
from epochwatt.text import counted, first_of

Rows = Sequence[Mapping[str, Any]]


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=lambda name: not str(name).endswith(".txt"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(columns=columns, cell=cell, heading=axis_title)
    environment.filters.update(
        asset=asset, inline_json=inline_json, first_of=first_of, counted=counted
    )
    environment.filters.update(is_number=is_number, number_columns=number_columns)
    return environment


def columns(rows: Rows) -> list[str]:
    """Return the names of all cells, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def cell(value: Any) -> str:
    """Return the text of a cell: numbers to six figures, nothing for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def asset(name: str) -> Markup:
    """Return a style sheet or a script beside the templates as it is; nothing where there is none.

    Unlike a template it may hold doubled braces.
    """
    path = Path(__file__).parent / name
    return Markup(path.read_text("utf-8")) if path.exists() else Markup()


def inline_json(value: Any) -> Markup:
    """Return a value as JSON that may stand inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def is_number(value: Any) -> bool:
    """Say whether a cell holds a number, which pages align on the right."""
    try:
        float(cell(value))
    except ValueError:
        return False
    return True


def number_columns(rows: Rows) -> list[str]:
    """Return the names of the columns of which most filled cells are numbers."""
    filled = {name: [row[name] for row in rows if cell(row.get(name))] for name in columns(rows)}
    return [
        name for name, values in filled.items() if 2 * sum(map(is_number, values)) > len(values)
    ]


def save_tables(
    stem: str, title: str, notes: Sequence[str], rows: Rows, shown: Sequence[Rows] = ()
) -> None:
    """Write `stem`.csv and `stem`.html, the same bytes each time.

    `title`, `notes`: above and below the tables of the page
    `rows`: of the CSV; its columns are those of all rows, in order
    `shown`: rows of each table of the page; none: those of the CSV
    """
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    page = render("tables.html", title=title, tables=shown or [rows], notes=notes)
    Path(f"{stem}.html").write_text(page, "utf-8")
