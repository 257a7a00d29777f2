"""HiPCW 2021, figure 8: data set in the page cache (a, b) and E2E time (c, d) by its size, on NX.

Source: sections III.E and III.F. Panels a and c are those of the SSD, b and d those of the hard
disk. The paper does not say when it asked for the share in the page cache: that after each epoch
is drawn. It does not say either which numbers of workers it shows: all are drawn. Linear growth,
a dash at a bar of panels c and d, is the time at the data set's own size, times the scale.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from epochwatt.figures.common.bars import Bar, legend, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import Number, csv_row
from epochwatt.figures.hipcw2021.medians import bars_of, draw_medians

PANELS = (
    ("hipcw_fig08a", "ssd", "cached_after_pct", "data set in the page cache (%)"),
    ("hipcw_fig08b", "hdd", "cached_after_pct", "data set in the page cache (%)"),
    ("hipcw_fig08c", "ssd", "e2e_s", "E2E per epoch, median (s)"),
    ("hipcw_fig08d", "hdd", "e2e_s", "E2E per epoch, median (s)"),
)
ALONG = "size of the data set, relative to its own; above: loader workers"


def draw(job: Job) -> None:
    """Draw the panels."""
    for panel, storage, quantity, label in PANELS:
        runs = [run for run in job.runs if run.factors["storage"] == storage]
        bars = bars_of(runs, "dataset_scale", "num_workers")
        with job.panel(panel, runs) as (figure, axes):
            rows = draw_medians(bars, axes, job, quantity, ALONG)
            linear = draw_linear(bars, axes, job) if quantity == "e2e_s" else []
            legend(axes, rows, job.palette["published"])
            axes.set_ylabel(label)
            if quantity == "cached_after_pct":
                axes.set_ylim(0, 105)
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
    values = [row["value"] for row in rows]
    axes.plot(at, values, linestyle="none", marker="_", markersize=14, markeredgewidth=1.2,
              color=job.colours("missing")["missing"], label="linear growth")  # fmt: skip
    return rows
