"""Draw a study's figures from frames: read its tables, open a figure, write all of its files.

Cells that a figure's CSV repeats stay texts, as its table has them; `numbers` are taken from them.
"""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from epochwatt.figures.common import vega
from epochwatt.figures.common.vega import Cells, Spec
from epochwatt.tables import read_cells, table_text
from epochwatt.templates import captions, render
from epochwatt.text import PROVENANCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION_COLUMNS = 88


class Words(NamedTuple):
    """Title and remarks of a figure."""

    title: str
    origin: str  # of its numbers, in a word or two: begins the title of the picture
    note: str  # below the picture
    caption: str
    ending: str  # last sentence of the caption: where the numbers are from


def read_texts(path: str | Path) -> pd.DataFrame:
    """Read a CSV table as a frame of texts; a missing file gives a frame without columns."""
    if not Path(path).is_file():
        return pd.DataFrame()
    rows = read_cells(path)
    names = list(rows[0]) if rows else next(csv.reader([table_text(Path(path))]), [])
    return pd.DataFrame(rows, columns=names, dtype=object)


def numbers(cells: pd.Series[str]) -> pd.Series[float]:
    """Return the numbers in cells; NaN where a cell is empty."""
    return cells.where(cells.ne(""), "nan").astype(float)


def records(frame: pd.DataFrame) -> list[Cells]:
    """Return the rows of a frame as plain values; what is missing is an empty text."""
    cells = frame.astype(object).where(frame.notna(), "")
    return [{str(name): cell for name, cell in row.items()} for row in cells.to_dict("records")]


def caption(name: str, **told: object) -> str:
    """Return the caption templates/captions/{name}.txt, filled in."""
    return render(f"{captions.FOLDER}/{name}.txt", **told)


@contextmanager
def study_figure(
    stem: str,
    style_file: str,
    words: Words,
    size_in: tuple[float, float],
    rows: Sequence[Cells],
    spec: Callable[[], Spec],
    columns: Sequence[str] = (),
) -> Iterator[tuple[Figure, Axes]]:
    """Open a figure and axes; at the end write SVG, PNG, CSV, caption and Vega-Lite spec at `stem`.

    `rows` are those of the CSV, which may be filled in while the figure is open; it has the columns
    `columns` also without a row. `spec` is called at the end for the interactive form.
    """
    from epochwatt.figures.common import style  # here: pages read frames without matplotlib

    title = style.titled(words.title, words.origin) if words.origin else words.title
    settings = {"title": title, "width_in": size_in[0], "height_in": size_in[1]}
    with style.panel(style_file, settings, words.note) as (figure, axes):
        yield figure, axes
        style.save(figure, stem, rows, columns)
    write_caption(stem, words.title, words.caption, words.ending)
    vega.write(stem, title, words.note, spec())


def write_caption(stem: str, title: str, text: str, origin: str) -> None:
    """Write a figure's caption to `stem`.txt: title, text, and the origin of its numbers."""
    ending = PROVENANCES.get(origin, origin)
    paragraphs = [f"{title}.", text, f"{ending[0].upper()}{ending[1:]}."]
    filled = (textwrap.fill(" ".join(p.split()), CAPTION_COLUMNS) for p in paragraphs)
    Path(f"{stem}.txt").write_text("\n\n".join(filled) + "\n", encoding="utf-8")
