"""Figure 4: mini-batch size. Stall (a), compute (b) and E2E (c), per epoch and per mini-batch.

Source: SIGMETRICS 2023, section 5.3. Each network has axes of its own, the epoch's above, the
mini-batch's, which is the epoch's divided by their number, below.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from epochwatt.columns import label
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    brackets_of,
    draw_bars,
    draw_brackets,
    draw_missing,
    legend,
    of_epochs,
)
from epochwatt.figures.common.job import CHANGE, Job
from epochwatt.figures.common.published import Plotted, draw_mark, numbers_of
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.fig02 import conditions
from epochwatt.published.numbers import Config

PANELS = {"fig04a": "stall", "fig04b": "compute", "fig04c": "e2e"}
SHARE = "(stall_s+compute_s)/e2e_s"
WORDS = {SHARE: "{} + {}, share of {}".format(*map(label, ("stall_s", "compute_s", "e2e_s")))}
WIDTH = 0.62  # of a bar
HEADROOM = 1.1  # dots stand clear of the axes' end


def draw(job: Job) -> None:
    """Draw the panels."""
    models = list(dict.fromkeys(run.factors["model"] for run in job.runs))
    sizes = sorted({run.factors["batch_size"] for run in job.runs})
    shown = of_epochs(job.runs, "1+")
    for panel, part in PANELS.items():
        with job.panel(panel, shown, addition=conditions(shown)) as (figure, axes):
            metrics = (f"{part}_ms_per_minibatch", *([SHARE] if part == "e2e" else []))
            changes = job.related(*metrics, number_of=numbers_of(shown))
            axes.remove()
            above, below = figure.subplots(2, max(len(models), 1), squeeze=False, sharex="col")
            rows: list[Plotted] = []
            over = []
            for top, bottom, model in zip(above, below, models, strict=False):
                runs = [run for run in shown if run.factors["model"] == model]
                rows += draw_sizes(top, bottom, runs, job, part, sizes)
                top.set_title(job.title(model))

                def place(config: Config, model: str = model) -> float | None:
                    size = config["batch_size"]
                    is_here = config["model"] == model and size in sizes
                    return float(sizes.index(size)) if is_here else None

                for field, is_share in ((top, True), (bottom, False)):
                    there = [one for one in changes if (one.relation.metric == SHARE) == is_share]
                    over.append((field, brackets_of(there, place, job, WORDS)))
            above[0].set_ylabel(style.axis_title(f"{part}_s", "whole epoch", width=16))
            below[0].set_ylabel(style.axis_title(f"{part}_ms_per_minibatch", width=16))
            below[len(below) // 2].set_xlabel(style.axis_title("batch_size"))
            is_share = part == "e2e"
            change = CHANGE if is_share else "published change of a mini-batch, then ours"
            legend(above[0], [*rows, *changes], job, change=change)
            draw_brackets(over)
            job.save(figure, panel, [*rows, *changes])


def draw_sizes(
    top: Axes, bottom: Axes, runs: Sequence[RunData], job: Job, part: str, sizes: Sequence[int]
) -> list[Plotted]:
    """Draw one part of a network's epoch over the mini-batch size; return the CSV's rows."""
    colour = job.colour(runs[0].factors["model"])
    x = [sizes.index(run.factors["batch_size"]) for run in runs]
    epoch = [job.plotted(run, f"{part}_s") for run in runs]
    batch = [
        job.plotted(run, f"{part}_ms_per_minibatch", number=per_minibatch(run, part))
        for run in runs
    ]
    missing = draw_bars(top, x, epoch, job, WIDTH, color=colour)
    draw_missing(missing, top, job.colour("missing"))
    dots = [np.nan if row.value is None else row.value for row in batch]
    bottom.plot(x, dots, "o", markersize=4.5, color=colour, markeredgewidth=0)
    for at, row in zip(x, batch, strict=True):
        draw_mark(bottom, at, row, WIDTH)
    for axes in (top, bottom):
        axes.set_xlim(-0.7, len(sizes) - 0.3)
        axes.set_ylim(0.0, HEADROOM * axes.get_ylim()[1])
        axes.grid(visible=False, axis="x")
    bottom.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    bottom.tick_params("x", labelsize="x-small")
    top.tick_params("x", length=0)
    return epoch + batch


def per_minibatch(run: RunData, part: str) -> Number:
    """Return the mean time of a mini-batch over epochs 1+, ms."""
    number = run.number(f"{part}_s")
    if number.value is None:
        return number
    n_minibatches = run.number("n_minibatches").value or 1.0
    return number._replace(value=1e3 * number.value / n_minibatches)
