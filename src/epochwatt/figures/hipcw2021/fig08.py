"""HiPCW 2021, figure 8: data set in the page cache (a, b) and E2E time (c, d) by its size, on NX.

Source: sections III.E and III.F. The share after each epoch is drawn, with all numbers of workers.
Linear growth, a dotted line, is the time at the data set's own size, times the scale.
"""

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes

from epochwatt.columns import TWIN, label
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import Bar, brackets_of, draw_brackets, legend, places, x_of
from epochwatt.figures.common.job import Job, Row
from epochwatt.figures.common.runs import csv_row
from epochwatt.figures.hipcw2021.medians import bars_of, changes_of, draw_medians

PANELS = (
    ("hipcw_fig08a", "ssd", "cached_after_pct"),
    ("hipcw_fig08b", "hdd", "cached_after_pct"),
    ("hipcw_fig08c", "ssd", "e2e_s"),
    ("hipcw_fig08d", "hdd", "e2e_s"),
)
LINEAR = 0.36  # half a line of linear growth, a bit wider than its bar
ROOM = (
    "That the share falls with the workers, too, is the simulation's: they take room from the page "
    "cache."
)
ROOM_NOTE = "; loader workers leave less page cache"
ALONG = f"{label('num_workers')}, and below them the {label('dataset_scale')}"
SIZES = {"0.25": "a quarter of the data", "1": "the whole data set", "4": "four times the data"}


def draw(job: Job) -> None:
    """Draw the panels."""
    for panel, storage, quantity in PANELS:
        runs = [run for run in job.runs if run.factors["storage"] == storage]
        bars = []
        for bar in bars_of(runs, "dataset_scale", "num_workers"):
            scale, *other_lines = bar.group.split("\n")
            size = SIZES.get(scale, f"{scale} times")
            bars.append(replace(bar, group="\n".join([size, *other_lines])))
        is_time = quantity == "e2e_s"
        with job.panel(panel, runs) as (figure, axes):
            rows: list[Row] = [*draw_medians(bars, axes, job, quantity, ALONG)]
            rows += draw_linear(bars, axes, job) if is_time else []
            shared = [] if is_time else ["share of the data set"]
            axes.set_ylabel(style.axis_title(quantity, *shared, "median"))
            changes = changes_of(bars, job, quantity) if is_time else []
            legend(axes, [*rows, *changes], job)
            if not is_time:
                axes.set_ylim(0, 105)
                job.remark(panel, "The paper prints no number of this panel.")
                if job.backend == TWIN:
                    job.remark(panel, ROOM)
                    job.drawn[panel].note += ROOM_NOTE
            draw_brackets([(axes, brackets_of(changes, places(bars), job, {}))])
            job.save(figure, panel, rows)


def draw_linear(bars: Sequence[Bar], axes: Axes, job: Job) -> list[Row]:
    """Draw E2E as it would be if it grew linearly with the data set's size; return the CSV's rows.

    A bar's dotted line is the median E2E at scale 1, same workers, times its scale.
    """
    base = {bar.tick: bar.run for bar in bars if bar.run.factors["dataset_scale"] == 1}
    grown = [bar for bar in bars if bar.tick in base and bar.run.factors["dataset_scale"] != 1]
    x_by_run = {bar.run.id: at for bar, at in zip(bars, x_of(bars), strict=True)}
    scales = dict.fromkeys(bar.run.factors["dataset_scale"] for bar in grown)
    factors = " and ".join(f"{scale:g} ×" for scale in scales)
    label = f"linear growth: {factors} the bar of the whole data set"
    rows: list[Row] = []
    for bar in grown:
        scale = bar.run.factors["dataset_scale"]
        number = base[bar.tick].number("e2e_s", "all", "median")
        if number.value is not None:
            linear_s, at = scale * number.value, x_by_run[bar.run.id]
            number = number._replace(value=linear_s)
            more = {"statistic": "median", "dataset_scale": scale}
            rows.append(csv_row(bar.run, "e2e_s_linear", number, "all", **more))
            axes.hlines(
                linear_s, at - LINEAR, at + LINEAR, color=job.colour("missing"), linewidth=1.6,
                linestyles=(0, (1, 1)), label=label if len(rows) == 1 else "", zorder=4.2,
            )  # fmt: skip
    return rows
