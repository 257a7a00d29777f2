"""Figure 4: mini-batch size. Stall (a), compute (b) and E2E (c), per epoch and per mini-batch.

Source: SIGMETRICS 2023, section 5.3. The paper draws times of an epoch as bars on the left axis and
times of a mini-batch on the right one, all networks in one field. Here each network has axes of its
own, the epoch's above, the mini-batch's, which is the epoch's divided by their number, below. Both
are means over epochs 1+. The paper does not say whether its panel c has the right axis, too, nor at
which size stall dominates LeNet: panel c says where it does here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    draw_missing,
    draw_whisker,
    legend,
    marked_row,
    of_epochs,
)
from epochwatt.figures.common.brackets import bracket_handles, brackets_of, draw_brackets
from epochwatt.figures.common.failing import entries, failing, red_of, redden
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark, is_marked
from epochwatt.figures.common.relations import Related, numbers_of, relation_row
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.published.numbers import Config

PANELS = (("fig04a", "stall", "stall"), ("fig04b", "compute", "compute"), ("fig04c", "e2e", "E2E"))
SHARE = "(stall_s+compute_s)/e2e_s"
WORDS = {SHARE: "stall + compute, share of E2E"}
STALLING = "lenet"  # "the stall time dominates for LeNet", section 5.3.2
PRINTED_UNIT = "published times of a mini-batch, in ms, though the paper prints µs"
WIDTH = 0.62  # of a bar
HEADROOM = 1.1  # dots stand clear of the axes' end

Rows = list[dict[str, Any]]


def draw(job: Job) -> None:
    """Draw the panels."""
    models = list(dict.fromkeys(run.factors["model"] for run in job.runs))
    shown, black = of_epochs(job.runs, "1+"), job.palette["published"]
    for panel, part, part_name in PANELS:
        with job.panel(panel, shown) as (figure, axes):
            metrics = (f"{part}_ms_per_minibatch", *([SHARE] if part == "e2e" else []))
            changes = job.related(*metrics, number_of=numbers_of(shown))
            above, below = _two_rows(figure, axes, max(len(models), 1))
            rows: Rows = []
            for top, bottom, model in zip(above, below, models, strict=False):
                runs = [run for run in shown if run.factors["model"] == model]
                rows += draw_sizes(top, bottom, runs, job, part)
                top.set_title(job.title(model))
                if part == "e2e" and model == STALLING:
                    _say_where_it_stalls(bottom, runs, black)
            above[0].set_ylabel(f"{part_name}\nper epoch (s)")
            below[0].set_ylabel(f"{part_name} per\nmini-batch (ms)")
            below[len(below) // 2].set_xlabel("mini-batch size (samples)")
            wrong = failing(job, panel, changes, job.epoch_table())
            more = [ours(job), *bracket_handles(changes, black, job.backend)]
            legend(above[0], rows, black, [*more, *entries(job, wrong)])
            for top, bottom, model in zip(above, below, models, strict=False):
                _draw_changes((top, bottom), model, changes, job, wrong)
            if part == "compute" and (marked := [row for row in rows if is_marked(row)]):
                printed = " and ".join(f"{row['published']:g}" for row in marked)
                style.add_to_note(figure, f"; {printed}: {PRINTED_UNIT}")
            job.save(figure, panel, rows + [relation_row(one) for one in changes])


def ours(job: Job) -> Line2D:
    """Return the legend's entry of the lower axes' dots."""
    look: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4.5}
    colour = job.palette["missing"]
    return Line2D([], [], color=colour, label="dots below: ours, per mini-batch", **look)


def _say_where_it_stalls(axes: Axes, runs: Sequence[RunData], colour: str) -> None:
    """Write in a field at which sizes stall is longer than compute, as the paper says of no size.

    Nothing where it is at all sizes. It stands below the dots, which hardly rise for LeNet.
    """
    pairs = {
        run.factors["batch_size"]: (run.number("stall_s").value, run.number("compute_s").value)
        for run in runs
    }
    sizes = {n: a > b for n, (a, b) in pairs.items() if a is not None and b is not None}
    if not sizes or all(sizes.values()):
        return
    where = " and ".join(str(n) for n, longer in sorted(sizes.items()) if longer)
    words = f"paper: stall > compute,\nsize not stated; here at {where or 'no size'}"
    axes.text(
        0.5, 0.05, f"{words} only" if where else words, transform=axes.transAxes, ha="center",
        va="bottom", fontsize="x-small", color=colour,
    )  # fmt: skip


def _two_rows(figure: Figure, axes: Axes, n: int) -> tuple[list[Axes], list[Axes]]:
    axes.remove()
    grid = figure.subplots(2, n, squeeze=False, sharex="col")
    return list(grid[0]), list(grid[1])


def draw_sizes(top: Axes, bottom: Axes, runs: Sequence[RunData], job: Job, part: str) -> Rows:
    """Draw one part of a network's epoch over the mini-batch size; return the CSV's rows.

    Parameters
    ----------
    top, bottom : of the epoch, of the mini-batch
    runs : of one network
    """
    sizes = _sizes(job)
    model = runs[0].factors["model"]
    colour = job.colours(model, "missing", "published")
    x = [sizes.index(run.factors["batch_size"]) for run in runs]
    epoch = [marked_row(r, f"{part}_s", r.number(f"{part}_s"), job) for r in runs]
    batch = [marked_row(r, f"{part}_ms_per_minibatch", per_minibatch(r, part), job) for r in runs]
    top.bar(x, [row["value"] or 0.0 for row in epoch], WIDTH, color=colour[model])
    dots = [np.nan if row["value"] is None else row["value"] for row in batch]
    bottom.plot(x, dots, "o", markersize=4.5, color=colour[model], markeredgewidth=0)
    for at, run, row, per_batch in zip(x, runs, epoch, batch, strict=True):
        draw_whisker(top, at, run, f"{part}_s", colour["missing"])
        draw_mark(top, at, row, colour["published"], WIDTH)
        draw_mark(bottom, at, per_batch, colour["published"], WIDTH)
        if is_marked(per_batch) and part == "compute":
            _name_mark(bottom, at, per_batch, colour["published"])
    draw_missing([(at, row["missing"]) for at, row in zip(x, epoch, strict=True)], top,
                 colour["missing"])  # fmt: skip
    for axes in (top, bottom):
        axes.set_xlim(-0.7, len(sizes) - 0.3)
        axes.set_ylim(0.0, HEADROOM * axes.get_ylim()[1])
        axes.grid(visible=False, axis="x")
    bottom.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    bottom.tick_params("x", labelsize="x-small")
    top.tick_params("x", length=0)
    return epoch + batch


def _name_mark(axes: Axes, at: float, row: dict[str, Any], colour: str) -> None:
    """Write a published time of a mini-batch at the line that marks it."""
    value = row["published"]
    axes.annotate(
        f"{value:g}", (at - WIDTH / 2, value), xytext=(-2, 0), ha="right", va="center",
        textcoords="offset points", fontsize="x-small", color=colour,
    )  # fmt: skip


def _draw_changes(
    planes: tuple[Axes, Axes],
    model: str,
    changes: Sequence[Related],
    job: Job,
    wrong: Sequence[Related],
) -> None:
    """Draw a network's brackets: shares of the epoch above, times of a mini-batch below.

    Parameters
    ----------
    wrong : those by which a claim fails, which are red
    """
    sizes = _sizes(job)

    def place(config: Config) -> float | None:
        size = config["batch_size"]
        return float(sizes.index(size)) if config["model"] == model and size in sizes else None

    for axes, is_share in zip(planes, (True, False), strict=True):
        shown = [one for one in changes if (one.relation.metric == SHARE) == is_share]
        brackets = brackets_of(shown, place, WORDS)
        draw_brackets(axes, brackets, job.palette["published"])
        if wrong:
            redden(axes, brackets, wrong, red_of(job))


def _sizes(job: Job) -> list[int]:
    return sorted({run.factors["batch_size"] for run in job.runs})


def per_minibatch(run: RunData, part: str) -> Number:
    """Return the mean time of a mini-batch over epochs 1+, ms."""
    number = run.number(f"{part}_s")
    if number.value is None:
        return number
    n_minibatches = run.number("n_minibatches").value or 1.0
    return number._replace(value=1e3 * number.value / n_minibatches)
