"""Power modes in the plane of time and energy, or of time and power: Figs. 8 and 11 to 16.

Source: SIGMETRICS 2023, section 5.6 and appendix. A point is the mean of a run's epochs 1+. The
letter beside it is the power mode, which the paper shows by the marker. The line is the Pareto
front of each network. The paper has all networks in one field, LeNet-5 on axes of its own; here
each has its field. Modes that section 5.6.6 names for LeNet-5 alone are pale in the other fields,
and no part of the front, as in the predicates of `config/published/takeaways.csv`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_whisker, marked_row
from epochwatt.figures.common.failing import entries
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.layout import lay_out
from epochwatt.figures.common.published import is_marked
from epochwatt.figures.common.relations import Related
from epochwatt.figures.common.runs import RunData
from epochwatt.figures.sigmetrics2023.above import Above
from epochwatt.figures.sigmetrics2023.arrows import draw_arrow
from epochwatt.figures.sigmetrics2023.clouds import Cloud, group_runs, modes_note
from epochwatt.figures.sigmetrics2023.letters import Taken
from epochwatt.figures.sigmetrics2023.printed_modes import (
    draw_published,
    draw_spread,
    published_handles,
    ranges,
    wrong_spreads,
)
from epochwatt.records import files
from epochwatt.records.shapes import OBJECT
from epochwatt.text import counted

STRONGEST = "g"  # AGX's MAXN: a diamond
STRONGEST_LABEL = "mode g (MAXN)"
X_LABELS = {"energy_paper_wh": "energy per epoch (mWh)", "power_mean_w": "average power (W)"}
CLOCKS = {"cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "memory"}
SOLID, TRIANGLE, HOLLOW, LINE = ("o", True), ("^", True), ("s", False), ("x", False)
DIAMOND = ("D", True)
UNKNOWN = ("*", False)  # of a run whose records are gone
COLUMNS = 3  # fields side by side
MISSING_SHOWN = 3  # in the corner note; the CSV has all
RING_PT = 8.0  # how far letters keep from a cross or a diamond
WIDTH = 0.975  # of the figure; the rest is for what stands above the last field
PALE_BELOW, DIAMOND_BELOW = 1.95, 1.85  # order of pale points and of the large diamond
OUTSIDE = "left out, our reading of 5.6.6"  # of pale points
LETTERS = "; letters: power modes"
FRAME_PT = 11.0  # and from a diamond around a marker


def draw(
    job: Job,
    x: str,
    marker_by: str = "",
    change: str = "",
    change_of: str = "e2e_s",
    printed_fronts: str = "",
    printed_trend: str = "",
    much_less: str = "",
    printed_apart: str = "",
) -> None:
    """Draw a figure of one panel, a field for each network.

    Parameters
    ----------
    x : column on the x axis, `energy_paper_wh` or `power_mean_w`
    marker_by : setting of the power modes that the markers show; empty: none
    change : two power modes that the paper's text compares, such as `f e`; empty: none
    change_of : metric of which the paper prints how it changes between the two
    printed_fronts : what the paper's text says of each network's front, `lenet: ...; resnet: ...`
    printed_trend : what it says of E2E against x; empty: nothing
    much_less : network and the one that it calls the change of E2E much less than; empty: none
    printed_apart : two values of `marker_by`, and what it says of E2E there, `2265 1200: lower ...`
    """
    clouds, by = group_runs(job, x), marker_by
    runs = [run for cloud in clouds for run in cloud.runs]
    settings = {r.id: mode_setting(r, job.records.get(r.id, ""), by) for r in runs} if by else {}
    styles = marker_styles({value for value in settings.values() if value is not None})
    colour = job.colours(*{c.model for c in clouds}, "pareto", "missing", "published")
    above = Above(job, change, change_of, printed_fronts, printed_trend, much_less)
    wrong = [] if by else wrong_spreads(job, x)
    with job.panel(job.figure, runs) as (figure, axes):
        fields, rows, drawn = _fields(figure, axes, len(clouds), x), [], []
        for cloud, field in zip(clouds, fields, strict=False):
            more = [{by: settings[run.id]} if by else {} for run in cloud.runs]
            of_cloud = [_rows(cloud, n, job, columns) for n, columns in enumerate(more)]
            marks = [pair for pair in of_cloud if any(map(is_marked, pair))]
            markers = [styles.get(settings.get(r.id), UNKNOWN) if by else None for r in cloud.runs]
            _draw_points(cloud, field, markers, colour)
            above.write(cloud, field, marks)
            _draw_printed(cloud, field, marks, None if by else wrong, job)
            rows += [row for pair in of_cloud for row in pair]
            drawn.append((cloud, field, marks))
        remarks = above.remarks(clouds) + apart_note(clouds, settings, by, printed_apart)
        _add_notes(figure, clouds, modes_note(job, runs) or LETTERS, remarks)
        _legend(figure, clouds, styles, by, rows, job, entries(job, [*wrong, *above.is_red]))
        lay_out(figure)  # from here on the axes are as they will be
        for cloud, field, marks in drawn:
            _draw_letters(cloud, field, marks, change.split(), colour[cloud.model], by)
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
            record = files.read_json(path, {"factors": {"power_mode_settings?": OBJECT}})
            return record["factors"].get("power_mode_settings", {}).get(name)
    return None


def apart_note(
    clouds: Sequence[Cloud], settings: Mapping[str, float | None], by: str, printed: str
) -> str:
    """Return what the paper says of E2E at two values of a setting, and what it is here.

    Here it is the mean over the power modes of each value, which differ in other settings, too.

    Parameters
    ----------
    settings : value of the setting by run
    by, printed : `marker_by` and `printed_apart` of `draw`
    """
    values, _, says = printed.partition(": ")
    changes = []
    for cloud in clouds:
        means = [
            np.mean([
                point[1]
                for n, point in enumerate(cloud.points)
                if point and cloud.is_compared(n) and settings.get(cloud.runs[n].id) == float(value)
            ] or np.nan)
            for value in values.split()
        ]  # fmt: skip
        if np.isfinite(means).all() and means:
            changes.append(f"{cloud.label} {100.0 * (means[0] / means[1] - 1.0):+.0f} %")
    if not changes:
        return ""
    words = " against ".join(_part(by, float(value)) for value in values.split())
    here = f"here {', '.join(changes)}, means of modes that differ in other settings, too"
    return f"; E2E with {words}, the paper: {says}; {here}"


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


def _draw_printed(
    cloud: Cloud,
    field: Axes,
    marks: Sequence[Sequence[dict[str, Any]]],
    wrong: Sequence[Related] | None,
    job: Job,
) -> None:
    """Draw published numbers, and the spreads of which `wrong` fail; None: no spreads."""
    for pair in marks:
        draw_published(pair, field, job.palette["published"])
    if wrong is not None:
        draw_spread(cloud, field, {one.relation.id for one in wrong}, job)


def _draw_points(
    cloud: Cloud,
    field: Axes,
    markers: Sequence[tuple[str, bool] | None],
    colour: dict[str, str],
) -> None:
    """Draw the runs, each with the marker of its setting if there is one, and the front."""
    for n, marker in enumerate(markers):
        _draw_point(cloud, n, field, marker, colour)
    _draw_front(cloud, field, colour["pareto"])


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


def _draw_front(cloud: Cloud, field: Axes, colour: str) -> None:
    on = [point for n in cloud.front if (point := cloud.points[n])]
    if on:
        field.plot(*zip(*on, strict=True), color=colour, linewidth=2.5, zorder=1)


def _rows(cloud: Cloud, n: int, job: Job, more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the CSV of a run: x and E2E."""
    run, is_compared = cloud.runs[n], cloud.is_compared(n)
    on_front = n in cloud.front if is_compared and cloud.points[n] else None
    columns = {"compared": is_compared, "on_front": on_front, **more}
    return [
        marked_row(run, quantity, run.number(quantity), job, **columns)
        for quantity in (cloud.x, "e2e_s")
    ]


def _add_notes(figure: Figure, clouds: Sequence[Cloud], letters: str, remarks: str) -> None:
    """Add to the corner note what letters are, what is missing (fields are full), and remarks."""
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
    style.add_to_note(figure, f"{letters}; each field has its own scales")
    if missing:
        style.add_to_note(figure, f"; missing: {', '.join(missing)}")
    style.add_to_note(figure, remarks)


def _legend(
    figure: Figure,
    clouds: Sequence[Cloud],
    styles: dict[Any, tuple[str, bool]],
    by: str,
    rows: Sequence[dict[str, Any]],
    job: Job,
    more: Sequence[Patch],
) -> None:
    def handle(label: str, look: dict[str, Any]) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **look)

    colour = job.colours("missing", "published", "pareto")
    grey, black = colour["missing"], colour["published"]
    handles = [handle(_part(by, v), _look(m, grey)) for v, m in styles.items()]
    if any(row["power_mode"] == STRONGEST for row in rows):
        handles.append(handle(STRONGEST_LABEL, _frame(grey) if by else _look(DIAMOND, grey)))
    if modes := set().union(*(cloud.outside for cloud in clouds)):
        label = f"pale {ranges(modes)}: {OUTSIDE}"
        handles.append(handle(label, _look(SOLID, style.pale(grey))))
    handles.append(Line2D([], [], color=colour["pareto"], linewidth=2.5, label="Pareto front"))
    style.legend(figure, [*handles, *published_handles(rows, black), *more])


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
