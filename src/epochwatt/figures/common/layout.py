"""Where texts stand: the layout of a figure, and deviations that get off one another."""

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatterSciNotation
from matplotlib.transforms import Bbox

DEVIATION, MARK = "_deviation", "_mark"  # labels of what is drawn; no legend shows them
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
GROWTH, MOST_IN = 1.3, 40.0  # of a panel without room for axes: times, and up to which height
MOVES = 5  # of a text to get off others
MOST_ROOM = 0.5  # of the axes above the bars, for deviations


def lay_out(figure: Figure) -> None:
    """Give axes the places that they will have: texts have their size and place from here on.

    `Figure.draw_without_rendering` would go through everything that is drawn besides. A panel whose
    names leave no room for its axes grows.
    """
    _write_powers(figure)
    engine = figure.get_layout_engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*axes sizes collapsed", UserWarning)
        while engine is not None and figure.axes and figure.get_figheight() < MOST_IN:
            try:
                engine.execute(figure)
                return
            except UserWarning:
                width_in, height_in = figure.get_size_inches()
                figure.set_size_inches(GROWTH * width_in, GROWTH * height_in)


class Powers(LogFormatterSciNotation):
    """Writes `2×10⁻³` at a logarithmic axis, without the markup that matplotlib has for it."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        marked_up = str(super().__call__(x, pos))
        plain = re.sub(r"\^\{([-\d]+)\}", lambda m: m[1].translate(RAISED), marked_up)
        return re.sub(r"[${}]|\\mathdefault", "", plain).replace(r"\times", "×")


def _write_powers(figure: Figure) -> None:
    """Let logarithmic axes without a formatter of their own write plain text: no text is parsed."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if type(axis.get_major_formatter()) is LogFormatterSciNotation:
            axis.set_major_formatter(Powers())
        if type(axis.get_minor_formatter()) is LogFormatterSciNotation:
            axis.set_minor_formatter(Powers())


def part_marks(figure: Figure, only: Axes | None = None, spare: float = 0.0) -> None:
    """Move deviations that lie on one another apart; the marks stay where they are.

    Axes get higher where a deviation would leave them.

    Parameters
    ----------
    only : axes to look at; None: all
    spare : room above a deviation, in parts of its height
    """
    looked_at = [(axes, _deviations(axes)) for axes in (figure.axes if only is None else [only])]
    if any(texts for _, texts in looked_at):
        lay_out(figure)  # once: it is most of what drawing a panel takes
    for axes, texts in looked_at:
        if texts:
            taken = [mark.get_window_extent() for mark in axes.lines if mark.get_label() == MARK]
            taken += [text.get_window_extent() for text in axes.texts if text not in texts]
            _part(texts, taken, axes.bbox.y0)
            share = max(_room(text, axes, spare) for text in texts)
            low, high = axes.get_ylim()
            axes.set_ylim(low, low + (high - low) / (1.0 - share))


def _deviations(axes: Axes) -> list[Text]:
    return [text for text in axes.texts if str(text.get_label()).startswith(DEVIATION)]


def _room(text: Text, axes: Axes, spare: float) -> float:
    """Return which share of the axes has to be free above what they show, for a text to fit."""
    box = text.get_window_extent()
    over = float(box.y1 + spare * box.height) - axes.bbox.y1
    anchor = axes.transData.transform(text.xy)[1] - axes.bbox.y0  # type: ignore[attr-defined]
    return float(min(max(over, 0.0) / max(anchor, 1.0), MOST_ROOM))


def _part(texts: Sequence[Text], others: Iterable[Bbox], lowest: float) -> None:
    """Move texts off others: to the first place that is free, else upwards.

    Parameters
    ----------
    lowest : y of the canvas below which a text may not be
    """
    placed = list(others)
    for text in sorted(texts, key=lambda t: (t.xy[1], t.xy[0])):  # type: ignore[attr-defined]
        places = places_of(text)
        free = [place for place in places if _is_free(text, place, placed, lowest)]
        text.set(**(free or places)[0])
        for _ in range(MOVES):
            hit = _hit(text, placed)
            if not hit:
                break
            figure = text.get_figure(root=True)
            assert figure is not None
            over = max(box.y1 for box in hit) - text.get_window_extent().y0
            x_pt, y_pt = text.get_position()
            text.set_position((x_pt, y_pt + over * 72.0 / figure.dpi + 1.0))
        placed.append(text.get_window_extent())


def places_of(text: Text) -> list[dict[str, Any]]:
    """Return where a deviation may be: above its marker, below it, at its right."""
    aside, level = map(float, str(text.get_label()).split()[1:])
    beside = math.copysign(4.0, aside) + aside
    right = {
        "position": (beside, 3.0 if level else 0.0),
        "rotation": 0.0,
        "ha": "left" if beside > 0.0 else "right",
        "va": "center",
    }
    upright = {"rotation": 90.0, "ha": "center"}
    above = {"position": (aside, 4.0), "va": "bottom", **upright}
    below = {"position": (aside, -4.0), "va": "top", **upright}
    under = {"position": (aside, -4.0), "va": "top", "ha": "center", "rotation": 0.0}
    return [right, under, above, below] if level == 0.0 else [above, below, right]


def _is_free(text: Text, place: Mapping[str, Any], placed: Sequence[Bbox], lowest: float) -> bool:
    text.set(**place)
    box = text.get_window_extent()
    below = lowest - box.y0
    may_be_below = 0.0 if place["rotation"] or place["ha"] == "center" else 0.6 * box.height
    return not _hit(text, placed) and below <= may_be_below


def _hit(text: Text, placed: Iterable[Bbox]) -> list[Bbox]:
    box = text.get_window_extent()
    return [other for other in placed if box.overlaps(other)]
