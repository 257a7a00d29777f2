"""The published numbers that a figure shows as marks on top of its own."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation

from epochwatt.figures.common.layout import DEVIATION, MARK, places_of
from epochwatt.published.folds import load_seen
from epochwatt.published.numbers import (
    KEYS,
    Measurement,
    load_published,
    run_key,
    single,
    trains_as_published,
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
    "first_stall_s": (">", "published stall, first epoch"),
    "first_e2e_s": (">", "published E2E, first epoch"),
    "energy_paper_wh": ("D", "published energy"),
    "stall_ms_per_minibatch": ("h", "published, per mini-batch"),
    "compute_ms_per_minibatch": ("h", "published, per mini-batch"),
    "cpu_below_peak_time_pct": ("D", "published: share of time below the peak clock"),
    "n_epochs_in_15h": ("D", "published, epochs in 15 h"),
}
NOTED_PCT = 10.0  # a deviation from a published number that is printed beside its mark
NOTED_POINTS = 3.0  # the same, of a number that is a percentage
AT_BAR_PT, AT_POINT_PT = 2.0, 6.0  # of a mark's marker, beside its bar or point
TEXT_AT_BAR_PT = 4.6  # of a deviation, so that it stands in the gap beside the bar
DARK = 0.5  # HSV value of bars on which black is not seen
INFERRED = "inferred:"  # begins the note of a number of which a setting is not printed
SEEN = {True: "used in the fit", False: "not used in the fit"}


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
    factors : of the run (`columns.FACTORS`)
    quantity : a column of epochs.csv, or a metric of measurements.csv
    epoch_set : 0, 1+ or all
    """
    if not trains_as_published(factors):
        return None
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
    low, high = _ends(row)
    nearest = min(max(value, low), high)
    if value == nearest:
        return 0.0
    return 100.0 * (value - nearest) / nearest if nearest else None


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    value, qualifier = row["published"], row["published_qualifier"]
    if qualifier in ("less_than", "at_most"):
        return -math.inf, value
    if qualifier == "at_least":
        return value, math.inf
    return value, value if row["published_hi"] is None else row["published_hi"]


def deviation_text(row: Mapping[str, Any]) -> str:
    """Return the deviation in words where it is beyond `NOTED_PCT`; else nothing.

    That of a percentage is in points, where it is beyond `NOTED_POINTS`.
    """
    off = deviation_pct(row)
    if is_percentage(row):
        low, high = _ends(row) if off is not None else (0.0, 0.0)
        points = 0.0 if off is None else row["value"] - min(max(row["value"], low), high)
        return f"{points:+.0f} points" if abs(points) > NOTED_POINTS else ""
    return f"{off:+.0f} %" if off is not None and abs(off) > NOTED_PCT else ""


def is_percentage(row: Mapping[str, Any]) -> bool:
    """Say whether a row's number is one, so that it differs from another in points."""
    return str(row.get("quantity", "")).endswith("_pct")


def draw_mark(
    axes: Axes,
    x: float,
    row: Mapping[str, Any],
    colour: str,
    width: float = 0.0,
    rotation: float = 90.0,
    side: int = 1,
    *,
    line: bool = True,
) -> None:
    """Draw what is published of a row of the CSV, at its value; nothing where nothing is.

    Over a bar it is a line of the bar's width with a small marker at its end, in the gap beside the
    bar; of a point it is a marker at its side. Filled and solid where
    the fit has seen the value, open and dashed where not; a bound is an arrow, a range two. The
    deviation stands at the marker where it is beyond `NOTED_PCT`.

    Parameters
    ----------
    x : middle of the bar, or the point
    width : of the bar; 0: a point
    rotation : of the deviation's text; 0: it stands at the right of the marker
    side : 1: the marker is at the right, -1: at the left, as of a pair's left bar, 0: on the bar
    line : over the bar; without it the marker stands alone beside the bar
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    aside = side * (AT_BAR_PT if width else AT_POINT_PT)
    text_aside = side * (TEXT_AT_BAR_PT if width else AT_POINT_PT)
    moved = axes.transData + ScaledTranslation(aside / 72.0, 0.0, figure.dpi_scale_trans)
    is_seen, end = bool(row["seen_by_fit"]), x + side * width / 2
    for value, marker in _drawn(row):
        look = _look(marker, is_seen, colour)
        if width and line:
            halo = _is_on_dark(axes, x, value)
            axes.plot(
                [x - width / 2, x + width / 2], [value, value], **_tick(is_seen, colour, halo)
            )
        (marker_drawn,) = axes.plot(end, value, **look, zorder=5, clip_on=False, transform=moved)
        marker_drawn.set(in_layout=False, label=MARK)
    if text := deviation_text(row):
        value = row["published"] if row["published_hi"] is None else row["published_hi"]
        deviation = axes.annotate(
            text, (end, value), xytext=(0.0, 0.0), textcoords="offset points",
            fontsize="x-small", color=colour, label=f"{DEVIATION} {text_aside} {rotation}",
            path_effects=[withStroke(linewidth=2.0, foreground="white")], zorder=6,
        )  # fmt: skip
        deviation.set(**places_of(deviation)[0])
        deviation.set_in_layout(False)


def _is_on_dark(axes: Axes, x: float, value: float) -> bool:
    """Say whether a point is inside of a dark bar; elsewhere a halo would hide a bar's top."""
    return any(
        bar.get_x() <= x <= bar.get_x() + bar.get_width()
        and bar.get_y() < value < bar.get_y() + bar.get_height()
        and rgb_to_hsv(to_rgb(bar.get_facecolor()))[2] < DARK
        for bar in axes.patches
        if isinstance(bar, Rectangle)
    )


def _tick(is_seen: bool, colour: str, halo: bool) -> dict[str, Any]:
    return {
        **{"color": colour, "linewidth": 1.3, "zorder": 4.5, "clip_on": False},
        **{"linestyle": "-" if is_seen else (0, (2.0, 1.2)), "solid_capstyle": "butt"},
        "path_effects": [withStroke(linewidth=2.2, foreground="white")] if halo else [],
    }


def _drawn(row: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return value and marker of what is drawn of a row of the CSV."""
    shape, _ = SHAPES.get(row.get("quantity", ""), OTHER)
    qualifier = row["published_qualifier"]
    first = "^" if qualifier == RANGE else BOUNDS.get(qualifier, shape)
    ends = ((row["published"], first), (row["published_hi"], "v"))
    return [(value, marker) for value, marker in ends if value is not None]


def handles(rows: Iterable[Mapping[str, Any]], colour: str) -> list[Line2D]:
    """Return a legend's entry for each kind of mark; `fit_note` says what filled and open mean.

    A kind is filled where the fit has seen all of it.
    """
    labels: dict[str, str] = {}
    is_seen: dict[str, list[bool]] = {}
    for row in filter(is_marked, rows):
        _, value_label = SHAPES.get(row.get("quantity", ""), OTHER)
        for _, shape in _drawn(row):
            label = ARROWS.get(shape, value_label)
            labels[shape] = label if labels.get(shape, label) == label else OTHER[1]
            is_seen.setdefault(shape, []).append(bool(row["seen_by_fit"]))
    return [
        Line2D([], [], label=label, **_look(shape, all(is_seen[shape]), colour))
        for shape, label in labels.items()
    ]


def fit_note(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return for the corner what filled and open marks mean; measured ones have no fit."""
    seen = {bool(r["seen_by_fit"]) for r in rows if is_marked(r) and r.get("backend") == TWIN}
    looks = {True: "filled", False: "open"}
    return "".join(f", {looks[one]}: {SEEN[one]}" for one in SEEN if one in seen)


def inferred(published: str) -> dict[str, Measurement]:
    """Return by id the numbers of whose setting the paper does not say all; their notes say what.

    Parameters
    ----------
    published : folder config/published
    """
    facts = load_published(Path(published)).measurements
    return {name: fact for name, fact in facts.items() if fact.note.startswith(INFERRED)}


def inferred_note(published: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return for the corner which settings of marked runs the paper does not say; else nothing.

    Parameters
    ----------
    published : folder config/published
    """
    facts = inferred(published)
    of_settings: dict[str, list[str]] = {}
    for row in filter(is_marked, rows):
        for name in str(row["published_id"]).split():
            if fact := facts.get(name):
                settings = fact.note.removeprefix(INFERRED).strip()
                of_settings.setdefault(settings, []).append(f"{fact.value:g} {fact.unit}")
    phrase = "; inferred, as the paper does not say it: {} of {}"
    return "".join(
        phrase.format(settings, " and ".join(dict.fromkeys(values)))
        for settings, values in of_settings.items()
    )


def _look(marker: str, is_seen: bool, colour: str) -> dict[str, Any]:
    return {
        **{"marker": marker, "markersize": 5.0 if marker == "d" else 3.8},
        **{"markeredgewidth": 0.8, "linestyle": "none"},
        **{"markeredgecolor": colour, "markerfacecolor": colour if is_seen else "white"},
        "path_effects": [withStroke(linewidth=1.6, foreground="white")],  # seen on dark bars
    }
