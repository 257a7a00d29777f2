"""HTML pages of the report, rendered by Jinja2 from the templates beside this file.

A page is self-contained, all text in it is escaped, and the same values give the same bytes.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

BAR_PX = (100, 12)  # width and height of a bar

# words of columns that are not written in small letters, and units that end a column's name
WRITTEN = {"cpu": "CPU", "gpu": "GPU", "emc": "EMC", "cuda": "CUDA", "mflop": "MFLOP"}
UNITS = {"mhz": "MHz", "mb": "MB", "mib": "MiB", "m": "M", "wh": "Wh", "w": "W", "pct": "%"}

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
    environment.filters.update(asset=asset, heading=heading, inline_json=inline_json)
    environment.filters.update(is_number=is_number, number_columns=number_columns)
    environment.globals.update(bar_px=BAR_PX)
    return environment


def columns(rows: Rows) -> list[str]:
    """Return the names of all cells, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def heading(name: str) -> str:
    """Return a column's name for people: no underscores, units and short names as they are written.

    >>> heading("cpu_mhz")
    'CPU MHz'
    """
    words = name.split("_")
    return " ".join([WRITTEN.get(word, word) for word in words[:-1]] + [_last(words[-1])])


def _last(word: str) -> str:
    """Return the last word of a column's name, which may be its unit."""
    return UNITS.get(word) or WRITTEN.get(word, word)


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
