"""Power modes in the plane of time and energy, or of time and power: Figs. 8 and 11 to 16.

Source: SIGMETRICS 2023, section 5.6 and appendix. A point is the mean of a run's epochs 1+. The
letter beside it is the power mode, which the paper shows by the marker. The line is the Pareto
front of each network. LeNet-5 is an order of magnitude below the others and has separate axes.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from epochwatt.analysis.pareto import pareto_front
from epochwatt.figures.common import published, style
from epochwatt.figures.common.bars import group_labels, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import RunData
from epochwatt.records import files
from epochwatt.records.shapes import OBJECT
from epochwatt.text import counted

SMALL = "lenet"  # on the secondary axes
STRONGEST = "g"  # AGX's MAXN: a diamond
X_LABELS = {"energy_paper_wh": "energy per epoch (mWh)", "power_mean_w": "average power (W)"}
CLOCKS = {"cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "memory"}
SOLID, TRIANGLE, HOLLOW, LINE = ("o", True), ("^", True), ("s", False), ("x", False)
NOT_TOLD = ("*", False)  # of a run whose records are gone
NEAR_PT = (8.0, 11.0, 15.0, 20.0, 26.0)  # how far from its point a letter stands, in points
TURNS = 16  # places around a point at one distance
POINT_PT, LETTER_PT, LINE_PT = 8.0, 9.5, 5.5  # how far from others' points, letters, fronts
FAR_PT = 12.0  # a letter as far as that is tied to its point by a line
STEP_PT = 3.0  # between the places on a front that letters keep away from
MISSING_SHOWN = 3  # in the corner note; the CSV has all


@dataclass(frozen=True)
class Cloud:
    """Runs that differ in their power mode only.

    Attributes
    ----------
    label, model : whose they are
    runs : one per power mode
    x : quantity on the x axis; E2E is on the other
    """

    label: str
    model: str
    runs: Sequence[RunData]
    x: str

    @cached_property
    def points(self) -> list[tuple[float, float] | None]:
        """Return x and E2E of each run, mean of epochs 1+; None: one of them is missing."""
        pairs = [(run.number(self.x).value, run.number("e2e_s").value) for run in self.runs]
        return [None if x is None or y is None else (x, y) for x, y in pairs]

    @cached_property
    def front(self) -> list[int]:
        """Return places of the runs on the Pareto front, from left to right."""
        there = [n for n, point in enumerate(self.points) if point]
        xy = np.array([self.points[n] for n in there], dtype=float).reshape(-1, 2)
        return [there[n] for n in pareto_front(xy[:, 0], xy[:, 1])]


def group_runs(job: Job, x: str) -> list[Cloud]:
    """Return the figure's runs, together what differs in the power mode only.

    A single run compares nothing and is left out.
    """
    labels = group_labels([run.factors for run in job.runs], job, ("power_mode",))
    groups: dict[str, list[RunData]] = {label: [] for label in labels}
    for run, label in zip(job.runs, labels, strict=True):
        groups[label].append(run)
    return [
        Cloud(label.replace("\n", ", "), runs[0].factors["model"], runs, x)
        for label, runs in groups.items()
        if len(runs) > 1
    ]


def draw(job: Job, x: str, marker_by: str = "") -> None:
    """Draw a figure of one panel.

    Parameters
    ----------
    x : column on the x axis, `energy_paper_wh` or `power_mean_w`
    marker_by : setting of the power modes that the markers show; empty: none
    """
    clouds, by = group_runs(job, x), marker_by
    runs = [run for cloud in clouds for run in cloud.runs]
    settings = {run.id: mode_setting(run, job.records[run.id], by) for run in runs} if by else {}
    styles = marker_styles({value for value in settings.values() if value is not None})
    with job.panel(job.figure, runs) as (figure, axes):
        planes = _planes(axes, clouds, x)
        colour = job.colours(*{c.model for c in clouds}, "pareto", "missing", "published")
        rows: list[dict[str, Any]] = []
        for cloud in clouds:
            plane = planes[cloud.model == SMALL]
            on = [cloud.points[n] for n in cloud.front]
            plane.plot(*zip(*on, strict=True), color=colour["pareto"], linewidth=2.5, zorder=1)
            for n, run in enumerate(cloud.runs):
                marker = styles.get(settings.get(run.id), NOT_TOLD) if by else _mode_marker(run)
                _draw_point(plane, cloud.points[n], marker, colour[cloud.model])
                rows += _rows(cloud, n, job, {by: settings[run.id]} if by else {})
        _say_missing(figure, clouds)
        _legend(figure, clouds, planes, styles, by, rows, colour)
        marks = _draw_published(clouds, planes, rows, colour["published"])
        for plane in planes:
            plane.margins(0.08)
        figure.draw_without_rendering()  # from here on the axes are as they will be
        _draw_letters(clouds, planes, marks, colour)
        job.save(figure, job.figure, rows)


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
            record = files.read_json(path, {"factors": {"power_mode_settings": OBJECT}})
            return record["factors"]["power_mode_settings"].get(name)
    return None


def marker_styles(values: set[float]) -> dict[Any, tuple[str, bool]]:
    """Return marker, and whether it is filled, of each value of a setting, from high to low."""
    kinds = (SOLID, HOLLOW, LINE) if len(values) <= 3 else (SOLID, TRIANGLE, HOLLOW, LINE)
    ordered = sorted(values, reverse=True)
    return {value: kinds[min(n, len(kinds) - 1)] for n, value in enumerate(ordered)}


def _mode_marker(run: RunData) -> tuple[str, bool]:
    return ("D", True) if run.factors["power_mode"] == STRONGEST else SOLID


def _planes(axes: Axes, clouds: Sequence[Cloud], x: str) -> tuple[Axes, Axes]:
    """Return the primary axes, and those of LeNet-5: the same where it is alone or not there."""
    planes = (axes, axes)
    if len({cloud.model == SMALL for cloud in clouds}) == 2:
        right = axes.twinx()
        top = right.twiny()
        right.spines["right"].set_visible(True)
        top.spines["top"].set_visible(True)
        right.set_ylabel("E2E per epoch (s), LeNet-5")
        top.set_xlabel(f"{X_LABELS[x]}, LeNet-5")
        right.grid(visible=False)
        planes = (axes, top)
    for plane in planes:
        plane.grid(visible=plane is axes, axis="both")
        if x == "energy_paper_wh":  # the paper's unit; the CSV stays in Wh
            plane.xaxis.set_major_formatter(FuncFormatter(lambda wh, _: f"{1e3 * wh:g}"))
    axes.set_xlabel(X_LABELS[x])
    axes.set_ylabel("E2E per epoch, epochs 1+ (s)")
    return planes


def _draw_point(
    plane: Axes, point: tuple[float, float] | None, marker: tuple[str, bool], colour: str
) -> None:
    if point:
        plane.plot(*[[value] for value in point], linestyle="none", **_look(marker, colour))


def _look(marker: tuple[str, bool], colour: str) -> dict[str, Any]:
    shape, is_filled = marker
    return {
        **{"marker": shape, "markersize": {"D": 9.0, "s": 5.5}.get(shape, 6.5)},
        "markerfacecolor": colour if is_filled else "white",
        "markeredgecolor": "white" if is_filled else colour,  # what lies over another is seen
        "markeredgewidth": 1.6 if shape == LINE[0] else 0.8,
    }


def _rows(cloud: Cloud, n: int, job: Job, more: dict[str, Any]) -> list[dict[str, Any]]:
    run, is_small = cloud.runs[n], cloud.model == SMALL
    columns = {"axes": "secondary" if is_small else "primary", "on_front": n in cloud.front, **more}
    columns["on_front"] = columns["on_front"] if cloud.points[n] else None
    return [
        marked_row(run, quantity, run.number(quantity), job, **columns)
        for quantity in (cloud.x, "e2e_s")
    ]


def _say_missing(figure: Figure, clouds: Sequence[Cloud]) -> None:
    """Add to the corner note what is missing: the points leave no free place in the panel."""
    missing = [
        f"{cloud.label}, {run.factors['power_mode']} "
        f"({run.number(cloud.x).missing or run.number('e2e_s').missing})"
        for cloud in clouds
        for run, point in zip(cloud.runs, cloud.points, strict=True)
        if point is None
    ]
    if len(missing) > MISSING_SHOWN:
        missing = [
            *missing[:MISSING_SHOWN],
            f"and {len(missing) - MISSING_SHOWN} more, see the CSV",
        ]
    if missing:
        style.add_to_note(figure, f"; missing: {', '.join(missing)}")


def _legend(
    figure: Figure,
    clouds: Sequence[Cloud],
    planes: tuple[Axes, Axes],
    styles: dict[Any, tuple[str, bool]],
    by: str,
    rows: Sequence[dict[str, Any]],
    colour: dict[str, str],
) -> None:
    def handle(label: str, marker: tuple[str, bool], face: str) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **_look(marker, face))

    axes_note = " (right, top)" if planes[0] is not planes[1] else ""
    handles = [
        handle(c.label + (axes_note if c.model == SMALL else ""), SOLID, colour[c.model])
        for c in clouds
    ]
    handles += [handle(_part(by, v), m, colour["missing"]) for v, m in styles.items()]
    handles.append(Line2D([], [], color=colour["pareto"], linewidth=2.5, label="Pareto front"))
    times = [row for row in rows if row["quantity"] == "e2e_s"]
    style.legend(figure, [*handles, *published.handles(times, colour["published"])])


def _part(by: str, value: float) -> str:
    """Return a part of a power mode in words."""
    return f"{CLOCKS[by]} {value:g} MHz" if by in CLOCKS else counted(value, by)


def _draw_published(
    clouds: Sequence[Cloud],
    planes: tuple[Axes, Axes],
    rows: Sequence[dict[str, Any]],
    colour: str,
) -> list[tuple[Axes, tuple[float, float]]]:
    """Draw what is published, of E2E alone above or below our point; return plane and place."""
    marks, remaining = [], iter(rows)
    for cloud in clouds:
        plane = planes[cloud.model == SMALL]
        for _ in cloud.runs:
            x, y = next(remaining), next(remaining)
            at = x["published"] if x["published"] is not None else x["value"]
            if at is not None and y["published"] is not None:
                published.draw_mark(plane, at, y, colour)
                marks.append((plane, (at, y["published"])))
    return marks


def _draw_letters(
    clouds: Sequence[Cloud],
    planes: tuple[Axes, Axes],
    marks: Sequence[tuple[Axes, tuple[float, float]]],
    colour: dict[str, str],
) -> None:
    """Write each point's power mode beside it, clear of what is drawn."""
    taken = [(*_pt(plane, place), POINT_PT) for plane, place in marks]
    letters = []
    for cloud in clouds:
        plane = planes[cloud.model == SMALL]
        front = [_pt(plane, point) for n in cloud.front if (point := cloud.points[n])]
        taken += [(*place, LINE_PT) for place in along(front)]
        for run, point in zip(cloud.runs, cloud.points, strict=True):
            if point:
                letters.append((plane, point, run.factors["power_mode"], colour[cloud.model]))
                taken.append((*_pt(plane, point), POINT_PT))
    for plane, point, letter, letter_colour in letters:
        at = _pt(plane, point)
        offset = free_place(at, taken)
        taken.append((at[0] + offset[0], at[1] + offset[1], LETTER_PT))
        is_far = math.hypot(*offset) > FAR_PT
        tie = {
            "arrowstyle": "-",
            "color": letter_colour,
            "linewidth": 0.6,
            "shrinkA": 3.0,
            "shrinkB": 3.0,
        }
        plane.annotate(
            letter, point, offset, textcoords="offset points", ha="center", va="center",
            color=letter_colour, fontsize="small", arrowprops=tie if is_far else None,
        )  # fmt: skip


def along(line: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return places on a line, `STEP_PT` apart."""
    places: list[tuple[float, float]] = []
    for start, end in pairwise(line):
        n = max(int(math.dist(start, end) / STEP_PT), 1)
        places += [tuple(p) for p in np.linspace(start, end, n, endpoint=False).tolist()]
    return places


def _pt(plane: Axes, point: tuple[float, float]) -> tuple[float, float]:
    """Return a place of the plane in points of the page."""
    to_points = plane.transData + plane.figure.dpi_scale_trans.inverted()
    x, y = 72.0 * to_points.transform(point)
    return float(x), float(y)


def free_place(
    point: tuple[float, float], taken: Sequence[tuple[float, float, float]]
) -> tuple[float, float]:
    """Return where a letter stands, from its point, so that it is clear of all else; points.

    The first of the places around that is clear, else the clearest.

    Parameters
    ----------
    taken : x, y, and how far a letter has to keep away
    """
    turns = [2 * math.pi * n / TURNS for n in range(TURNS)]
    places = [(r * math.cos(turn), r * math.sin(turn)) for r in NEAR_PT for turn in turns]
    at = np.add(point, places)[:, None, :]
    others = np.array([*taken, (math.inf, math.inf, 0.0)])
    room = np.hypot(*np.moveaxis(at - others[:, :2], -1, 0)) - others[:, 2]
    return places[int(np.argmax(np.minimum(room.min(axis=1), -0.01)))]
