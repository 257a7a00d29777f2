"""The published ratios, changes, shares and spreads of a panel, and what they are here.

`config/published/relations.csv` has them. They are drawn as brackets over the two bars that one is
of, as marks in a strip of changes, or said in a line under a title.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from epochwatt.figures.common.published import METRICS, SEEN
from epochwatt.figures.common.runs import RunData
from epochwatt.published.numbers import (
    KEYS,
    SPREADS,
    Config,
    Relation,
    load_published,
    run_key,
    single,
)

COLUMNS = {metric: column for column, metric in METRICS.items()} | {"median_e2e_s": "e2e_s"}
PER_MINIBATCH = "_ms_per_minibatch"
SIGNS = {"less_than": "<", "at_most": "≤", "at_least": "≥", "approx": "≈"}
LINE_PT, LETTER_PT = 8.0, 3.7  # of the small letters on brackets
FOOT_PT = 3.0  # of a bracket
DASHES = (0, (3.0, 1.5))

NumberOf = Callable[[Config, str], float | None]


class Related(NamedTuple):
    """A published relation and what it is here.

    Attributes
    ----------
    relation : as printed
    here : one number, or the lowest and the highest where the relation is of several runs
    seen_by_fit : whether the simulated boards were fitted to it
    """

    relation: Relation
    here: tuple[float, ...]
    seen_by_fit: bool

    @property
    def published(self) -> str:
        """What is printed, with its unit."""
        r = self.relation
        ends = (r.value,) if r.value_hi is None else (r.value, r.value_hi)
        return f"{SIGNS.get(r.qualifier, '')}{_text(ends, r.unit, 0)}"

    @property
    def simulated(self) -> str:
        """What it is here, with its unit."""
        return _text(self.here, self.relation.unit, 1)

    @property
    def sentence(self) -> str:
        """Both in a line."""
        return f"{self.published} published, {self.simulated} here"


def _text(values: Sequence[float], unit: str, decimals: int) -> str:
    def shown(value: float) -> str:
        if not decimals:
            return f"{value:g}"
        return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"

    words = " to ".join(dict.fromkeys(map(shown, values)))
    return f"{words}×" if unit == "x" else f"{words} %" if unit == "pct" else f"{words} {unit}"


def load_relations(published: str, paper: str) -> list[Relation]:
    """Return the relations of one paper that are of runs."""
    relations = load_published(Path(published)).relations.values()
    return [r for r in relations if r.paper == paper and "model" in r.config_a]


def related(
    relations: Iterable[Relation],
    number_of: NumberOf,
    seen: frozenset[str],
    metrics: Iterable[str] = (),
) -> list[Related]:
    """Return the relations of these metrics whose runs are there, with what they are here.

    Parameters
    ----------
    relations : `load_relations`
    number_of : run and metric -> the number here; None: there is none
    seen : ids that the fit has seen
    metrics : as in `relations.csv`; none: all
    """
    wanted = set(metrics)
    found = []
    for relation in relations:
        if not wanted or relation.metric in wanted:
            here = here_of(relation, number_of)
            if here:
                found.append(Related(relation, here, relation.id in seen))
    return found


def numbers_of(runs: Sequence[RunData]) -> NumberOf:
    """Return the function that finds the mean of a metric in runs, as a relation names both.

    It knows columns of `epochs.csv`, times of a mini-batch, and shares such as `stall_s/e2e_s`.
    """
    by_key = {_key(run): run for run in runs if run.epochs}

    def number_of(config: Config, metric: str) -> float | None:
        run = by_key.get(run_key({**config, "epoch": None}))
        return None if run is None else metric_of(run, metric, config["epoch"])

    return number_of


def _key(run: RunData) -> tuple[Any, ...]:
    config = {key: run.factors[key] for key in KEYS if key in run.factors}
    config |= {"cache": run.factors["cache_policy"], "scale": run.factors["dataset_scale"]}
    return run_key({**config, "epoch": None})


def metric_of(run: RunData, metric: str, epoch_set: str) -> float | None:
    """Return the mean (of `median_`: the median) of a metric over a run's valid epochs."""
    whole, share, part = metric.partition("/")
    if share:
        parts = [metric_of(run, name, epoch_set) for name in whole.strip("()").split("+")]
        total = metric_of(run, part, epoch_set)
        known = [each for each in parts if each is not None]
        return 100.0 * sum(known) / total if total and len(known) == len(parts) else None
    if metric.endswith(PER_MINIBATCH):
        seconds = run.number(metric.replace(PER_MINIBATCH, "_s"), epoch_set).value
        count = run.number("n_minibatches", epoch_set).value
        return 1e3 * seconds / count if seconds is not None and count else None
    statistic = "median" if metric.startswith("median_") else "mean"
    column = COLUMNS.get(metric, metric)
    known_column = not run.epochs or column in run.epochs[0]
    return run.number(column, epoch_set, statistic).value if known_column else None


def here_of(relation: Relation, number_of: NumberOf) -> tuple[float, ...]:
    """Return what a relation is here; nothing where a run or a number of it is missing."""
    sides = [
        [number_of(config, relation.metric) for config in single(side)] for side in relation.sides
    ]
    known = [[value for value in side if value is not None] for side in sides]
    if not all(side and len(side) == len(all_) for side, all_ in zip(known, sides, strict=True)):
        return ()
    if len(known) == 1:
        return _of_one(relation.formula, np.array(known[0]))
    a, b = map(np.array, known)
    return _of_two(relation.formula, a, b) if a.size == b.size else ()


def _of_one(formula: str, values: np.ndarray) -> tuple[float, ...]:
    low, high = float(values.min()), float(values.max())
    if formula in SPREADS:
        if formula == SPREADS[0]:
            return (100.0 * (high - low) / high,) if high else ()
        return spread_pct(formula, [values])
    return (low,) if low == high else (low, high)


def spread_pct(formula: str, of_boards: Sequence[np.ndarray]) -> tuple[float, ...]:
    """Return a spread of section 5.4, %: of all values together, or of the worst board's epochs.

    Parameters
    ----------
    of_boards : values of each board
    """
    boards = [values for values in of_boards if values.size]
    if not boards:
        return ()
    if "max|x-median|" in formula:
        worst = [np.abs(v - np.median(v)).max() / np.median(v) for v in boards]
        return (100.0 * float(max(worst)),)
    together = np.concatenate(boards)
    return (100.0 * float(np.ptp(together)) / float(np.median(together)),)


def _of_two(formula: str, a: np.ndarray, b: np.ndarray) -> tuple[float, ...]:
    with np.errstate(divide="ignore", invalid="ignore"):
        if formula == "A/B":
            values = a / b
        elif formula == "B/A":
            values = b / a
        else:
            values = 100.0 * (b - a) / a
    if formula.startswith("mean"):
        values = np.array([values.mean()])
    values = np.abs(values) if "|" in formula else values
    ends = sorted({float(values.min()), float(values.max())})
    return tuple(ends) if all(map(math.isfinite, ends)) else ()


class Bracket(NamedTuple):
    """A bracket over two bars: x of both, the lines of its text, whether the fit has seen it."""

    left: float
    right: float
    lines: Sequence[str]
    seen_by_fit: bool


def draw_brackets(axes: Axes, brackets: Sequence[Bracket], colour: str) -> None:
    """Draw brackets in a strip above all bars, which it makes room for.

    Brackets that would lie on one another stand one above the other. Call it last: it lays the
    figure out to learn how large the axes are.
    """
    figure = axes.get_figure(root=True)
    if not brackets or figure is None:
        return
    figure.draw_without_rendering()
    to_pt = 72.0 / figure.dpi
    width_pt, height_pt = (size * to_pt for size in axes.bbox.size)
    x_low, x_high = axes.get_xlim()
    x_pt = (x_high - x_low) / width_pt
    levels: list[list[tuple[float, float]]] = []
    placed = []
    for bracket in sorted(brackets, key=lambda b: b.right - b.left):
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
    n_lines = [max(len(b.lines) for b, at, _ in placed if at == n) for n in range(len(levels))]
    heights = [2.5 * FOOT_PT + LINE_PT * n for n in n_lines]
    room = min(sum(heights) / height_pt, 0.75)
    low, high = axes.get_ylim()
    axes.set_ylim(low, low + (high - low) / (1.0 - room))
    starts = [(1.0 - room) + sum(heights[:n]) / height_pt for n in range(len(heights))]
    across = axes.get_xaxis_transform()
    foot = FOOT_PT / height_pt
    for bracket, level, middle in placed:
        top = starts[level] + 1.5 * foot
        (line,) = axes.plot(
            [bracket.left, bracket.left, bracket.right, bracket.right],
            [top - foot, top, top, top - foot], transform=across, color=colour, linewidth=0.9,
            linestyle="-" if bracket.seen_by_fit else DASHES, clip_on=False,
        )  # fmt: skip
        line.set_in_layout(False)
        text = axes.annotate(
            "\n".join(bracket.lines), (middle, top), xycoords=across, xytext=(0, 1.0),
            textcoords="offset points", ha="center", va="bottom", fontsize="x-small",
            linespacing=1.05, color=colour,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip
        text.set_in_layout(False)


def _apart(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return one[1] <= two[0] or two[1] <= one[0]


def bracket_handles(found: Iterable[Related], colour: str, backend: str) -> list[Line2D]:
    """Return the legend's entry of brackets: solid where the fit has seen the number."""
    kinds = dict.fromkeys(sorted((one.seen_by_fit for one in found), reverse=True))
    of_twin = backend == "twin"
    return [
        Line2D(
            [], [], color=colour, linewidth=0.9, linestyle="-" if seen else DASHES,
            label="published change" + (f", {SEEN[seen]}" if of_twin else ""),
        )
        for seen in kinds
    ]  # fmt: skip


def draw_changes(
    axes: Axes, found: Sequence[Related], names: Sequence[str], colours: Sequence[str], black: str
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
    for at, (one, colour) in enumerate(zip(found, colours, strict=True)):
        r = one.relation
        style: Any = "-" if one.seen_by_fit else DASHES
        ends = [r.value] if r.value_hi is None else [r.value, r.value_hi]
        for end in ends:
            axes.hlines(end, at - 0.35, at + 0.35, color=black, linewidth=1.3, linestyles=style)
        if r.value_hi is not None:
            axes.fill_between([at - 0.35, at + 0.35], *ends, color=black, alpha=0.2, linewidth=0)
        for a, b in pairwise([*one.here, one.here[-1]]):
            axes.plot([at, at], [a, b], color=colour, linewidth=1.0)
        axes.plot([at] * len(one.here), one.here, "o", markersize=3.5, color=colour)
        rows.append(relation_row(one))
    axes.set_xticks(range(len(found)), names)
    axes.set_xlim(-0.6, max(len(found) - 0.4, 0.6))
    axes.axhline(0.0, color=black, linewidth=0.5)
    axes.grid(visible=False, axis="x")
    return rows


def relation_row(one: Related) -> dict[str, Any]:
    """Return a row of the CSV for a relation."""
    r = one.relation
    return {
        "quantity": f"{r.metric} {r.formula}",
        "value": one.here[0],
        "value_hi": one.here[-1] if len(one.here) > 1 else None,
        "missing": "",
        "published": r.value,
        "published_hi": r.value_hi,
        "published_id": r.id,
        "published_qualifier": r.qualifier,
        "seen_by_fit": one.seen_by_fit,
    }
