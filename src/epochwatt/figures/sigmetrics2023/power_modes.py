"""Power modes in the plane of time and energy, or of time and power: Figs. 8 and 11 to 16.

Source: SIGMETRICS 2023, section 5.6 and appendix. A point is the mean of a run's epochs 1+, the
letter beside it the power mode, the line the Pareto front of each network, with rings on its modes.
Modes that section 5.6.6 names for LeNet-5 alone are pale in the other fields, and no part of the
front, as in `config/published/takeaways.csv`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from epochwatt import columns
from epochwatt.analysis.pareto import pareto_front
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import Bar, draw_whisker
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.names import Names, Place, on_page
from epochwatt.figures.common.published import DASHES, METRICS, SIGNS, Plotted, Related, halo
from epochwatt.figures.common.runs import mode_setting
from epochwatt.figures.sigmetrics2023.modes import (
    groups_of,
    letters_of,
    outside,
    ranges,
    remark_pale,
)
from epochwatt.published.numbers import SPREADS

SOLID, TRIANGLE, HOLLOW, LINE = ("o", True), ("^", True), ("s", False), ("x", False)
UNKNOWN = ("*", False)  # of a run whose records are gone
SIGNS_OF = {SOLID: "●", TRIANGLE: "▲", HOLLOW: "□", LINE: "✕"}
CROSS: style.Look = {"marker": "P", "markersize": 4.8, "markeredgewidth": 0.6}
RIM = 1.4  # what the front's dark rim adds to its width: yellow alone is hard to see
COLUMNS = 3  # fields side by side
CROSS_PT, RING_PT = 8.0, 9.0  # what names keep clear of
BELOW = 0.26  # of a field's height, kept free below the points for the spread
BRACKET, BRACKET_TEXT = 0.155, 0.02  # height of the spread's bracket and of its text in a field
SHORTEST_PT = 26.0  # a shorter arrow is a stub

Marker = tuple[str, bool]  # and whether it is filled


class Point(NamedTuple):
    """A power mode: its rows of the CSV, and what its marker shows."""

    mode: str
    x: Plotted
    e2e: Plotted
    is_compared: bool
    setting: float | None

    @property
    def place(self) -> Place | None:
        """Return where it is drawn; None: a number is missing."""
        x, y = self.x.value, self.e2e.value
        return None if x is None or y is None else (x, y)


@dataclass(frozen=True)
class Cloud:
    """The power modes of one network and board."""

    label: str
    model: str
    points: Sequence[Point]
    front: Sequence[Place]  # from left to right
    outside: frozenset[str]  # modes that the front is not made of

    def place(self, mode: str) -> Place | None:
        """Return where a mode is; None where it is not there."""
        return next((point.place for point in self.points if point.mode == mode), None)


def draw(job: Job, x: str, marker_by: str = "", change: Sequence[str] = ()) -> None:
    """Draw a figure of one panel, a field for each network, over energy_paper_wh or power_mean_w.

    The markers may show a setting of the modes. `change` is two modes that the text compares, such
    as f and e: an arrow leads from one to the other.
    """
    groups = groups_of(job, by_name=False)
    clouds = [cloud_of(bars, job, x, marker_by) for bars in groups]
    points = [point for cloud in clouds for point in cloud.points]
    markers = markers_of({point.setting for point in points if point.setting is not None})
    with job.panel(job.figure, [bar.run for bars in groups for bar in bars]) as (figure, axes):
        fields = _fields(figure, axes, len(clouds), x)
        spreads: list[Related] = []
        for cloud, field in zip(clouds, fields, strict=False):
            for point in cloud.points:
                marker = markers.get(point.setting or 0.0, UNKNOWN) if marker_by else SOLID
                draw_point(point, field, marker, job.colour(cloud.model), job)
            for look in _front(job):
                field.plot(*zip(*cloud.front, strict=True), **look)
            field.set_title(cloud.label, fontsize="small")
            for point in cloud.points:
                draw_published(point, field, job)
            spreads += [] if marker_by else draw_spread(cloud, x, field, job)
        _remark(job, clouds)
        style.lay_out(figure)
        arrows = [draw_arrow(cloud, field, change) for cloud, field in zip(clouds, fields)]  # noqa: B905
        entries = _entries(clouds, markers, marker_by, job)
        if any(arrows):
            look = {"color": "black", "linewidth": 0.8, "marker": ">", "markersize": 3.5}
            entries.append(
                Line2D([], [], label=f"{' to '.join(change)}: the paper's example", **look)
            )
        marked = [row for point in points for row in (point.x, point.e2e)]
        job.legend(figure, entries, spreads, change="")
        style.lay_out(figure)  # from here on the axes are as they will be
        for cloud, field, arrow_ends in zip(clouds, fields, arrows, strict=False):
            write_names(cloud, field, arrow_ends, job.colour(cloud.model), job)
        job.save(figure, job.figure, marked)


def cloud_of(bars: Sequence[Bar], job: Job, x: str, by: str = "") -> Cloud:
    """Make the points and Pareto front of a group's power modes: E2E over the column `x`.

    `by` is a setting of the modes (`gpu_mhz`, ...) that points keep. Modes that the paper does not
    compare are no part of the front.
    """
    pale, factors = outside(job, bars), bars[0].run.factors
    values = [[bar.run.number(column).value for column in (x, "e2e_s")] for bar in bars]
    known = [n for n, pair in enumerate(values) if None not in pair and bars[n].tick not in pale]
    xy = np.array([values[n] for n in known], dtype=float).reshape(-1, 2)
    front = [known[n] for n in pareto_front(xy[:, 0], xy[:, 1])]
    points = []
    for n, bar in enumerate(bars):
        is_compared = bar.tick not in pale
        more: dict[str, Any] = {"compared": is_compared}
        more["on_front"] = n in front if is_compared and None not in values[n] else None
        setting = mode_setting(bar.run, job.records.get(bar.run.id, ""), by) if by else None
        more |= {by: setting} if by else {}
        point_x, e2e = (job.plotted(bar.run, column, **more) for column in (x, "e2e_s"))
        points.append(Point(bar.tick, point_x, e2e, is_compared, setting))
    label = bars[0].group.replace("\n", ", ")
    on_front = [place for n in front if (place := points[n].place)]
    return Cloud(label, factors["model"], points, on_front, pale)


def markers_of(values: set[float]) -> dict[float, Marker]:
    """Return the marker of each value of a setting, from high to low."""
    kinds = (SOLID, HOLLOW, LINE) if len(values) <= 3 else (SOLID, TRIANGLE, HOLLOW, LINE)
    ordered = sorted(values, reverse=True)
    return {value: kinds[min(n, len(kinds) - 1)] for n, value in enumerate(ordered)}


def _fields(figure: Figure, axes: Axes, n: int, x: str) -> list[Axes]:
    """Return a field for each network instead of the panel's one."""
    axes.remove()
    n_columns = min(max(n, 1), COLUMNS)
    grid = figure.subplots(-(-max(n, 1) // n_columns), n_columns, squeeze=False)
    is_energy = x == "energy_paper_wh"  # in the paper's unit; the CSV stays in Wh
    for field in grid.ravel()[n:]:
        field.set_visible(n == 0)
    for field in grid.ravel():
        field.grid(visible=True, axis="both")
        field.margins(0.1)
        field.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10]))
        if is_energy:
            field.xaxis.set_major_formatter(FuncFormatter(lambda wh, _: f"{1e3 * wh:g}"))
        field.set_xlabel(style.axis_title(x, unit="mWh" if is_energy else "", width=20))
    for field in grid[:, 0]:
        field.set_ylabel(style.axis_title("e2e_s", "epochs 1+"))
    return list(grid.ravel())


def draw_point(point: Point, field: Axes, marker: Marker, colour: str, job: Job) -> None:
    """Draw a mode: pale where it is not compared."""
    if point.place is None:
        return
    shade, zorder = (colour, 3.0) if point.is_compared else (style.pale(colour), 2.8)
    draw_whisker(field, point.place[0], point.e2e, job)
    field.plot(*point.place, zorder=zorder, **_look(marker, shade))


def _look(marker: Marker, colour: str) -> style.Look:
    shape, is_filled = marker
    return {
        **{"marker": shape, "markersize": 4.2 if shape == "s" else 4.6, "linestyle": "none"},
        "markerfacecolor": colour if is_filled else "white",
        "markeredgecolor": "white" if is_filled else colour,  # what lies over another is seen
        "markeredgewidth": 1.4 if shape == LINE[0] else 0.6,
    }


def _front(job: Job) -> list[style.Look]:
    """Return the looks of the front: a line with a ring on each mode, and their dark rim below."""
    ring: style.Look = {"marker": "o", "markersize": 8.5, "markerfacecolor": "white", "zorder": 2.7}
    colours = {job.colour("missing"): 1.6 + RIM, job.colour("pareto"): 1.6}
    return [ring | {"color": c, "linewidth": w, "markeredgewidth": w} for c, w in colours.items()]


def draw_published(point: Point, field: Axes, job: Job) -> None:
    """Draw a mode's published numbers: both as a cross tied to our point, one as a line across."""
    x, y = point.x.mark, point.e2e.mark
    marks = [mark for mark in (x, y) if mark]
    if not marks:
        return
    ink, is_seen = job.worst((point.x.ink, point.e2e.ink)), all(mark.seen_by_fit for mark in marks)
    line: style.Look = {"color": ink, "linewidth": 1.0, "zorder": 1.5}
    line["linestyle"] = "-" if is_seen else DASHES
    if x and y:
        field.plot(x.value, y.value, zorder=3.1, **_cross(ink, is_seen=is_seen))
        if point.place:
            ends = zip(point.place, (x.value, y.value), strict=True)
            field.plot(*ends, color=ink, linewidth=0.7, zorder=2.9)
    elif x:
        field.axvline(x.value, **line)
    elif y:
        field.axhline(y.value, **line)


def _cross(colour: str, *, is_seen: bool) -> style.Look:
    face = colour if is_seen else "white"
    return {**CROSS, "markeredgecolor": colour, "markerfacecolor": face, "linestyle": "none"}


def draw_spread(cloud: Cloud, x: str, field: Axes, job: Job) -> list[Related]:
    """Draw a bracket below the points for a published spread over modes; return it in a list.

    Empty: none is published, or fewer than two of its modes are drawn. Extends the y axis.
    """
    factors = cloud.points[0].x.row
    wanted = (SPREADS[0], METRICS.get(x, x), job.paper, factors["device"], cloud.model)
    for fact in job.relations:
        config = fact.config_a
        found = (fact.formula, fact.metric, fact.paper, config.get("device"), config.get("model"))
        modes = set(config.get("power_mode", ())) & {point.mode for point in cloud.points}
        there = [place[0] for mode in modes if (place := cloud.place(mode))]
        if found != wanted or len(there) < 2:
            continue
        low, high = min(there), max(there)
        here = 100.0 * (high - low) / high
        spread = job.relate(fact, (here,))
        bottom, top = field.get_ylim()
        field.set_ylim(bottom - BELOW * (top - bottom), top)
        feet = [BRACKET + height for height in (0.025, 0.0, 0.0, 0.025)]
        field.plot([low, low, high, high], feet, color=spread.ink, linewidth=0.9,
                   transform=field.get_xaxis_transform())  # fmt: skip
        printed = f"{SIGNS.get(fact.qualifier, '')}{fact.value:g} %"
        field.text(
            0.5, BRACKET_TEXT, f"spread, {ranges(modes)}:\n{printed}, here {here:.0f} %",
            transform=field.transAxes, ha="center", va="bottom", fontsize="x-small",
            color=spread.ink, path_effects=[halo(2.0)],
        )  # fmt: skip
        return [spread]
    return []


def _remark(job: Job, clouds: Sequence[Cloud]) -> None:
    """Say in the caption which modes are pale, and what is missing."""
    job.remark(job.figure, "Letters are power modes; each field has its own scales.")
    remark_pale(job, job.figure, {mode for cloud in clouds for mode in cloud.outside})
    missing = [
        f"{cloud.label}, {point.mode} ({point.x.row['missing'] or point.e2e.row['missing']})"
        for cloud in clouds
        for point in cloud.points
        if point.place is None
    ]
    job.remark(job.figure, f"Missing: {', '.join(missing)}." if missing else "")


def _entries(
    clouds: Sequence[Cloud], markers: dict[float, Marker], by: str, job: Job
) -> list[Artist]:
    """Return the legend's entries: what letters and markers show, the front, what is published."""
    entries: list[Artist] = []
    words = [letters_of(point.mode for cloud in clouds for point in cloud.points)]
    if markers:
        values = ", ".join(f"{SIGNS_OF[marker]} {value:g}" for value, marker in markers.items())
        words.append(f"{columns.label(by)}: {values} {columns.unit(by)}".strip())
    if words := [part for part in words if part]:
        entries.append(Line2D([], [], linestyle="none", label="; ".join(words)))
    *_, look = _front(job)
    entries.append(Line2D([], [], label="Pareto front, its modes ringed", **look))
    black, points = job.colour("published"), [p for cloud in clouds for p in cloud.points]
    both = [point for point in points if point.x.mark and point.e2e.mark]
    for point in both[:1]:
        x, y = (style.label_of(row.row["quantity"]) for row in (point.x, point.e2e))
        label = f"published {x} and {y}"
        entries.append(Line2D([], [], label=label, **_cross(black, is_seen=True)))
    alone = [
        (row, other)
        for p in points
        for row, other in ((p.x, p.e2e), (p.e2e, p.x))
        if row.mark and not other.mark
    ]
    modes_of: dict[tuple[str, str], set[str]] = {}  # printed quantity, the other -> modes
    for row, other in alone:
        names = style.label_of(row.row["quantity"]), style.label_of(other.row["quantity"])
        modes_of.setdefault(names, set()).add(row.row["power_mode"])
    labels = [
        f"published {name} of {ranges(modes)}, {lacking} not printed"
        for (name, lacking), modes in modes_of.items()
    ]
    return entries + [Line2D([], [], color=black, linewidth=1.0, label=each) for each in labels]


def write_names(cloud: Cloud, field: Axes, arrow: Sequence[Place], colour: str, job: Job) -> None:
    """Write each point's power mode beside it, clear of what is drawn and of the change's arrow."""
    names = Names(field, [point.place for point in cloud.points if point.place])
    names.avoid(cloud.front, RING_PT)
    names.avoid_line(arrow)
    names.avoid_line(cloud.front)
    for point in cloud.points:
        x, y = point.x.mark, point.e2e.mark
        if x and y:
            names.avoid([(x.value, y.value)], CROSS_PT)
        elif y:
            names.avoid_line([(end, y.value) for end in field.get_xlim()])
    for point in cloud.points:
        if point.place:
            names.write(point.place, point.mode, colour)


def draw_arrow(cloud: Cloud, field: Axes, modes: Sequence[str]) -> list[Place]:
    """Draw an arrow between two power modes; return its ends, nothing where it would be a stub.

    Call it when the figure is laid out.
    """
    ends = [place for mode in modes if (place := cloud.place(mode))]
    if len(ends) != 2 or math.dist(*(on_page(field, end) for end in ends)) < SHORTEST_PT:
        return []
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 0.8, "shrinkA": 5, "shrinkB": 5}
    field.annotate("", ends[1], ends[0], arrowprops=arrow, zorder=2.6)
    return ends
