"""Published relations as they are drawn: brackets over their bars, or a strip of changes."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.transforms import Affine2D, ScaledTranslation, Transform, blended_transform_factory

from epochwatt.figures.common.layout import lay_out, part_marks
from epochwatt.figures.common.published import BOUNDS as BOUND_MARKERS
from epochwatt.figures.common.published import SEEN
from epochwatt.figures.common.relations import Related, relation_row
from epochwatt.published.numbers import Config, single
from epochwatt.study.runs import TWIN

LINE_PT, LETTER_PT = 8.0, 3.7  # of the small letters on brackets
SPARE = 0.5  # of a deviation's height, free below brackets
FOOT_PT = 3.0  # of a bracket
CHANGE = "published change, then ours"
SHORTEST = 16  # letters of a bracket's line
BOUND_AT = 0.16  # of the arrow at a bound, beside our dot
DASHES = (0, (3.0, 1.5))


class Bracket(NamedTuple):
    """A bracket over two bars: x of both, the lines of its text, whether the fit has seen it."""

    left: float
    right: float
    lines: Sequence[str]
    seen_by_fit: bool


def brackets_of(
    shown: Iterable[Related], place: Callable[[Config], float | None], words: Mapping[str, str]
) -> list[Bracket]:
    """Return a bracket for each pair of bars that relations are of; several are its lines.

    Parameters
    ----------
    place : run -> x of its bar; None: it is not drawn
    words : metric -> what begins a line
    """
    lines: dict[tuple[float, float], list[str]] = {}
    is_seen: dict[tuple[float, float], bool] = {}
    for one in shown:
        places = [place(config) for side in one.relation.sides for config in single(side)]
        ends = [at for at in places if at is not None]
        if ends and len(ends) == len(places):
            pair = min(ends), max(ends)
            word = words.get(one.relation.metric, "")
            text = one.reading(a_is_left=ends[0] <= ends[-1])
            lines.setdefault(pair, []).append(f"{word} {text}".strip())
            is_seen[pair] = is_seen.get(pair, True) and one.seen_by_fit
    return [Bracket(*pair, of_pair, is_seen[pair]) for pair, of_pair in lines.items()]


_LAID_OUT: WeakSet[FigureBase] = WeakSet()
_TITLE_PADS_PT: WeakKeyDictionary[Axes, float] = WeakKeyDictionary()


def draw_brackets(axes: Axes, brackets: Sequence[Bracket], colour: str) -> None:
    """Draw brackets above the axes, below their title: their height is no value.

    Brackets that would lie on one another stand one above the other. Call it last: it lays the
    figure out to learn how large the axes are.
    """
    figure = axes.get_figure(root=True)
    if not brackets or figure is None:
        return
    part_marks(figure, axes, SPARE)
    if figure not in _LAID_OUT:  # widths stay: brackets take room above axes
        lay_out(figure)
        _LAID_OUT.add(figure)
    to_pt = 72.0 / figure.dpi
    width_pt = axes.bbox.width * to_pt
    letters = max(int(width_pt / LETTER_PT), SHORTEST)
    wrapped = [
        bracket._replace(lines=[line for text in bracket.lines for line in _lines(text, letters)])
        for bracket in brackets
    ]
    placed = _placed(wrapped, axes.get_xlim(), width_pt)
    n_lines = [0] * (1 + max(level for _, level, _ in placed))
    for bracket, level, _ in placed:
        n_lines[level] = max(n_lines[level], len(bracket.lines))
    heights = [2.5 * FOOT_PT + LINE_PT * n for n in n_lines]
    for bracket, level, middle in placed:
        _draw_bracket(axes, bracket, middle, sum(heights[:level]) + 1.5 * FOOT_PT, colour)
    _raise_titles(axes, sum(heights) + FOOT_PT)


def _raise_titles(axes: Axes, pad_pt: float) -> None:
    """Raise the titles of all axes in a row as high as the highest brackets in it need."""
    row = [other for other in axes.figure.axes if _row_of(other) == _row_of(axes)] or [axes]
    pad_pt = max(pad_pt, *(_TITLE_PADS_PT.get(other, 0.0) for other in row))
    for other in row:
        _TITLE_PADS_PT[other] = pad_pt
        title = other.title
        look: dict[str, Any] = {"fontsize": title.get_fontsize(), "color": title.get_color()}
        other.set_title(title.get_text(), pad=pad_pt, **look)


def _row_of(axes: Axes) -> tuple[int, int] | None:
    """Return the first and last row of the figure's grid that axes are in."""
    place = axes.get_subplotspec()
    return None if place is None else (place.rowspan.start, place.rowspan.stop)


def _placed(
    brackets: Sequence[Bracket], x_limits: tuple[float, float], width_pt: float
) -> list[tuple[Bracket, int, float]]:
    """Return each bracket, the shortest first, with its level and the middle of its text."""
    x_low, x_high = x_limits
    x_pt = (x_high - x_low) / width_pt
    levels: list[list[tuple[float, float]]] = []
    placed = []
    for bracket in sorted(brackets, key=lambda b: (round(b.right - b.left, 9), b.left)):
        half = 0.5 * x_pt * LETTER_PT * max(map(len, bracket.lines))
        middle = 0.5 * (bracket.left + bracket.right)
        middle = min(max(middle, x_low + half), max(x_high - half, x_low + half))
        span = min(middle - half, bracket.left), max(middle + half, bracket.right)
        level = next(
            (n for n, taken in enumerate(levels) if all(_apart(span, t) for t in taken)),
            len(levels),
        )
        levels += [[]] if level == len(levels) else []
        levels[level].append(span)
        placed.append((bracket, level, middle))
    return placed


def _draw_bracket(axes: Axes, bracket: Bracket, middle: float, top_pt: float, colour: str) -> None:
    """Draw one bracket, its feet down from `top_pt` above the axes, and its text."""
    above = _above(axes)
    (line,) = axes.plot(
        [bracket.left, bracket.left, bracket.right, bracket.right],
        [top_pt - FOOT_PT, top_pt, top_pt, top_pt - FOOT_PT], transform=above, color=colour,
        linewidth=0.9, linestyle="-" if bracket.seen_by_fit else DASHES, clip_on=False,
    )  # fmt: skip
    line.set_in_layout(False)
    axes.text(
        middle, top_pt + 1.0, "\n".join(bracket.lines), transform=above, ha="center",
        va="bottom", fontsize="x-small", linespacing=1.05, color=colour,
    )  # fmt: skip


def _above(axes: Axes) -> Transform:
    """Return the transform of x of the axes, and of points above their upper end."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = Affine2D().scale(1.0 / 72.0) + figure.dpi_scale_trans
    return blended_transform_factory(
        axes.transData,
        points + ScaledTranslation(0.0, 1.0, axes.transAxes),  # type: ignore[arg-type]
    )


def _lines(text: str, width: int) -> list[str]:
    """Return a text in lines that part no number from its word or its unit."""
    bound = (
        text.replace(" %", "\u00a0%")
        .replace("here ", "here\u00a0")
        .replace(" to ", "\u00a0to\u00a0")
    )
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(bound, width)]


def _apart(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return one[1] <= two[0] or two[1] <= one[0]


def bracket_handles(shown: Iterable[Related], colour: str, backend: str) -> list[Line2D]:
    """Return the legend's entry of brackets: solid where the fit has seen the number."""
    kinds = dict.fromkeys(sorted((one.seen_by_fit for one in shown), reverse=True))
    label, entries = CHANGE, []
    for seen in kinds:
        words = label if seen or backend != TWIN else f"{label}, {SEEN[seen]}"
        line: Any = "-" if seen else DASHES
        entries.append(Line2D([], [], color=colour, linewidth=0.9, linestyle=line, label=words))
        label = "same"
    return entries


def draw_changes(
    axes: Axes,
    shown: Sequence[Related],
    names: Sequence[str],
    colours: Sequence[str],
    black: str,
) -> list[dict[str, Any]]:
    """Draw a strip of published changes beside ours: lines at the published, dots at ours.

    Parameters
    ----------
    names : below each; the axes are one apart
    colours : of our dots
    black : of the published

    Returns
    -------
    rows of the CSV, with the columns of a relation
    """
    rows = []
    for at, (one, colour) in enumerate(zip(shown, colours, strict=True)):
        r = one.relation
        style: Any = "-" if one.seen_by_fit else DASHES
        ends = [r.value] if r.value_hi is None else [r.value, r.value_hi]
        for end in ends:
            axes.hlines(end, at - 0.35, at + 0.35, color=black, linewidth=1.3, linestyles=style)
        if marker := BOUND_MARKERS.get(r.qualifier):
            axes.plot([at + BOUND_AT], [r.value], **bound_look(marker, one.seen_by_fit, black))
        if r.value_hi is not None:
            axes.fill_between(
                [at - 0.35, at + 0.35], ends[0], ends[-1], color=black, alpha=0.2, linewidth=0
            )
        for a, b in pairwise([*one.here, one.here[-1]]):
            axes.plot([at, at], [a, b], color=colour, linewidth=1.0)
        axes.plot([at] * len(one.here), one.here, "o", markersize=3.5, color=colour)
        rows.append(relation_row(one))
    axes.set_xticks(range(len(shown)), names)
    axes.set_xlim(-0.6, max(len(shown) - 0.4, 0.6))
    axes.axhline(0.0, color=black, linewidth=0.5)
    axes.grid(visible=False, axis="x")
    return rows


def bound_look(marker: str, is_seen: bool, colour: str) -> dict[str, Any]:
    """Return the look of the arrow at a bound: from its line to where numbers meet it."""
    shape = {"v": CARETDOWNBASE, "^": CARETUPBASE}[marker]
    face = colour if is_seen else "white"
    look: dict[str, Any] = {"marker": shape, "markersize": 4.0, "linestyle": "none"}
    return {**look, "markeredgecolor": colour, "markerfacecolor": face, "zorder": 3}
