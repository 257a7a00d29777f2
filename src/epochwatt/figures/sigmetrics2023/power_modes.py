"""Power modes in the plane of time and energy, or of time and power: Figs. 8 and 11 to 16.

Source: SIGMETRICS 2023, section 5.6 and appendix. A point is the mean of a run's epochs 1+. The
letter beside it is the power mode, which the paper shows by the marker. The line is the Pareto
front of each network. The paper has all networks in one field, LeNet-5 on axes of its own; here
each has its field. Modes that section 5.6.6 names for LeNet-5 alone are pale in the other fields,
and no part of the front, as in the predicates of `config/published/takeaways.csv`.
"""

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator

from epochwatt.board.records import files
from epochwatt.board.records.shapes import OBJECT
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_whisker, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import DASHES, METRICS, SIGNS, is_marked
from epochwatt.figures.common.runs import RunData
from epochwatt.figures.sigmetrics2023.clouds import PALE_NOTE, Cloud, group_runs, ranges
from epochwatt.figures.sigmetrics2023.letters import Place, Taken, along, on_page
from epochwatt.text import counted

STRONGEST = "g"  # AGX's MAXN: a diamond
STRONGEST_LABEL = "mode g (MAXN)"
X_LABELS = {"energy_paper_wh": "energy per epoch (mWh)", "power_mean_w": "average power (W)"}
CLOCKS = {"cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "memory"}
SOLID, TRIANGLE, HOLLOW, LINE = ("o", True), ("^", True), ("s", False), ("x", False)
DIAMOND = ("D", True)
UNKNOWN = ("*", False)  # of a run whose records are gone
COLUMNS = 3  # fields side by side
MOST_MARKERS = 3  # of a legend, beside the front and what is published
RING_PT = 8.0  # how far letters keep from a cross or a diamond
WIDTH = 0.975  # of the figure; the rest is for what stands above the last field
PALE_BELOW, DIAMOND_BELOW = 1.95, 1.85  # order of pale points and of the large diamond
OUTSIDE = "section 5.6.6 has them of LeNet-5 alone"  # of pale points
FRAME_PT = 11.0  # and from a diamond around a marker
SPREAD = "100*(max-min)/max"  # formula of relations
BELOW = 0.26  # of a field's height, kept free below the points for the spread
BRACKET, BRACKET_TEXT = 0.155, 0.02  # height of the spread's bracket and of its text in a field
CROSS: dict[str, Any] = {"marker": "P", "markersize": 4.4, "markeredgewidth": 0.6}
SHORTEST_PT = 13.0  # three markers: a shorter arrow is a stub
CLEAR_PT, OFF_FRONT_PT = 4.0, 1.5  # of the arrow from points and from the front
AT_ENDS = 0.4  # of its length, where it may be near its own points and a front through them

Rows = list[dict[str, Any]]


def draw(job: Job, x: str, marker_by: str = "", change: Sequence[str] = ()) -> None:
    """Draw a figure of one panel, a field for each network.

    Parameters
    ----------
    x : column on the x axis, `energy_paper_wh` or `power_mean_w`
    marker_by : setting of the power modes that the markers show; empty: none
    change : two power modes that the paper's text compares, such as f and e: an arrow
    """
    clouds, by, name = group_runs(job, x), marker_by, job.figure
    runs = [run for cloud in clouds for run in cloud.runs]
    settings = {r.id: mode_setting(r, job.records.get(r.id, ""), by) for r in runs} if by else {}
    styles = marker_styles({value for value in settings.values() if value is not None})
    colour = job.colours(*{c.model for c in clouds}, "pareto", "missing", "published")
    with job.panel(name, runs) as (figure, axes):
        fields, rows, spreads = _fields(figure, axes, len(clouds), x), [], []
        drawn: list[tuple[Cloud, Axes, list[Rows]]] = []
        for cloud, field in zip(clouds, fields, strict=False):
            more = [{by: settings[run.id]} if by else {} for run in cloud.runs]
            of_cloud = [_rows(cloud, n, job, columns) for n, columns in enumerate(more)]
            marks = [pair for pair in of_cloud if any(map(is_marked, pair))]
            markers = [styles.get(settings.get(r.id), UNKNOWN) if by else None for r in cloud.runs]
            for n, marker in enumerate(markers):
                _draw_point(cloud, n, field, marker, colour)
            on = [point for n in cloud.front if (point := cloud.points[n])]
            if on:
                field.plot(*zip(*on, strict=True), color=colour["pareto"], linewidth=2.5, zorder=1)
            field.set_title(cloud.label, fontsize="small")
            for pair in marks:
                _draw_published(pair, field, job)
            spreads += [] if by else draw_spread(cloud, field, job)
            rows += [row for pair in of_cloud for row in pair]
            drawn.append((cloud, field, marks))
        _remark(job, clouds)
        _legend(figure, clouds, styles, by, rows, spreads, job)
        style.lay_out(figure)  # from here on the axes are as they will be
        for cloud, field, marks in drawn:
            _draw_letters(cloud, field, marks, change, colour[cloud.model], by)
        job.save(figure, name, rows)


def mode_setting(run: RunData, folder: str, name: str) -> float | None:
    """Return a setting of the run's power mode, from the record of an epoch; None: none is there.

    Parameters
    ----------
    folder : with the records of the run's epochs
    name : cores, cpu_mhz, gpu_mhz or emc_mhz
    """
    for row in run.valid("all"):
        path = os.path.join(folder, f"epoch-{row['epoch']}", "record.json")
        if os.path.exists(path):
            record = files.read_json(path, {"factors": {"power_mode_settings?": OBJECT}})
            return record["factors"].get("power_mode_settings", {}).get(name)
    return None


def marker_styles(values: set[float]) -> dict[Any, tuple[str, bool]]:
    """Return marker, and whether it is filled, of each value of a setting, from high to low."""
    kinds = (SOLID, HOLLOW, LINE) if len(values) <= 3 else (SOLID, TRIANGLE, HOLLOW, LINE)
    ordered = sorted(values, reverse=True)
    return {value: kinds[min(n, len(kinds) - 1)] for n, value in enumerate(ordered)}


def _fields(figure: Figure, axes: Axes, n: int, x: str) -> list[Axes]:
    """Return a field for each network instead of the panel's one."""
    axes.remove()
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0.0, 0.0, WIDTH, 1.0))
    n_columns = min(max(n, 1), COLUMNS)
    n_rows = -(-max(n, 1) // n_columns)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for field in grid.ravel()[n:]:
        field.set_visible(n == 0)
    for field in grid.ravel():
        field.grid(visible=True, axis="both")
        field.margins(0.1)
        field.xaxis.set_major_locator(MaxNLocator(4))
        if x == "energy_paper_wh":  # the paper's unit; the CSV stays in Wh
            field.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10]))
            field.xaxis.set_major_formatter(FuncFormatter(lambda wh, _: f"{1e3 * wh:g}"))
        field.set_xlabel(X_LABELS[x])
    for field in grid[:, 0]:
        field.set_ylabel("E2E per epoch, epochs 1+ (s)")
    return list(grid.ravel())


def _draw_point(
    cloud: Cloud, n: int, field: Axes, marker: tuple[str, bool] | None, colour: dict[str, str]
) -> None:
    """Draw a run: pale where it is not compared, the strongest mode as or in a diamond."""
    point, of_model = cloud.points[n], colour[cloud.model]
    if point is None:
        return
    shade = of_model if cloud.is_compared(n) else style.pale(of_model)
    is_strongest = cloud.runs[n].factors["power_mode"] == STRONGEST
    look = _look(marker or (DIAMOND if is_strongest else SOLID), shade)
    draw_whisker(field, point[0], cloud.runs[n], "e2e_s", colour["missing"])
    zorder = 2.0 if cloud.is_compared(n) else PALE_BELOW
    zorder = DIAMOND_BELOW if is_strongest and not marker else zorder
    field.plot(*[[value] for value in point], linestyle="none", zorder=zorder, **look)
    if is_strongest and marker:
        field.plot(
            *[[value] for value in point], linestyle="none", zorder=DIAMOND_BELOW, **_frame(shade)
        )


def _look(marker: tuple[str, bool], colour: str) -> dict[str, Any]:
    shape, is_filled = marker
    return {
        **{"marker": shape, "markersize": {"D": 5.5, "s": 4.2}.get(shape, 4.6)},
        "markerfacecolor": colour if is_filled else "white",
        "markeredgecolor": "white" if is_filled else colour,  # what lies over another is seen
        "markeredgewidth": 1.4 if shape == LINE[0] else 0.6,
    }


def _frame(colour: str) -> dict[str, Any]:
    """Return the look of the diamond around a marker that shows a setting."""
    look = {"marker": "D", "markersize": 9.0, "markerfacecolor": "none"}
    return {**look, "markeredgecolor": colour, "markeredgewidth": 1.0}


def _rows(cloud: Cloud, n: int, job: Job, more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the CSV of a run: x and E2E."""
    run, is_compared = cloud.runs[n], cloud.is_compared(n)
    on_front = n in cloud.front if is_compared and cloud.points[n] else None
    columns = {"compared": is_compared, "on_front": on_front, **more}
    return [
        marked_row(run, quantity, run.number(quantity), job, **columns)
        for quantity in (cloud.x, "e2e_s")
    ]


def _remark(job: Job, clouds: Sequence[Cloud]) -> None:
    """Say in the caption which modes are pale, and what is missing."""
    job.remark(job.figure, "Letters are power modes; each field has its own scales.")
    if modes := set().union(*(cloud.outside for cloud in clouds)):
        job.remark(job.figure, f"Pale {ranges(modes)}: left out of the front, {OUTSIDE}.")
        job.drawn[job.figure].note += PALE_NOTE
    missing = [
        f"{cloud.label}, {run.factors['power_mode']} "
        f"({run.number(cloud.x).missing or run.number('e2e_s').missing})"
        for cloud in clouds
        for run, point in zip(cloud.runs, cloud.points, strict=True)
        if point is None
    ]
    job.remark(job.figure, f"Missing: {', '.join(missing)}." if missing else "")


def _legend(
    figure: Figure,
    clouds: Sequence[Cloud],
    styles: dict[Any, tuple[str, bool]],
    by: str,
    rows: Rows,
    spreads: Rows,
    job: Job,
) -> None:
    def handle(label: str, look: dict[str, Any]) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **look)

    colour = job.colours("missing", "published", "pareto")
    grey, black = colour["missing"], colour["published"]
    handles = [handle(_part(by, v), _look(m, grey)) for v, m in styles.items()]
    if len(handles) <= MOST_MARKERS and any(row["power_mode"] == STRONGEST for row in rows):
        look = _frame(grey) if by else _look(DIAMOND, grey)
        handles.append(handle(STRONGEST_LABEL, look))
    if not by and any(cloud.outside for cloud in clouds):
        handles.append(handle("pale: of LeNet-5 alone", _look(SOLID, style.pale(grey))))
    handles.append(Line2D([], [], color=colour["pareto"], linewidth=2.5, label="Pareto front"))
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    if any(all(map(is_marked, pair)) for pair in pairs):
        handles.append(handle("published", _cross(black, is_seen=True)))
    if not by and any(sum(map(is_marked, pair)) == 1 for pair in pairs):
        handles.append(Line2D([], [], color=black, linewidth=1.0, label="published E2E alone"))
    unmarked = [{**row, "published": None} for row in rows]
    job.legend(figure, handles, [*unmarked, *spreads])


def _part(by: str, value: float) -> str:
    """Return a part of a power mode in words."""
    return f"{CLOCKS[by]} {value:g} MHz" if by in CLOCKS else counted(value, by)


def _draw_letters(
    cloud: Cloud,
    field: Axes,
    marks: Sequence[Sequence[dict[str, Any]]],
    change: Sequence[str],
    colour: str,
    by: str,
) -> None:
    """Write each point's power mode beside it, clear of what is drawn and of the change's arrow."""
    taken = Taken(field)
    taken.add_rivals(point for point in cloud.points if point)
    ring_pt = FRAME_PT if by else RING_PT
    taken.add_points([point for point in [cloud.point(STRONGEST)] if point], ring_pt)
    taken.add_line(draw_arrow(cloud, field, change))
    taken.add_line([point for n in cloud.front if (point := cloud.points[n])])
    low, high = field.get_xlim()
    for x, y in ((pair[0]["published"], pair[1]["published"]) for pair in marks):
        if x is None:
            taken.add_line([(low, y), (high, y)])
        elif y is not None:
            taken.add_points([(x, y)], RING_PT)
    for run, point in zip(cloud.runs, cloud.points, strict=True):
        if point:
            taken.write(point, run.factors["power_mode"], colour)


def draw_arrow(cloud: Cloud, field: Axes, modes: Sequence[str]) -> list[Place]:
    """Draw an arrow between two power modes; return its ends, nothing where there is none.

    There is none where it would be a stub, or lie on points or the front. Call it when the figure
    is laid out.
    """
    ends = [point for mode in modes if (point := cloud.point(mode))]
    if len(ends) != 2:
        return []
    start, end = (on_page(field, point) for point in ends)
    if math.dist(start, end) < SHORTEST_PT:
        return []
    points = [on_page(field, point) for point in cloud.points if point and point not in ends]
    on_front = [point for n in cloud.front if (point := cloud.points[n])]
    front = along([on_page(field, point) for point in on_front])
    if _clear(start, end, points) < CLEAR_PT or _clear(start, end, front) < OFF_FRONT_PT:
        return []
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 0.8, "shrinkA": 4, "shrinkB": 4}
    field.annotate("", ends[1], ends[0], arrowprops=arrow, zorder=1.6)
    return ends


def _clear(start: Place, end: Place, others: Sequence[Place]) -> float:
    """Return how far the middle part of an arrow is from the nearest of other places."""
    tail, head = np.array(start), np.array(end)
    middle = np.linspace(tail + AT_ENDS * (head - tail), head - AT_ENDS * (head - tail), 20)
    away = np.hypot(*np.moveaxis(middle[:, None, :] - np.reshape(others, (-1, 2)), -1, 0))
    return float(away.min(initial=math.inf))


def _draw_published(pair: Rows, field: Axes, job: Job) -> None:
    """Draw what is published of a run.

    Of both numbers a cross, tied to our point; of one alone a line across the field, which nobody
    can take for a point.
    """
    is_seen = all(row["seen_by_fit"] for row in pair if is_marked(row))
    x, y = (row["published"] for row in pair)
    ours = [row["value"] for row in pair]
    ink = job.ink({"published_id": " ".join(row["published_id"] or "" for row in pair)})
    line: dict[str, Any] = {"color": ink, "linewidth": 1.0, "zorder": 1.5}
    line["linestyle"] = "-" if is_seen else DASHES
    if x is None:
        field.axhline(y, **line)
    elif y is None:
        field.axvline(x, **line)
    else:
        look = _cross(ink, is_seen=is_seen)
        field.plot([x], [y], zorder=2.1, linestyle="none", **look)
        if None not in ours:
            field.plot([ours[0], x], [ours[1], y], color=ink, linewidth=0.7, zorder=1.9)


def _cross(colour: str, *, is_seen: bool) -> dict[str, Any]:
    face = colour if is_seen else "white"
    return {**CROSS, "markeredgecolor": colour, "markerfacecolor": face}


def draw_spread(cloud: Cloud, field: Axes, job: Job) -> Rows:
    """Draw a bracket below the points where a spread over some modes is published.

    Returns
    -------
    its id, for the legend
    """
    metric, factors = METRICS.get(cloud.x, cloud.x), cloud.runs[0].factors
    wanted = (SPREAD, metric, factors["setup"], factors["device"], cloud.model)
    for fact in job.relations:
        config = fact.config_a
        found = (fact.formula, fact.metric, fact.paper, config.get("device"), config.get("model"))
        modes = set(config.get("power_mode", ())) & {r.factors["power_mode"] for r in cloud.runs}
        there = [point[0] for mode in modes if (point := cloud.point(mode))]
        if found != wanted or len(there) < 2:
            continue
        low, high = min(there), max(there)
        bottom, top = field.get_ylim()
        field.set_ylim(bottom - BELOW * (top - bottom), top)
        row = {"published_id": fact.id}
        field.plot([low, low, high, high], [BRACKET + d for d in (0.025, 0.0, 0.0, 0.025)],
                   color=job.ink(row), linewidth=0.9,
                   transform=field.get_xaxis_transform())  # fmt: skip
        sign, here = SIGNS.get(fact.qualifier, ""), 100.0 * (high - low) / high
        words = f"spread, {ranges(modes)}:\n{sign}{fact.value:g} %, here {here:.0f} %"
        field.text(
            0.5, BRACKET_TEXT, words, transform=field.transAxes, ha="center", va="bottom",
            fontsize="x-small", color=job.ink(row),
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip
        return [row]
    return []
