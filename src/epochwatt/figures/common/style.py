"""The one way to open and to save a figure: style file in, SVG + PNG + CSV out, byte-stable."""

import csv
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from epochwatt import columns
from epochwatt.errors import ConfigError

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullLocator

NOTE_AT = 0.015  # of a figure's width: where the lines below a panel begin
NOTE_CHARACTERS_PER_IN = 22  # of their small letters
LETTER_IN = 0.06  # a letter of a legend is at most this wide, on average
ENTRY_IN = 0.42  # of a legend's entry beside its letters: handle, gaps
LETTERS_PER_IN, LINE_IN = 16, 0.16  # of a notice
AXIS_LETTERS = 28  # of a line of an axis's title
COLUMNS = 3  # of axes in rows
HEAD_IN = 1.0  # of a panel's height: title, legend, note
GREY = "#555555"  # of notes
BEFORE_LAYOUT = 0.8  # share of a figure that all axes have before it is laid out
PALE = 0.55  # share of white in a pale colour
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DECADES = 12  # of a logarithmic axis that all have their labels, however short it is
GROWTH, MOST_IN = 1.3, 40.0  # of a panel without room for axes: times, and up to which height


Look = dict[str, Any]  # keyword arguments of what matplotlib draws


@contextmanager
def panel(style: str, settings: Mapping[str, Any], note: str) -> Iterator[tuple[Figure, Axes]]:
    """Open a figure with one axes in a style file, with title and note; close it at the end.

    `settings`: `title`, `width_in`, `height_in`.
    """
    with plt.style.context(style):
        size = (settings["width_in"], settings["height_in"])
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        _head(figure, settings["title"], [])
        _write_note(figure, _filled(figure, note))
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def titled(title: str, origin: str) -> str:
    """Put the origin of the numbers before a title: `Simulated · Stall`."""
    return f"{origin[0].upper()}{origin[1:]} · {title}"


def label_of(name: str) -> str:
    """Return what pictures call a column; the only energy that they show is the papers' sum."""
    return columns.label("energy_wh" if name == "energy_paper_wh" else name)


def axis_title(name: str, *more: str, unit: str = "", width: int = AXIS_LETTERS) -> str:
    """Return the axis title of a column, `label, more (unit)`, wrapped to `width` letters."""
    words = ", ".join([label_of(name), *more])
    title = f"{words} ({unit or columns.unit(name)})"
    unbroken = title.replace("epochs 1+", "epochs\u00a01+").replace(" (", "\u00a0(")
    return textwrap.fill(unbroken, width).replace("\u00a0", " ")


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Draw a legend below the panel's title, which it takes over, in place of any earlier one."""
    title = ""
    for old in list(figure.legends):
        title = old.get_title().get_text()
        old.remove()
    _head(figure, title, handles)


def _head(figure: Figure, title: str, handles: Sequence[Artist]) -> None:
    """Draw the title as that of the figure's legend: the layout then makes room for both."""
    widths = [ENTRY_IN + LETTER_IN * len(str(handle.get_label())) for handle in handles]
    figure.legend(
        handles=handles, ncols=columns_that_fit(widths, figure.get_figwidth()), title=title,
        loc="outside upper left", alignment="left", title_fontsize="medium",
    )  # fmt: skip


def legend_above(axes: Axes, title: str, handles: Sequence[Artist], **look: Any) -> None:
    """Draw axes' own legend above them, with `title` as theirs."""
    axes.legend(
        handles=handles, title=title, fontsize="x-small", title_fontsize="small", alignment="left",
        loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2, **look,
    )  # fmt: skip


def columns_that_fit(widths: Sequence[float], available: float) -> int:
    """Return the number of a legend's columns, at least 1: the least that makes the fewest rows.

    `widths` of entries, filled column by column, and the `available` width are in inches.
    """
    n_entries = len(widths)
    fitting = [
        n
        for n in range(1, n_entries + 1)
        if n == 1 or sum(float(c.max()) for c in np.array_split(widths, n)) <= available
    ]
    fewest_rows = math.ceil(n_entries / fitting[-1]) if fitting else 0
    return next((n for n in fitting if n * fewest_rows >= n_entries), 1)


def side_by_side(
    figure: Figure, axes: Axes, n: int, widths: Sequence[float] | None = None
) -> list[Axes]:
    """Replace the panel's axes by `n` in a row, of these relative widths; return them."""
    axes.remove()
    return list(figure.subplots(1, n, squeeze=False, width_ratios=widths)[0])


def facets(figure: Figure, axes: Axes, n: int, n_columns: int = COLUMNS) -> list[Axes]:
    """Replace the panel's axes by `n` in rows of `n_columns`; return them.

    Sets the figure's height by the number of rows: as it comes, it is that of two rows.
    """
    n_columns = min(n_columns, n)
    rows = math.ceil(n / n_columns)
    figure.set_figheight(HEAD_IN + (figure.get_figheight() - HEAD_IN) * rows / 2)
    axes.remove()
    grid = figure.subplots(rows, n_columns, squeeze=False).flatten()
    for empty in grid[n:]:
        empty.remove()
    return list(grid[:n])


def set_titles(figure: Figure, places: Sequence[Axes], titles: Sequence[str]) -> None:
    """Set small titles of axes, wrapped to their width; the figure grows by the added lines."""
    n_more = n_rows = 0
    for axes, title in zip(places, titles, strict=True):
        spec = axes.get_subplotspec()
        assert spec is not None
        width_in = figure.get_figwidth() * axes.get_position().width / BEFORE_LAYOUT
        lines = [textwrap.fill(line, int(width_in / LETTER_IN)) for line in title.split("\n")]
        axes.set_title("\n".join(lines), fontsize="small")
        n_more, n_rows = max(n_more, axes.get_title().count("\n")), spec.get_gridspec().nrows
    figure.set_figheight(figure.get_figheight() + LINE_IN * n_more * n_rows)


def pale(colour: str) -> str:
    """Return a colour mixed with white."""
    red, green, blue = (PALE + (1.0 - PALE) * part for part in to_rgb(colour))
    return to_hex((red, green, blue))


def set_notes(figure: Figure, note: str, below: str, colour: str) -> None:
    """Write the line `note` below a panel, and below it `below` in a colour; both are shortened.

    Captions have them in full.
    """
    width = note_letters(figure.get_figwidth())
    first, second = (textwrap.shorten(line, width, placeholder=" …") for line in (note, below))
    drawn = _write_note(figure, f"{first}\n " if second else first)
    if second:
        place = {"xycoords": drawn, "ha": "left", "va": "bottom", "fontsize": "x-small"}
        figure.add_artist(Annotation(second, (0.0, 0.0), color=colour, **place))


def note_letters(width_in: float) -> int:
    """Return how many letters of a note fit below a panel of a width."""
    return int(NOTE_CHARACTERS_PER_IN * width_in)


def _write_note(figure: Figure, text: str) -> Any:
    return figure.supxlabel(text, x=NOTE_AT, ha="left", fontsize="x-small", color=GREY)


def _filled(figure: Figure, text: str) -> str:
    """Wrap a text to the width of a panel; ids and percentages stay whole."""
    width = note_letters(figure.get_figwidth())
    filled = textwrap.fill(text.replace(" %", "\u00a0%"), width, break_on_hyphens=False)
    return filled.replace("\u00a0", " ")


def notice(figure: Figure, sentence: str) -> None:
    """Clear a figure and write one sentence instead; its height shrinks to that of the sentence."""
    figure.clear()
    figure.set_layout_engine("none")
    width = figure.get_figwidth()
    lines = textwrap.wrap(sentence, int(LETTERS_PER_IN * width))
    figure.set_size_inches(width, LINE_IN * (len(lines) + 0.8))
    figure.text(0.01, 0.5, "\n".join(lines), ha="left", va="center", fontsize="small")


def save(
    figure: Figure, stem: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()
) -> None:
    """Write `stem`.svg, .png and .csv (the plotted numbers); same input, same bytes.

    The CSV has the columns `names` also without a row.
    """
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
    lay_out(figure)
    figure.set_layout_engine("none")  # what was laid out stays; `savefig` draws each file twice
    FigureCanvasAgg(figure).print_png(f"{stem}.png", metadata={"Software": "epochwatt"})
    metadata = {"Date": None, "Creator": "epochwatt"}
    with matplotlib.rc_context({"svg.hashsalt": "epochwatt"}):
        FigureCanvasSVG(figure).print_svg(f"{stem}.svg", metadata=metadata)
    names = list(dict.fromkeys([*names, *(name for row in rows for name in row)]))
    with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def lay_out(figure: Figure) -> None:
    """Run the figure's layout engine, so that axes and texts have their final size and place.

    Quicker than `Figure.draw_without_rendering`, which visits every artist. Logarithmic axes get
    plain labels first. A figure whose texts leave no room for its axes grows until they have some.
    """
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if type(axis.get_major_formatter()) is LogFormatterSciNotation:
            axis.set_major_formatter(Powers())
        if type(axis.get_minor_formatter()) is LogFormatterSciNotation:
            axis.set_minor_formatter(Powers())
    engine = figure.get_layout_engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*axes sizes collapsed", UserWarning)
        while engine is not None and figure.axes and figure.get_figheight() < MOST_IN:
            try:
                engine.execute(figure)
                return
            except UserWarning:
                figure.set_size_inches(*(GROWTH * figure.get_size_inches()))


class Powers(LogFormatterSciNotation):
    """Writes `2×10⁻³` at a logarithmic axis, without the markup that matplotlib has for it."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        marked_up = str(super().__call__(x, pos))
        plain = re.sub(r"\^\{([-\d]+)\}", lambda m: m[1].translate(RAISED), marked_up)
        return re.sub(r"[${}]|\\mathdefault", "", plain).replace(r"\times", "×")


def label_log(axis: Axis, *subs: float) -> None:
    """Label a logarithmic axis with plain numbers, at `subs` times powers of ten: 1, 2 and 5."""
    axis.set_major_locator(LogLocator(subs=subs or (1.0, 2.0, 5.0), numticks=DECADES))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def set_log(axes: Axes, *names: str) -> None:
    """Make the axes `x`, `y` logarithmic, after all is drawn; 0.1 to 1 where nothing is above 0."""
    for name in names:
        if not np.isfinite(getattr(axes.dataLim, f"minpos{name}")):
            axes.set(**{f"{name}lim": (0.1, 1.0)})
        axes.set(**{f"{name}scale": "log"})


def colours(palette: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return the colours of `keys` in the palette. Raises ConfigError: it lacks some of them."""
    if missing := [key for key in keys if key not in palette]:
        raise ConfigError(
            f"palette has no colour for {', '.join(missing)}",
            where="config/plotting.yaml",
            allowed="any matplotlib colour, such as '#0072B2'",
        )
    return {key: palette[key] for key in keys}
