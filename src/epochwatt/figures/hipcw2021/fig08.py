"""HiPCW 2021, figure 8: data set in the page cache (a, b) and E2E time (c, d) by its size, on NX.

Source: sections III.E and III.F. Panels a and c are those of the SSD, b and d those of the hard
disk. The paper does not say when it asked for the share in the page cache: that after each epoch
is drawn. It does not say either which numbers of workers it shows: all are drawn. Linear growth,
a dotted line at a bar of panels c and d, is the time at the data set's own size, times the scale.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes

from epochwatt.columns import TWIN
from epochwatt.figures.common.bars import Bar, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import bracket_handles, draw_brackets, relation_row
from epochwatt.figures.common.runs import Number, csv_row
from epochwatt.figures.hipcw2021.medians import (
    bars_of,
    brackets_over,
    changes,
    draw_medians,
    within,
)

CACHED = "data set in the page cache\nafter an epoch, median (%)"
PANELS = (
    ("hipcw_fig08a", "ssd", "cached_after_pct", CACHED),
    ("hipcw_fig08b", "hdd", "cached_after_pct", CACHED),
    ("hipcw_fig08c", "ssd", "e2e_s", "E2E per epoch, median (s)"),
    ("hipcw_fig08d", "hdd", "e2e_s", "E2E per epoch, median (s)"),
)
LINEAR = 0.36  # half a line of linear growth, a bit wider than its bar
ROOM = (
    "That the share falls with the workers, too, is the simulation's: they take room from the page "
    "cache."
)
ALONG = "loader workers, and below them the size of the data set"
SIZES = {"0.25": "a quarter of the data", "1": "the data set", "4": "four times the data"}


def draw(job: Job) -> None:
    """Draw the panels."""
    for panel, storage, quantity, label in PANELS:
        runs = [run for run in job.runs if run.factors["storage"] == storage]
        bars = [
            replace(bar, group="\n".join([SIZES.get(first, f"{first} times"), *others]))
            for bar in bars_of(runs, "dataset_scale", "num_workers")
            for first, *others in [bar.group.split("\n")]
        ]
        with job.panel(panel, runs) as (figure, axes):
            rows = draw_medians(bars, axes, job, quantity, ALONG)
            linear = draw_linear(bars, axes, job) if quantity == "e2e_s" else []
            axes.set_ylabel(label)
            shown = within(changes(job, "e2e_s"), bars) if quantity == "e2e_s" else []
            drawn, _ = axes.get_legend_handles_labels()
            relations = [relation_row(one) for one in shown]
            lines = bracket_handles(shown, job.palette["published"])
            job.legend(figure, drawn, rows + relations, lines)
            if quantity == "cached_after_pct":
                axes.set_ylim(0, 105)
                job.remark(panel, "The paper prints no number of this panel.")
                job.remark(panel, ROOM if job.backend == TWIN else "")
            elif shown:
                draw_brackets([(axes, brackets_over(shown, bars, job))])
            job.save(figure, panel, rows + linear)


def draw_linear(bars: Sequence[Bar], axes: Axes, job: Job) -> list[dict[str, Any]]:
    """Draw what time would take that grows with the data set; return the CSV's rows."""
    x = positions([bar.group for bar in bars])
    base = {bar.tick: bar.run for bar in bars if bar.run.factors["dataset_scale"] == 1}
    rows, at = [], []
    for bar, place in zip(bars, x, strict=True):
        number = (
            base[bar.tick].number("e2e_s", "all", "median") if bar.tick in base else Number(None, 0)
        )
        if number.value is not None and (scale := bar.run.factors["dataset_scale"]) != 1:
            at.append(place)
            linear = number._replace(value=scale * number.value)
            more = {"statistic": "median", "dataset_scale": scale}
            rows.append(csv_row(bar.run, "e2e_s_linear", linear, "all", **more))
    grey = job.colours("missing")["missing"]
    factors = " and ".join(dict.fromkeys(f"{row['dataset_scale']:g} ×" for row in rows))
    label = f"linear growth: {factors} the bar of the whole data set"
    for n, (place, row) in enumerate(zip(at, rows, strict=True)):
        axes.hlines(
            row["value"], place - LINEAR, place + LINEAR, color=grey, linewidth=1.6,
            linestyles=(0, (1, 1)), label="" if n else label, zorder=4.2,
        )  # fmt: skip
    return rows
