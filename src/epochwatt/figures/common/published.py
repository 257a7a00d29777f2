"""The published numbers that a figure shows as marks on top of its own."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from epochwatt.published.folds import load_seen
from epochwatt.published.numbers import (
    KEYS,
    Measurement,
    load_published,
    run_key,
    single,
)
from epochwatt.study.runs import TWIN

METRICS = {  # our column -> name in the tables
    "power_mean_w": "power_w",
    "energy_paper_wh": "energy_wh",
    "read_iops": "iops",
}
ON_BOARD = "i"  # the idle state that the module's own sensors were read in
BOUNDS = {"less_than": "v", "at_most": "v", "at_least": "^"}  # qualifier -> marker
RANGE = "range"  # qualifier of a lower and an upper bound of one run
ARROWS = {"v": "published upper bound", "^": "published lower bound"}  # marker -> in a legend
OTHER = ("D", "published")
SHAPES = {  # quantity -> marker of its values, name in a legend; of others as OTHER
    "stall_s": ("s", "published stall"),
    "e2e_s": ("d", "published E2E"),
    "compute_s": ("P", "published compute"),
    "stall_ms_per_minibatch": ("h", "published, of a mini-batch"),
    "compute_ms_per_minibatch": ("h", "published, of a mini-batch"),
    "cpu_below_peak_time_pct": ("D", "published: below 90 %"),
    "n_epochs_in_15h": ("D", "published, epochs in 15 h"),
}


class Mark(NamedTuple):
    """One published number.

    Attributes
    ----------
    value, value_hi : in the unit of its metric; value_hi is the upper end of a range
    id : of its row in config/published/measurements.csv, of a range of both rows
    qualifier : exact, approx, range, or a bound: less_than, at_most, at_least
    seen_by_fit : whether the simulated boards were fitted to it
    """

    value: float
    value_hi: float | None
    id: str
    qualifier: str
    seen_by_fit: bool


Marks = Mapping[tuple[Any, ...], Mark]  # key of a run and epoch set, metric -> mark


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
            if fact.paper == paper and fact.is_bound == bounds:
                for key in _keys(fact):
                    new = Mark(fact.value, None, fact.id, fact.qualifier, fact.id in seen)
                    marks[key] = _joined(marks[key], new) if key in marks else new
    return marks


def seen_ids(twin: str, backend: str) -> frozenset[str]:
    """Return what the simulated boards were fitted to; of a measured backend nothing."""
    return load_seen(Path(twin)) if backend == TWIN else frozenset()


def _joined(first: Mark, second: Mark) -> Mark:
    """Return the range that a lower bound and the upper one after it make; else what is known."""
    if (first.qualifier, second.qualifier) != ("at_least", "at_most"):
        return first
    ids = f"{first.id} {second.id}"
    return Mark(first.value, second.value, ids, RANGE, first.seen_by_fit and second.seen_by_fit)


def _keys(fact: Measurement) -> list[tuple[Any, ...]]:
    if fact.kind not in ("run", "idle"):
        return []
    return [(*run_key(config), fact.metric) for config in single(fact.config)]


def mark(
    marks: Marks, factors: Mapping[str, Any], quantity: str, epoch_set: str = "1+"
) -> Mark | None:
    """Return what is published of a run; None: nothing.

    Parameters
    ----------
    factors : of the run (`fields.FACTORS`)
    quantity : a column of epochs.csv, or a metric of measurements.csv
    epoch_set : 0, 1+ or all
    """
    config = {key: factors[key] for key in KEYS if key in factors}
    config |= {"cache": factors["cache_policy"], "scale": factors["dataset_scale"]}
    return marks.get((*run_key({**config, "epoch": epoch_set}), METRICS.get(quantity, quantity)))


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
    """Say whether a row of the CSV has a published number."""
    return row.get("published") is not None


def draw_mark(axes: Axes, x: float, row: Mapping[str, Any], colour: str) -> None:
    """Draw what is published of a row of the CSV; nothing where nothing is.

    Filled where the fit has seen the value, open where not; a bound is an arrow, a range two.
    """
    for value, marker in _drawn(row):
        look = _look(marker, bool(row["seen_by_fit"]), colour)
        axes.plot(x, value, **look, zorder=5, clip_on=False)


def _drawn(row: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return value and marker of what is drawn of a row of the CSV."""
    shape, _ = SHAPES.get(row.get("quantity", ""), OTHER)
    qualifier = row["published_qualifier"]
    first = "^" if qualifier == RANGE else BOUNDS.get(qualifier, shape)
    ends = ((row["published"], first), (row["published_hi"], "v"))
    return [(value, marker) for value, marker in ends if value is not None]


def handles(rows: Iterable[Mapping[str, Any]], colour: str) -> list[Line2D]:
    """Return a legend's entry for each kind of mark: filled where the fit has seen all of it."""
    labels: dict[str, str] = {}
    is_seen: dict[str, bool] = {}
    for row in filter(is_marked, rows):
        _, value_label = SHAPES.get(row.get("quantity", ""), OTHER)
        for _, shape in _drawn(row):
            label = ARROWS.get(shape, value_label)
            labels[shape] = label if labels.get(shape, label) == label else OTHER[1]
            is_seen[shape] = is_seen.get(shape, True) and bool(row["seen_by_fit"])
    return [
        Line2D([], [], label=label, **_look(shape, is_seen[shape], colour))
        for shape, label in labels.items()
    ]


def _look(marker: str, is_seen: bool, colour: str) -> dict[str, Any]:
    return {
        **{"marker": marker, "markersize": 6.0 if marker == "d" else 4.5},
        **{"markeredgewidth": 0.9, "linestyle": "none"},
        **{"markeredgecolor": colour, "markerfacecolor": colour if is_seen else "white"},
        "path_effects": [withStroke(linewidth=2.0, foreground="white")],  # seen on dark bars
    }
