"""Show the papers' numbers beside ours: single ones as marks, relations of several.

`config/published/` has the numbers. What is printed is black, and red where a claim fails by it or
ours is farther off than claims tolerate; filled and solid where the simulation was fitted to it,
open and dashed where not; an arrow is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epochwatt import columns
from epochwatt.claims.tolerances import margin
from epochwatt.columns import TWIN
from epochwatt.figures.common.runs import Cells, RunData
from epochwatt.published.numbers import (
    KEYS,
    SPREADS,
    Config,
    Relation,
    load_published,
    load_seen,
    run_key,
    single,
    trains_as_published,
)

if TYPE_CHECKING:  # tables need no matplotlib, which takes long to import
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.patheffects import withStroke

    from epochwatt.figures.common.style import Look

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
BESIDE_STACK = "compute beside a stack"  # kind of what is drawn as a thin bar from 0
IN_STACK = "compute in a stack"  # kind of what is drawn as a line as long as the number
FIRST_EPOCH = "first epoch"  # kind of a number that stands beside that of all epochs
SHAPES = {  # kind or quantity of a number -> marker of its published values
    **{"stall_s": "s", "e2e_s": "d", "compute_s": "P", FIRST_EPOCH: "*"},
    **{"stall_ms_per_minibatch": "h", "compute_ms_per_minibatch": "h"},
    **{BESIDE_STACK: "", IN_STACK: "_"},
}
OTHER = "D"
WORDS = {  # kind of a number, or marker of a bound -> what a legend calls it
    BESIDE_STACK: f"{columns.label('compute_s')}, from 0",
    IN_STACK: f"{columns.label('compute_s')}: length of the line",
    FIRST_EPOCH: FIRST_EPOCH,
    **{"v": "at most", "^": "at least"},
    "cpu_below_peak_time_pct": "time below 90 % of peak",
}
GLYPHS = {"s": "■", "d": "♦", "P": "✚", "*": "★", "h": "⬢", "D": "◆", "v": "▼", "^": "▲", "_": "│"}
SIGNS = {"less_than": "<", "at_most": "≤", "at_least": "≥", "approx": "≈"}
UNITS = {"x": "", "pct": " %"}
SEEN = {True: "used in the fit", False: "not used in the fit"}
INFERRED = "inferred:"  # begins the note of a number of which a setting is not printed
ON_DARK = ("stall_s", "cpu_below_peak_time_pct")  # quantities whose bars are dark
AT_BAR_PT, AT_POINT_PT = 2.0, 6.0  # of a mark's marker, beside its bar or point
DASHES = (0, (3.0, 1.5))

NumberOf = Callable[[Config, str], float | None]  # run and metric -> the number here, if any


class Mark(NamedTuple):
    """One published number."""

    value: float  # in the unit of its metric; value_hi is the upper end of a range
    value_hi: float | None
    id: str  # of its row in config/published/measurements.csv, of a range of both rows
    qualifier: str  # exact, approx, range, or a bound: less_than, at_most, at_least
    seen_by_fit: bool  # whether the simulated boards were fitted to it
    is_off: bool | None = None  # whether ours is off it; None: it is not judged

    def judged(
        self,
        ours: Iterable[float | None],
        tolerances: Mapping[str, float],
        failing: frozenset[str] = frozenset(),
        *,
        is_percentage: bool = False,
    ) -> Mark:
        """Say whether ours is off: beyond the claims' tolerance, or a claim fails by its id.

        `tolerances`: of config/claims.yaml, by name; `failing`: ids by which claims fail.
        """
        known = [(value, self.nearest(value)) for value in ours if value is not None]
        fails = not failing.isdisjoint(self.id.split())
        is_far = [
            margin(value, nearest, tolerances, is_percentage=is_percentage) < 0
            if nearest or is_percentage else value != 0
            for value, nearest in known
        ]  # fmt: skip
        return self._replace(is_off=fails or any(is_far)) if known or fails else self

    def nearest(self, value: float) -> float:
        """Return the published value nearest to ours: ours where a bound or a range is kept."""
        low = -math.inf if self.qualifier in ("less_than", "at_most") else self.value
        high = math.inf if self.qualifier == "at_least" else self.value
        return min(max(value, low), high if self.value_hi is None else self.value_hi)

    def deviation_pct(self, value: float | None) -> float | None:
        """Return how far our value is off the published number, % of it; 0 where a bound is kept.

        Of a bound or a range it is off the nearest end. None: no value, or 0 is published.
        """
        if value is None:
            return None
        nearest = self.nearest(value)
        if value == nearest:
            return 0.0
        return 100.0 * (value - nearest) / nearest if nearest else None


# columns of a table of published numbers, in the order of a mark
CELLS = (
    *("published", "published_hi", "published_id", "published_qualifier", "seen_by_fit"),
    "is_off",
)
Marks = Mapping[tuple[Any, ...], Mark]  # key of a run and epoch set, metric -> mark


def published_marks(published: str, twin: str, paper: str, backend: str) -> Marks:
    """Load one paper's numbers of runs and idle boards by run key and metric, for `mark`.

    `published` and `twin` are the folders config/published and config/twin. Of one key a value
    replaces bounds, and a lower with an upper bound is a range.
    """
    seen = seen_ids(twin, backend)
    facts = [
        fact for fact in load_published(Path(published)).measurements.values()
        if fact.paper == paper and fact.kind in ("run", "idle")
    ]  # fmt: skip
    marks: dict[tuple[Any, ...], Mark] = {}
    for fact in sorted(facts, key=lambda fact: fact.is_bound):  # values first
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


def mark(marks: Marks, factors: Cells, quantity: str, epoch_set: str = "1+") -> Mark | None:
    """Return what is published of a quantity of a run; None: nothing."""
    if not trains_as_published(factors):
        return None
    return marks.get((*_key(factors, epoch_set), METRICS.get(quantity, quantity)))


def _key(factors: Cells, epoch_set: str | None) -> tuple[Any, ...]:
    config = {key: factors[key] for key in KEYS if key in factors}
    config |= {"cache": factors["cache_policy"], "scale": factors["dataset_scale"]}
    return run_key({**config, "epoch": epoch_set})


def idle_mark(marks: Marks, device: str, power_mode: str, state: str, scope: str) -> Mark | None:
    """Return the published idle power, W, of a board in a state; None: there is none.

    State i is published by the board's own sensors (`scope` module), the others at the plug.
    """
    if (scope == "module") != (state == ON_BOARD):
        return None
    config = {"device": device, "power_mode": power_mode, "state": state}
    config |= {"dvfs": "off"} if state == ON_BOARD else {}
    return marks.get((*run_key(config), "idle_power_w"))


def cells(published_mark: Mark | None) -> dict[str, Any]:
    """Return the columns of the CSV that describe a mark."""
    return dict(zip(CELLS, published_mark or (None,) * len(CELLS), strict=True))


@dataclass(frozen=True)
class Plotted:
    """One plotted number, and what is published of it: a row of the CSV."""

    row: Cells  # but what is published
    mark: Mark | None
    ink: str  # colour of what is published
    kind: str = ""  # key of `SHAPES`, where its mark is not that of its quantity

    @property
    def value(self) -> float | None:
        """Our number; None: it is missing."""
        return self.row["value"]

    @property
    def height(self) -> float:
        """Our number, 0 where it is missing."""
        return self.value or 0.0

    @property
    def published_id(self) -> str:
        """Id of what is published; empty: nothing is."""
        return self.mark.id if self.mark else ""

    @property
    def seen_by_fit(self) -> bool:
        """Whether the simulated boards were fitted to what is published."""
        return self.mark is not None and self.mark.seen_by_fit

    def ends(self) -> list[tuple[float, str]]:
        """Return value and marker of the published number: of a range two, of none nothing."""
        if self.mark is None:
            return []
        if self.kind in (BESIDE_STACK, IN_STACK):
            return [(self.mark.value, SHAPES[self.kind])]
        if self.mark.value_hi is not None:
            return [(self.mark.value, "^"), (self.mark.value_hi, "v")]
        shape = SHAPES.get(self.kind or self.row["quantity"], OTHER)
        return [(self.mark.value, BOUNDS.get(self.mark.qualifier, shape))]

    def cells(self) -> dict[str, Any]:
        """Return the row of the CSV."""
        deviation_pct = self.mark and self.mark.deviation_pct(self.value)
        return {**self.row, **cells(self.mark), "deviation_pct": deviation_pct}


# -- marks ----------------------------------------------------------------------------------------


def draw_mark(
    axes: Axes, x: float, plotted: Plotted, width: float = 0.0, side: int = 1, *, line: bool = True
) -> None:
    """Draw the published number of a bar or point at `x`, at its value; nothing without one.

    Over a bar, `width` wide, it is a line (unless `line` is False) with a marker at its right end
    (`side` 1), its left (-1) or its middle (0). A point has no width, and a marker beside it. A
    bound is an arrow, a range two.
    """
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    gap_in = side * (AT_BAR_PT if width else AT_POINT_PT) / 72.0
    shifted = axes.transData + ScaledTranslation(gap_in, 0.0, figure.dpi_scale_trans)
    for value, marker in plotted.ends():
        if width and line:
            is_on_dark = plotted.row["quantity"] in ON_DARK and value < plotted.height
            axes.plot(
                [x - width / 2, x + width / 2], [value, value], color=plotted.ink, linewidth=1.3,
                linestyle="-" if plotted.seen_by_fit else (0, (2.0, 1.2)), clip_on=False,
                solid_capstyle="butt", zorder=4.5, path_effects=[halo(2.2)] if is_on_dark else [],
            )  # fmt: skip
        look = mark_look(marker, plotted.seen_by_fit, plotted.ink)
        marker_x = x + side * width / 2
        (drawn,) = axes.plot(marker_x, value, **look, zorder=5, clip_on=False, transform=shifted)
        drawn.set_in_layout(False)


def halo(width_pt: float) -> withStroke:
    """Return the white rim of what stands on dark bars or on lines."""
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=width_pt, foreground="white")


def mark_look(marker: str, is_seen: bool, colour: str) -> Look:
    """Return matplotlib's keywords of a published marker, filled where the fit has seen it."""
    return {
        "marker": marker,
        "markersize": {"d": 5.0, "*": 6.0}.get(marker, 3.8),
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "markeredgecolor": colour,
        "markerfacecolor": colour if is_seen else "white",
        "path_effects": [halo(1.6)],
    }


def handles(rows: Iterable[Plotted], colour: str, *, together: bool = False) -> list[Artist]:
    """Make a legend entry for each kind of published mark, filled where the fit has seen one.

    With `together` they are one text entry with a glyph for each kind.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from epochwatt.figures.common.style import label_of

    seen_by_kind: dict[tuple[str, str], list[bool]] = {}
    for row in rows:
        name = row.kind or row.row["quantity"]
        for _, marker in row.ends():
            words = WORDS.get(marker) or WORDS.get(name) or label_of(name)
            seen_by_kind.setdefault((words, marker), []).append(row.seen_by_fit)
    if together:
        kinds = [f"{GLYPHS[marker]} {words}" for words, marker in seen_by_kind if marker]
        kinds += [f"thin bar: {words}" for words, marker in seen_by_kind if not marker]
        return [Line2D([], [], linestyle="none", label=f"published: {', '.join(kinds)}")]
    entries: list[Artist] = []
    for (words, marker), seen in seen_by_kind.items():
        look, label = mark_look(marker, any(seen), colour), f"published {words}"
        if marker:
            entries.append(Line2D([], [], label=label, **look))
        else:
            face = look["markerfacecolor"]
            entries.append(Patch(facecolor=face, edgecolor=colour, linewidth=0.7, label=label))
    return entries


# -- relations: ratios, changes, shares and spreads -----------------------------------------------


@dataclass(frozen=True)
class Related:
    """A published relation and what it is here."""

    relation: Relation
    here: tuple[float, ...]  # one number, or the lowest and the highest of several runs
    mark: Mark  # what is published
    ink: str  # its colour
    about: Cells | None = None  # columns of the CSV that tell whose it is, where it is of several

    @property
    def published_id(self) -> str:
        """Its id."""
        return self.relation.id

    @property
    def seen_by_fit(self) -> bool:
        """Whether the simulated boards were fitted to it."""
        return self.mark.seen_by_fit

    @property
    def linestyle(self) -> Any:
        """Solid where the fit has seen it, else dashed."""
        return "-" if self.seen_by_fit else DASHES

    def reading(self, *, a_is_left: bool = True) -> str:
        """Return the published number, then ours, as text: `÷1.4, here ÷1.52`, `+30 %, here +28 %`.

        A factor leads from the left bar to the right one; the left one is A or B.
        """
        r = self.relation
        is_change = r.formula.endswith("(B-A)/A") and r.qualifier not in BOUNDS
        plus, factor = "+" if is_change else "", ""
        if r.unit == "x":
            right_is_smaller = (r.formula == "A/B") == a_is_left
            factor = "÷" if right_is_smaller else "×"
        ends = (r.value,) if r.value_hi is None else (r.value, r.value_hi)
        published = " to ".join(f"{end:{plus}g}" for end in ends)
        ours = []
        for end in self.here:
            digits = ".3g" if factor else ".1f" if abs(end) < 100 else ".0f"
            ours.append(f"{end:{plus}{digits}}")
        here, unit = " to ".join(dict.fromkeys(ours)), UNITS.get(r.unit, f" {r.unit}")
        return f"{SIGNS.get(r.qualifier, '')}{factor}{published}{unit}, here {factor}{here}{unit}"

    def cells(self) -> dict[str, Any]:
        """Return the row of the CSV."""
        r = self.relation
        return {
            **(self.about or {}),
            "quantity": f"{r.metric} {r.formula}",
            "value": self.here[0],
            "value_hi": self.here[-1] if len(self.here) > 1 else None,
            "missing": "",
            **cells(self.mark),
            "is_relation": True,
            "deviation_pct": None,
        }


def numbers_of(runs: Iterable[RunData], statistic: str = "mean") -> NumberOf:
    """Return a function from a published config and metric to our mean or median; None: no run.

    Metrics are as in `metric_of`.
    """
    runs_by_key = {key_of(run): run for run in runs if run.epochs}

    def number_of(config: Config, metric: str) -> float | None:
        run = runs_by_key.get(run_key({**config, "epoch": None}))
        return None if run is None else metric_of(run, metric, config["epoch"], statistic)

    return number_of


def key_of(run: RunData) -> tuple[Any, ...]:
    """Return the key that published configs find a run by, less epochs; its id if none can."""
    return _key(run.factors, None) if trains_as_published(run.factors) else (run.id,)


def metric_of(run: RunData, metric: str, epoch_set: str, statistic: str = "mean") -> float | None:
    """Compute the mean or median of a metric over a run's valid epochs; None: it is not known.

    A metric is a column of epochs.csv, `median_` and a column, a time `..._ms_per_minibatch`, or a
    share in % of one or more columns in another, `(stall_s+compute_s)/e2e_s`.
    """
    numerator, slash, denominator = metric.partition("/")
    if slash:
        parts = [metric_of(run, name, epoch_set) for name in numerator.strip("()").split("+")]
        total = metric_of(run, denominator, epoch_set)
        known = [part for part in parts if part is not None]
        return 100.0 * sum(known) / total if total and len(known) == len(parts) else None
    if metric.endswith(PER_MINIBATCH):
        seconds = run.number(metric.replace(PER_MINIBATCH, "_s"), epoch_set).value
        count = run.number("n_minibatches", epoch_set).value
        return 1e3 * seconds / count if seconds is not None and count else None
    statistic = "median" if metric.startswith("median_") else statistic
    column = COLUMNS.get(metric, metric)
    known_column = not run.epochs or column in run.epochs[0]
    return run.number(column, epoch_set, statistic).value if known_column else None


def here_of(relation: Relation, number_of: NumberOf) -> tuple[float, ...]:
    """Evaluate a published relation on our numbers: one value, or the lowest and the highest.

    The unit is the relation's. Empty where a run or number of it is missing, or it would divide by
    zero.
    """
    values = []  # an array for each side
    for side in relation.sides:
        numbers = [number_of(config, relation.metric) for config in single(side)]
        known = np.array([number for number in numbers if number is not None])
        if not known.size or known.size < len(numbers):
            return ()
        values.append(known)
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


def spread_pct(formula: str, values_by_board: Sequence[np.ndarray]) -> tuple[float, ...]:
    """Compute a spread of SIGMETRICS 2023, section 5.4, %; empty if a median is 0 or unknown.

    `max|x-median|`: the farthest value from its board's median, of the worst board. Else range over
    median of the values of all boards together.
    """
    boards = [values for values in values_by_board if values.size]
    is_farthest = "max|x-median|" in formula
    groups = boards if is_farthest or not boards else [np.concatenate(boards)]
    medians = [np.median(values) for values in groups]
    if not groups or not all(medians):
        return ()
    widths = [
        np.abs(values - median).max() if is_farthest else np.ptp(values)
        for values, median in zip(groups, medians, strict=True)
    ]
    return (100.0 * max(float(w / median) for w, median in zip(widths, medians, strict=True)),)
