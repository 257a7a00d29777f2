"""HTML pages of the report, rendered by Jinja2 from the templates beside this file.

A page is self-contained, all text in it is escaped, and the same values give the same bytes.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

BAR_PX = (100, 12)  # width and height of a bar

Rows = Sequence[Mapping[str, Any]]


def render(template: str, **values: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : file name of a template
    values : by the names that the template uses; a name that is missing is an error
    """
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(columns=columns, cell=cell, segments=segments)
    environment.filters.update(is_number=is_number, number_columns=number_columns)
    environment.globals.update(bar_px=BAR_PX)
    return environment


def columns(rows: Rows) -> list[str]:
    """Return the names of all cells, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def cell(value: Any) -> str:
    """Return the text of a cell: numbers to six figures, nothing for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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


def segments(shares: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Return name, start and width, px, of each part of a stacked bar.

    Parameters
    ----------
    shares : name -> share of 1; what a bar is too short for is cut off
    """
    start, parts = 0.0, []
    for name, share in shares.items():
        width = max(0.0, min(share, 1.0 - start))
        parts.append((name, start * BAR_PX[0], width * BAR_PX[0]))
        start += width
    return parts
