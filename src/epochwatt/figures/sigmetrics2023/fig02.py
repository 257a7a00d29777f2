"""Figure 2: an epoch's time by number of loader workers (a), stall by epoch (b), energy (c).

Source: SIGMETRICS 2023, section 5.1. Panel a is the mean of epochs 1+, stacked stall, compute and
overhead; panel b the stall of epoch 0 beside that of epochs 1+; panel c the energy of an epoch. The
paper shows panel b for four workers and panel c for none and four; a group of bars without four
is drawn with every number of workers. Panel a has eight workers, too: see section 5.1.6.
"""

from typing import Any

from matplotlib.axes import Axes

from epochwatt.figures.common.bars import (
    Bar,
    draw_missing,
    draw_stacks,
    grouped,
    label_axes,
    legend,
    marked_row,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark
from epochwatt.figures.common.runs import RunData

WITHIN = ("num_workers", "prefetch_factor")
FOUR = 4  # workers
SETS = (("0", "epoch_0", "epoch 0"), ("1+", "epoch_1_plus", "epochs 1+"))


def draw(job: Job) -> None:
    """Draw the panels."""
    bars, label = bars_of(job)
    with job.panel("fig02a") as (figure, axes):
        rows = draw_stacks(bars, axes, job, "1+")
        axes.set_ylabel("time per epoch, epochs 1+ (s)")
        label_axes(bars, axes, label)
        legend(axes, rows, job.palette["published"])
        job.save(figure, "fig02a", rows)
    for panel, quantity, y_label, workers in (
        ("fig02b", "stall_s", "stall per epoch (s)", (FOUR,)),
        ("fig02c", "energy_paper_wh", "energy per epoch (Wh)", (0, FOUR)),
    ):
        shown = of_paper(bars, workers)
        with job.panel(panel, [bar.run for bar in shown]) as (figure, axes):
            rows = draw_pairs(shown, axes, job, quantity)
            axes.set_ylabel(y_label)
            label_axes(shown, axes, label)
            legend(axes, rows, job.palette["published"])
            job.save(figure, panel, rows)


def bars_of(job: Job) -> tuple[list[Bar], str]:
    """Return the bars in groups of equal factors, and what their ticks say."""
    several = len({r.factors["prefetch_factor"] for r in job.runs if r.factors["num_workers"]}) > 1

    def tick(run: RunData) -> str:
        workers = run.factors["num_workers"]
        return (
            f"{workers}×{run.factors['prefetch_factor']}" if several and workers else f"{workers}"
        )

    def order(run: RunData) -> tuple[int, int]:
        return run.factors["num_workers"], run.factors["prefetch_factor"] or 0

    bars = grouped(job.runs, job, WITHIN, tick, order)
    return bars, "loader workers" + (" × prefetch factor" if several else "")


def of_paper(bars: list[Bar], workers: tuple[int, ...]) -> list[Bar]:
    """Return the bars with these numbers of workers; all of a group where none has four."""
    with_four = {bar.group for bar in bars if bar.run.factors["num_workers"] == FOUR}
    return [
        bar
        for bar in bars
        if bar.group not in with_four or bar.run.factors["num_workers"] in workers
    ]


def draw_pairs(bars: list[Bar], axes: Axes, job: Job, quantity: str) -> list[dict[str, Any]]:
    """Draw a quantity of epoch 0 beside its mean over epochs 1+; return the CSV's rows."""
    colour = job.colours("epoch_0", "epoch_1_plus", "missing", "published")
    x, rows = positions([bar.group for bar in bars]), []
    missing: list[tuple[float, str]] = []
    for offset, (epoch_set, key, label) in zip((-0.2, 0.2), SETS, strict=True):
        numbers = [bar.run.number(quantity, epoch_set) for bar in bars]
        height = [number.value or 0.0 for number in numbers]
        axes.bar(x + offset, height, width=0.4, color=colour[key], label=label)
        for bar, number, at in zip(bars, numbers, x + offset, strict=True):
            rows.append(marked_row(bar.run, quantity, number, job, epoch_set))
            draw_mark(axes, at, rows[-1], colour["published"])
            missing.append((at, number.missing))
    draw_missing(missing, axes, colour["missing"])
    return rows
