"""Figure 4: mini-batch size. Stall (a), compute (b) and E2E (c), per epoch and per mini-batch.

Source: SIGMETRICS 2023, section 5.3. Bars on the left axis are times of an epoch, markers on the
right axis times of a mini-batch: the epoch's divided by their number. Both are means over epochs
1+. The paper does not say whether its panel c has the right axis, too.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, legend, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark
from epochwatt.figures.common.runs import Number, RunData

PANELS = (("fig04a", "stall", "stall"), ("fig04b", "compute", "compute"), ("fig04c", "e2e", "E2E"))
GROUP_WIDTH = 0.8  # of the bars of one size


def draw(job: Job) -> None:
    """Draw the panels."""
    for panel, part, part_name in PANELS:
        with job.panel(panel) as (figure, axes):
            right = axes.twinx()
            rows = draw_sizes(axes, right, job, part)
            axes.set_ylabel(f"{part_name} per epoch (s), bars")
            right.set_ylabel(f"{part_name} per mini-batch (ms), dots")
            job.save(figure, panel, rows)


def draw_sizes(axes: Axes, right: Axes, job: Job, part: str) -> list[dict[str, Any]]:
    """Draw one part of an epoch over the mini-batch size; return the CSV's rows."""
    models = list(dict.fromkeys(run.factors["model"] for run in job.runs))
    sizes = sorted({run.factors["batch_size"] for run in job.runs})
    colour, rows = job.colours(*models, "missing", "published"), []
    missing: list[tuple[float, str]] = []
    width = GROUP_WIDTH / max(len(models), 1)
    for n, model in enumerate(models):
        runs = [run for run in job.runs if run.factors["model"] == model]
        x = [
            sizes.index(run.factors["batch_size"]) + width * (n - (len(models) - 1) / 2)
            for run in runs
        ]
        epoch = [marked_row(r, f"{part}_s", r.number(f"{part}_s"), job) for r in runs]
        batch = [
            marked_row(r, f"{part}_ms_per_minibatch", per_minibatch(r, part), job) for r in runs
        ]
        heights = [row["value"] or 0.0 for row in epoch]
        axes.bar(x, heights, width, color=style.pale(colour[model]))
        dots = [np.nan if row["value"] is None else row["value"] for row in batch]
        right.plot(x, dots, "o", markersize=4.5, color=colour[model], markeredgewidth=0)
        axes.plot([], [], "s", markersize=6, color=colour[model], label=job.title(model))
        missing += [(at, row["missing"]) for at, row in zip(x, epoch, strict=True)]
        for at, row, per_batch in zip(x, epoch, batch, strict=True):
            draw_mark(axes, at - width / 3, row, colour["published"])  # beside the dot
            draw_mark(right, at, per_batch, colour["published"])
        rows += epoch + batch
    draw_missing(missing, axes, colour["missing"])
    _finish(axes, right, sizes)
    legend(axes, rows, colour["published"])
    return rows


def per_minibatch(run: RunData, part: str) -> Number:
    """Return the mean time of a mini-batch over epochs 1+, ms."""
    number = run.number(f"{part}_s")
    if number.value is None:
        return number
    n_minibatches = run.number("n_minibatches").value or 1.0
    return number._replace(value=1e3 * number.value / n_minibatches)


def _finish(axes: Axes, right: Axes, sizes: list[int]) -> None:
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("mini-batch size (samples)")
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    for side in (axes, right):
        side.set_ylim(bottom=0)
