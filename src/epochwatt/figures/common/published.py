"""Draw what the papers print: single numbers as marks, relations of several as brackets.

`config/published/` has the numbers. What is printed is black where it holds and red where
`results/tables/comparisons.csv` says that it does not; filled and solid where the simulation was
fitted to it, open and dashed where not; an arrow is a bound.
"""

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import (
    Affine2D,
    ScaledTranslation,
    Transform,
    blended_transform_factory,
)

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.runs import RunData
from epochwatt.published.numbers import (
    KEYS,
    SPREADS,
    Config,
    Measurement,
    Relation,
    load_published,
    load_seen,
    run_key,
    single,
    trains_as_published,
)

METRICS = {  # our column -> name in the tables
    "power_mean_w": "power_w",
    "energy_paper_wh": "energy_wh",
    "read_iops": "iops",
}
COLUMNS = {metric: column for column, metric in METRICS.items()} | {"median_e2e_s": "e2e_s"}
PER_MINIBATCH = "_ms_per_minibatch"
ON_BOARD = "i"  # the idle state that the module's own sensors were read in
BOUNDS = {"less_than": "v", "at_most": "v", "at_least": "^"}  # qualifier -> marker
RANGE = "range"  # qualifier of a lower and an upper bound of one run
SHAPES = {  # quantity -> marker of its values, name in a legend; of others a diamond
    "stall_s": ("s", "published stall"),
    "e2e_s": ("d", "published E2E"),
    "compute_s": ("P", "published compute"),
    "first_stall_s": (">", "published, first epoch"),
    "first_e2e_s": (">", "published, first epoch"),
    "stall_ms_per_minibatch": ("h", "published, per mini-batch"),
    "compute_ms_per_minibatch": ("h", "published, per mini-batch"),
}
OTHER = ("D", "published")
SIGNS = {"less_than": "<", "at_most": "≤", "at_least": "≥", "approx": "≈"}
UNITS = {"x": "", "pct": " %"}
SEEN = {True: "used in the fit", False: "not used in the fit"}
INFERRED = "inferred:"  # begins the note of a number of which a setting is not printed
DARK = 0.5  # HSV value of bars on which black is not seen
AT_BAR_PT, AT_POINT_PT = 2.0, 6.0  # of a mark's marker, beside its bar or point
DASHES = (0, (3.0, 1.5))
LINE_PT, LETTER_PT, FOOT_PT = 8.0, 3.7, 3.0  # of the small letters on brackets, of their feet
SHORTEST = 16  # letters of a bracket's line


class Mark(NamedTuple):
    """One published number."""

    value: float  # in the unit of its metric; value_hi is the upper end of a range
    value_hi: float | None
    id: str  # of its row in config/published/measurements.csv, of a range of both rows
    qualifier: str  # exact, approx, range, or a bound: less_than, at_most, at_least
    seen_by_fit: bool  # whether the simulated boards were fitted to it


Marks = Mapping[tuple[Any, ...], Mark]  # key of a run and epoch set, metric -> mark
NumberOf = Callable[[Config, str], float | None]


def published_marks(published: str, twin: str, paper: str, backend: str) -> Marks:
    """Return the published numbers of one paper, to be found with `mark`.

    Parameters
    ----------
    published, twin : folders config/published and config/twin
    paper : sigmetrics2023 or hipcw2021; the papers are not pooled
    backend : of the figure; nothing was fitted to what is measured
    """
    facts = load_published(Path(published))
    seen = seen_ids(twin, backend)
    marks: dict[tuple[Any, ...], Mark] = {}
    for bounds in (False, True):  # a value counts more than a bound
        for fact in facts.measurements.values():
            if fact.paper != paper or fact.is_bound != bounds or fact.kind not in ("run", "idle"):
                continue
            for config in single(fact.config):
                key = (*run_key(config), fact.metric)
                new = Mark(fact.value, None, fact.id, fact.qualifier, fact.id in seen)
                old = marks.setdefault(key, new)
                if (old.qualifier, new.qualifier) == ("at_least", "at_most"):
                    ids, is_seen = f"{old.id} {new.id}", old.seen_by_fit and new.seen_by_fit
                    marks[key] = Mark(old.value, new.value, ids, RANGE, is_seen)
    return marks


def seen_ids(twin: str, backend: str) -> frozenset[str]:
    """Return what the simulated boards were fitted to; of a measured backend nothing."""
    return load_seen(Path(twin)) if backend == TWIN else frozenset()


def mark(
    marks: Marks, factors: Mapping[str, Any], quantity: str, epoch_set: str = "1+"
) -> Mark | None:
    """Return what is published of a run; None: nothing.

    Parameters
    ----------
    factors : of the run (`columns.FACTORS`)
    quantity : a column of epochs.csv, or a metric of measurements.csv
    epoch_set : 0, 1+ or all
    """
    if not trains_as_published(factors):
        return None
    return marks.get((*_key(factors, epoch_set), METRICS.get(quantity, quantity)))


def _key(factors: Mapping[str, Any], epoch_set: str | None) -> tuple[Any, ...]:
    config = {key: factors[key] for key in KEYS if key in factors}
    config |= {"cache": factors["cache_policy"], "scale": factors["dataset_scale"]}
    return run_key({**config, "epoch": epoch_set})


def idle_mark(marks: Marks, device: str, power_mode: str, state: str, scope: str) -> Mark | None:
    """Return what is published of an idle board: state i by its sensors, the others at the plug."""
    if (scope == "module") != (state == ON_BOARD):
        return None
    config = {"device": device, "power_mode": power_mode, "state": state}
    config |= {"dvfs": "off"} if state == ON_BOARD else {}
    return marks.get((*run_key(config), "idle_power_w"))


def cells(published_mark: Mark | None) -> dict[str, Any]:
    """Return the columns of the CSV that describe a mark."""
    names = ("published", "published_hi", "published_id", "published_qualifier", "seen_by_fit")
    return dict(zip(names, published_mark or (None,) * len(names), strict=True))


def is_marked(row: Mapping[str, Any]) -> bool:
    """Say whether a row of the CSV has a published number to be marked, not a relation."""
    return row.get("published") is not None and not row.get("is_relation")


def deviation_pct(row: Mapping[str, Any]) -> float | None:
    """Return by how much a row's value is beside what is published of it, % of the published.

    A bound or a range counts from its nearest end, and is 0 where it is met. None: nothing is
    published, or nothing is there, or the published number is 0.
    """
    value = row.get("value")
    if value is None or not is_marked(row):
        return None
    printed, qualifier = row["published"], row["published_qualifier"]
    low = -math.inf if qualifier in ("less_than", "at_most") else printed
    high = math.inf if qualifier == "at_least" else printed
    high = high if row["published_hi"] is None else row["published_hi"]
    nearest = min(max(value, low), high)
    if value == nearest:
        return 0.0
    return 100.0 * (value - nearest) / nearest if nearest else None


def draw_mark(
    axes: Axes,
    x: float,
    row: Mapping[str, Any],
    colour: str,
    width: float = 0.0,
    side: int = 1,
    *,
    line: bool = True,
) -> None:
    """Draw what is published of a row of the CSV, at its value; nothing where nothing is.

    Over a bar it is a line of the bar's width with a small marker at its end, in the gap beside the
    bar; of a point it is a marker at its side. A bound is an arrow, a range two.

    Parameters
    ----------
    x : middle of the bar, or the point
    colour : `job.ink(row)`
    width : of the bar; 0: a point
    side : 1: the marker is at the right, -1: at the left, as of a pair's left bar, 0: on the bar
    line : over the bar; without it the marker stands alone beside the bar
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    aside = side * (AT_BAR_PT if width else AT_POINT_PT)
    moved = axes.transData + ScaledTranslation(aside / 72.0, 0.0, figure.dpi_scale_trans)
    is_seen, end = bool(row["seen_by_fit"]), x + side * width / 2
    for value, marker in _drawn(row):
        if width and line:
            halo = [withStroke(linewidth=2.2, foreground="white")]
            axes.plot(
                [x - width / 2, x + width / 2], [value, value], color=colour, linewidth=1.3,
                zorder=4.5, clip_on=False, linestyle="-" if is_seen else (0, (2.0, 1.2)),
                solid_capstyle="butt", path_effects=halo if _is_on_dark(axes, x, value) else [],
            )  # fmt: skip
        look = mark_look(marker, is_seen, colour)
        (drawn,) = axes.plot(end, value, **look, zorder=5, clip_on=False, transform=moved)
        drawn.set_in_layout(False)


def _is_on_dark(axes: Axes, x: float, value: float) -> bool:
    """Say whether a point is inside of a dark bar; elsewhere a halo would hide a bar's top."""
    return any(
        bar.get_x() <= x <= bar.get_x() + bar.get_width()
        and bar.get_y() < value < bar.get_y() + bar.get_height()
        and rgb_to_hsv(to_rgb(bar.get_facecolor()))[2] < DARK
        for bar in axes.patches
        if isinstance(bar, Rectangle)
    )


def _drawn(row: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return value and marker of what is drawn of a row of the CSV."""
    shape, _ = SHAPES.get(row.get("quantity", ""), OTHER)
    qualifier = row["published_qualifier"]
    first = "^" if qualifier == RANGE else BOUNDS.get(qualifier, shape)
    ends = ((row["published"], first), (row["published_hi"], "v"))
    return [(value, marker) for value, marker in ends if value is not None]


def mark_look(marker: str, is_seen: bool, colour: str) -> dict[str, Any]:
    """Return the look of a published number."""
    return {
        "marker": marker,
        "markersize": 5.0 if marker == "d" else 3.8,
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "markeredgecolor": colour,
        "markerfacecolor": colour if is_seen else "white",
        "path_effects": [withStroke(linewidth=1.6, foreground="white")],  # seen on dark bars
    }


def handles(
    rows: Iterable[Mapping[str, Any]], colour: str, *, together: bool = False
) -> list[Line2D]:
    """Return a legend's entry for each kind of mark, filled where the fit has seen all of it."""
    kinds: dict[str, list[tuple[str, bool]]] = {}
    for row in filter(is_marked, rows):
        _, words = SHAPES.get(row.get("quantity", ""), OTHER)
        for _, shape in _drawn(row):
            label = "published bound" if shape in "v^" else words
            label = "published" if together else label
            kinds.setdefault(label, []).append((shape, bool(row["seen_by_fit"])))
    return [
        Line2D([], [], label=label, **mark_look(of_kind[0][0], all(s for _, s in of_kind), colour))
        for label, of_kind in kinds.items()
    ]


def inferred(published: str) -> dict[str, Measurement]:
    """Return by id the numbers whose setting the paper does not fully say; their notes say what."""
    facts = load_published(Path(published)).measurements
    return {name: fact for name, fact in facts.items() if fact.note.startswith(INFERRED)}


# --- relations: ratios, changes, shares and spreads


@dataclass(frozen=True)
class Related:
    """A published relation and what it is here."""

    relation: Relation  # as printed
    # one number, or the lowest and the highest where the relation is of several runs
    here: tuple[float, ...]
    seen_by_fit: bool  # whether the simulated boards were fitted to it

    @property
    def linestyle(self) -> Any:
        """Solid where the fit has seen it, else dashed."""
        return "-" if self.seen_by_fit else DASHES

    def reading(self, *, a_is_left: bool = True) -> str:
        """Return what is printed and what it is here; a factor leads from the left bar on."""
        r = self.relation
        is_bound = r.qualifier in BOUNDS
        sign = "+" if r.formula.endswith("(B-A)/A") and not is_bound else ""
        factor = ""
        if r.unit == "x":
            factor = "÷" if (r.formula == "A/B") == a_is_left else "×"
        ends = (r.value,) if r.value_hi is None else (r.value, r.value_hi)
        published = " to ".join(f"{end:{sign}g}" for end in ends)
        forms = [".3g" if factor else ".1f" if abs(end) < 100 else ".0f" for end in self.here]
        texts = [f"{end:{sign}{form}}" for end, form in zip(self.here, forms, strict=True)]
        here, unit = " to ".join(dict.fromkeys(texts)), UNITS.get(r.unit, f" {r.unit}")
        return f"{SIGNS.get(r.qualifier, '')}{factor}{published}{unit}, here {factor}{here}{unit}"


def load_relations(published: str, paper: str) -> list[Relation]:
    """Return the relations of one paper that are of runs."""
    relations = load_published(Path(published)).relations.values()
    return [r for r in relations if r.paper == paper and "model" in r.config_a]


def related(
    relations: Iterable[Relation],
    number_of: NumberOf,
    seen: Collection[str],
    metrics: Collection[str] = (),
) -> list[Related]:
    """Return the relations of these metrics whose runs are there, with what they are here.

    Parameters
    ----------
    number_of : run and metric -> the number here; None: there is none
    seen : ids that the fit has seen
    metrics : as in `relations.csv`; none: all
    """
    wanted = [r for r in relations if not metrics or r.metric in metrics]
    return [Related(r, here, r.id in seen) for r in wanted if (here := here_of(r, number_of))]


def numbers_of(runs: Sequence[RunData]) -> NumberOf:
    """Return the function that finds the mean of a metric in runs, as a relation names both.

    It knows columns of `epochs.csv`, times of a mini-batch, and shares such as `stall_s/e2e_s`.
    """
    by_key = {key_of(run): run for run in runs if run.epochs}

    def number_of(config: Config, metric: str) -> float | None:
        run = by_key.get(run_key({**config, "epoch": None}))
        return None if run is None else metric_of(run, metric, config["epoch"])

    return number_of


def key_of(run: RunData) -> tuple[Any, ...]:
    """Return what tells a run from others, whatever the epochs; no relation names inference."""
    return _key(run.factors, None) if trains_as_published(run.factors) else (run.id,)


def metric_of(run: RunData, metric: str, epoch_set: str) -> float | None:
    """Return the mean (of `median_`: the median) of a metric over a run's valid epochs."""
    whole, share, part = metric.partition("/")
    if share:
        parts = [metric_of(run, name, epoch_set) for name in whole.strip("()").split("+")]
        total = metric_of(run, part, epoch_set)
        values = [number for number in parts if number is not None]
        return 100.0 * sum(values) / total if total and len(values) == len(parts) else None
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
    values = [np.array([v for v in side if v is not None]) for side in sides]
    if not all(v.size and v.size == len(side) for side, v in zip(sides, values, strict=True)):
        return ()
    formula = relation.formula
    if len(values) == 1:
        low, high = float(values[0].min()), float(values[0].max())
        if formula == SPREADS[0]:
            return (100.0 * (high - low) / high,) if high else ()
        if formula in SPREADS:
            return spread_pct(formula, values)
        return (low,) if low == high else (low, high)
    a, b = values
    if a.size != b.size:
        return ()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = {"A/B": a / b, "B/A": b / a}
        here = ratios.get(formula, 100.0 * (b - a) / a)
    here = np.array([here.mean()]) if formula.startswith("mean") else here
    here = np.abs(here) if "|" in formula else here
    ends = sorted({float(here.min()), float(here.max())})
    return tuple(ends) if all(map(math.isfinite, ends)) else ()


def spread_pct(formula: str, of_boards: Sequence[np.ndarray]) -> tuple[float, ...]:
    """Return a spread of section 5.4, %: of all values together, or of the worst board's epochs.

    There is none about a median of zero.
    """
    boards = [values for values in of_boards if values.size]
    if not boards:
        return ()
    if "max|x-median|" in formula:
        spreads = [(np.abs(v - np.median(v)).max(), np.median(v)) for v in boards]
    else:
        together = np.concatenate(boards)
        spreads = [(np.ptp(together), np.median(together))]
    if not all(median for _, median in spreads):
        return ()
    return (100.0 * max(float(spread / median) for spread, median in spreads),)


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
        "is_relation": True,
    }


# --- brackets over bars


class Bracket(NamedTuple):
    """A bracket over bars: x of both ends, the lines of its text, its look."""

    left: float
    right: float
    lines: Sequence[str]
    colour: str
    linestyle: Any = "-"
    gaps: Sequence[tuple[float, float]] = ()  # ends of bars in its middle that it is not of


def brackets_of(
    shown: Iterable[Related],
    place: Callable[[Config], float | None],
    ink: Callable[[Mapping[str, Any]], str],
    words: Mapping[str, str],
) -> list[Bracket]:
    """Return a bracket for each pair of bars that relations are of; several are its lines.

    Parameters
    ----------
    place : run -> x of its bar; None: it is not drawn
    ink : `job.ink`: row of a relation -> colour
    words : metric -> what begins a line
    """
    of_pairs: dict[tuple[float, float], list[tuple[Related, str]]] = {}
    for one in shown:
        places = [place(config) for side in one.relation.sides for config in single(side)]
        ends = [at for at in places if at is not None]
        if ends and len(ends) == len(places):
            reading = one.reading(a_is_left=ends[0] <= ends[-1])
            text = f"{words.get(one.relation.metric, '')} {reading}".strip()
            of_pairs.setdefault((min(ends), max(ends)), []).append((one, text))
    return [
        Bracket(
            *pair,
            [text for _, text in of_pair],
            ink({"published_id": " ".join(one.relation.id for one, _ in of_pair)}),
            next((one.linestyle for one, _ in of_pair if not one.seen_by_fit), "-"),
        )
        for pair, of_pair in of_pairs.items()
    ]


def draw_brackets(over: Sequence[tuple[Axes, Sequence[Bracket]]]) -> None:
    """Draw brackets above axes, below their titles: their height is no value.

    Brackets that would lie on one another stand one above the other. Call it last: it lays the
    figure out to learn how large the axes are.
    """
    over = [(axes, brackets) for axes, brackets in over if brackets]
    if not over:
        return
    figure = over[0][0].get_figure(root=True)
    assert figure is not None
    style.lay_out(figure)  # widths stay: brackets take room above axes
    pads_pt: dict[int, float] = {}
    for axes, brackets in over:
        row = _row_of(axes)
        pads_pt[row] = max(pads_pt.get(row, 0.0), _draw_over(axes, brackets))
    for axes in figure.axes:
        if pad_pt := pads_pt.get(_row_of(axes)):
            size = axes.title.get_fontsize()
            axes.set_title(axes.get_title(), pad=pad_pt, fontsize=size)


def _row_of(axes: Axes) -> int:
    place = axes.get_subplotspec()
    return -1 if place is None else place.rowspan.start


def _draw_over(axes: Axes, brackets: Sequence[Bracket]) -> float:
    """Draw the brackets of axes; return how much room above they take, in points."""
    width_pt = axes.bbox.width * 72.0 / axes.figure.dpi
    x_low, x_high = axes.get_xlim()
    x_pt = (x_high - x_low) / width_pt
    letters = max(int(width_pt / LETTER_PT), SHORTEST)
    levels: list[list[tuple[float, float]]] = []
    placed: list[tuple[Bracket, int, float]] = []
    for bracket in sorted(brackets, key=lambda b: (round(b.right - b.left, 9), b.left)):
        lines = [line for text in bracket.lines for line in _lines(text, letters)]
        half = 0.5 * LETTER_PT * max(map(len, lines)) * x_pt
        middle = (bracket.left + bracket.right) / 2
        middle = min(max(middle, x_low + half), max(x_high - half, x_low + half))
        span = min(bracket.left, middle - half), max(bracket.right, middle + half)
        free = [n for n, taken in enumerate(levels) if all(_apart(span, t) for t in taken)]
        if not free:
            levels.append([])
        level = min(free, default=len(levels) - 1)
        levels[level].append(span)
        placed.append((bracket._replace(lines=lines), level, middle))
    n_lines = [max(len(b.lines) for b, at, _ in placed if at == n) for n in range(len(levels))]
    heights = [2.5 * FOOT_PT + LINE_PT * n for n in n_lines]
    for bracket, level, middle in placed:
        _draw_bracket(axes, bracket, middle, sum(heights[:level]) + 1.5 * FOOT_PT)
    return sum(heights) + FOOT_PT


def _draw_bracket(axes: Axes, bracket: Bracket, middle: float, top_pt: float) -> None:
    """Draw one bracket, its feet down from `top_pt` above the axes, and its text."""
    above, foot_pt = _above(axes), top_pt - FOOT_PT
    ends = [bracket.left, *(x for gap in bracket.gaps for x in gap), bracket.right]
    for left, right in zip(ends[::2], ends[1::2], strict=True):
        (line,) = axes.plot(
            [left, left, right, right], [foot_pt, top_pt, top_pt, foot_pt], transform=above,
            color=bracket.colour, linewidth=0.9, linestyle=bracket.linestyle, clip_on=False,
        )  # fmt: skip
        line.set_in_layout(False)
    axes.text(
        middle, top_pt + 1.0, "\n".join(bracket.lines), transform=above, ha="center",
        va="bottom", fontsize="x-small", linespacing=1.05, color=bracket.colour,
    )  # fmt: skip


def _above(axes: Axes) -> Transform:
    """Return the transform of x of the axes, and of points above their upper end."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = Affine2D().scale(1.0 / 72.0) + figure.dpi_scale_trans
    shift = ScaledTranslation(0.0, 1.0, axes.transAxes)  # type: ignore[arg-type]
    return blended_transform_factory(axes.transData, points + shift)


def _lines(text: str, width: int) -> list[str]:
    """Return a text in lines that part no number from its word or its unit."""
    bound = text.replace(" %", "\u00a0%").replace("here ", "here\u00a0")
    bound = bound.replace(" to ", "\u00a0to\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(bound, width)]


def _apart(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return one[1] <= two[0] or two[1] <= one[0]


def bracket_handles(
    shown: Sequence[Related], colour: str, label: str = "published change, then ours"
) -> list[Line2D]:
    """Return the legend's entry of brackets, solid where the fit has seen one of them."""
    line = next((one.linestyle for one in shown if one.seen_by_fit), DASHES)
    look: dict[str, Any] = {"color": colour, "linewidth": 0.9, "linestyle": line}
    return [Line2D([], [], label=label, **look)] if shown else []
