"""HiPCW 2021, figures 6 and 7: reads from the disk, and stalls of mini-batches, over the epochs.

Source: sections III.E and III.F, on NX. A panel is one storage medium and size of the data, with a
field for each number of loader workers; that the size rises from panel to panel is inferred.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise, product
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.columns import MINIBATCH_COLUMNS, TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing
from epochwatt.figures.common.job import Job, Row
from epochwatt.figures.common.published import SEEN, draw_mark, mark
from epochwatt.figures.common.runs import Cells, Number, RunData, csv_row
from epochwatt.figures.common.series import series
from epochwatt.text import counted

PANELS = tuple(zip("abcdef", product(("ssd", "hdd"), (0.25, 1.0, 4.0)), strict=True))
N_BINS = 60  # of an epoch
REMARKS = f"Steps are 1/{N_BINS} of an epoch. The paper does not say its number of workers."
NO_NUMBER = "The paper prints no number of this panel."
ONE_RATE = (
    "A simulated run reads at one rate throughout an epoch; workers take room from the page cache, "
    "so that more is read again."
)
FLAT_NOTE = "; each simulated epoch reads at one rate"
WITH_STARTS = "Means include the starts of epochs, which are cut off here."
STARTS = "starts of epochs"
START_BINS = 2  # of an epoch are its start: workers start one after another
CUT = 1.5  # an epoch's start that is higher than all else by this factor is cut off
PEAK, MOST_PEAKS = 3.0, 0.05  # of the median step: a peak; which share of the steps may be such
BELOW_ZERO = 0.02  # of the axis: a line at zero is seen above it
SAME = 1e-3  # of their mean, that ends of a range are apart where there is none
HEAD = 1.22  # height of the axes over what they show: above it is each epoch's mean
SECOND_LINE = 1.12  # the same again, for the number of reads below it
LINE: style.Look = {"linewidth": 1.2}
IMPLIED_LINE: style.Look = {"linewidth": 1.2, "linestyle": (0, (1, 1)), "zorder": 2.5}
BOUND_LINE: style.Look = {"linewidth": 0.8, "linestyle": (0, (4, 2)), "zorder": 1.5}
STALL_QUANTITY = "stall_ms_per_minibatch"
IMPLIED = f"{STALL_QUANTITY}_implied"  # by what is published of whole epochs
IMPLIED_BY = {  # what the CSV says of that -> the legend's words
    "median stall": "published median stall / mini-batches",
    "median E2E less our compute": "(published median epoch - our compute) / mini-batches",
}
STALL = [MINIBATCH_COLUMNS.index(name) for name in ("wait_s", "copy_s")]


class Points(NamedTuple):
    """A quantity over the training of one run."""

    # float (n,), increasing: training time or mini-batches since the run began
    x: NDArray[np.floating]
    values: NDArray[np.floating]  # float (n,)
    bounds: Sequence[float]  # where an epoch ends, in x
    epochs: Sequence[int]  # which epochs these are
    missing: str = ""  # why there is nothing; empty when there is


class Bin(NamedTuple):
    """Points that are drawn as one: where, how many, their lowest, mean and highest value."""

    epoch: int
    x: float
    n: int
    low: float
    mean: float
    high: float


class Kind(NamedTuple):
    """A figure's quantity: its columns in the CSV, and how to read it from a run's records."""

    quantity: str
    along: str
    along_label: str
    points_of: Callable[[RunData, str], Points]  # run, folder with the records of its epochs

    @property
    def is_rate(self) -> bool:
        """Whether its fields have one scale; stalls with and without workers are far apart."""
        return self.quantity == "read_iops"


def reads(run: RunData, folder: str) -> Points:
    """Read a run's rate of disk reads, 1/s, over the training time, s; `folder`: its records."""
    samples = series(run, folder, "host", "read_iops")
    epochs = list(dict.fromkeys(samples.epoch.tolist()))
    return Points(samples.t_s, samples.values, samples.bounds_s, epochs, samples.missing)


def stalls(run: RunData, folder: str) -> Points:
    """Read the stall of each mini-batch, ms, over their number; `folder`: the run's records."""
    records = RunFolder(*os.path.split(folder))
    epochs = [row["epoch"] for row in run.valid("all") if records.has(row["epoch"])]
    epoch_ms = [1e3 * records.read(k).minibatch_s[:, STALL].sum(axis=1) for k in epochs]
    stall_ms = np.concatenate([np.zeros(0), *epoch_ms])
    bounds = np.cumsum([len(epoch) for epoch in epoch_ms]).tolist()
    missing = "" if epochs else run.reason or "no record of a valid epoch"
    return Points(np.arange(stall_ms.size) + 0.5, stall_ms, bounds, epochs, missing)


READS = Kind("read_iops", "t_s", "training time (s)", reads)
STALLS = Kind(STALL_QUANTITY, "minibatch", "mini-batches since the run began", stalls)


def draw_reads(job: Job) -> None:
    """Draw the rate of reads from the disk over the training time."""
    draw_series(job, READS)


def draw_stalls(job: Job) -> None:
    """Draw the stall of each mini-batch over their number."""
    draw_series(job, STALLS)


def draw_series(job: Job, kind: Kind) -> None:
    """Draw the panels of a figure, one per medium and data set size, with axes for each run."""
    for letter, (storage, scale) in PANELS:
        runs = [
            run for run in job.runs
            if (run.factors["storage"], run.factors["dataset_scale"]) == (storage, scale)
        ]  # fmt: skip
        runs.sort(key=lambda run: run.factors["num_workers"])
        panel = f"{job.figure}{letter}"
        with job.panel(panel, runs) as (figure, axes):
            facets = style.side_by_side(figure, axes, max(len(runs), 1))
            facets[0].set_ylabel(style.axis_title(kind.quantity))
            rows: list[Row] = []
            for run, facet in zip(runs, facets, strict=False):
                rows += draw_run(run, facet, job, kind)
                facet.set_xlabel(kind.along_label)
                facet.xaxis.set_major_locator(MaxNLocator(4))
            if kind.is_rate:
                top = SECOND_LINE * max(facet.get_ylim()[1] for facet in facets)
                for facet in facets:
                    facet.set_ylim(-BELOW_ZERO * top, top)
            if not runs:
                reason = f"lacks {', '.join(job.lacking)}" if job.lacking else "no such run"
                draw_missing([(0.0, reason)], facets[0], job.palette["missing"])
                job.save(figure, panel, rows)
                continue
            cells = [row for row in rows if isinstance(row, dict)]  # all but published marks
            job.drawn[panel].note += "" if kind.is_rate else "; each field has its own scale"
            job.remark(panel, REMARKS)
            is_cut = any(STARTS in facet.get_title() for facet in facets)
            style.set_titles(figure, facets, [facet.get_title() for facet in facets])
            is_flat = job.backend == TWIN and not has_range(cells)
            job.drawn[panel].note += FLAT_NOTE if is_flat else ""
            job.remark(panel, WITH_STARTS if is_cut else "")
            job.remark(panel, ONE_RATE if is_flat else "")
            job.remark(panel, NO_NUMBER if kind.is_rate and len(cells) == len(rows) else "")
            medium, bound = job.colour(storage), job.colour("epoch_bound")
            step = f"mean over 1/{N_BINS} of an epoch"
            entries: list[Artist] = [Line2D([], [], color=medium, label=step, **LINE)]
            if has_range(cells):
                entries.append(Patch(color=style.pale(medium), label="lowest to highest in it"))
            entries.append(Line2D([], [], color=bound, label="end of an epoch", **BOUND_LINE))
            implied = next((row for row in cells if "implied_by" in row), None)
            if implied:
                source, *used = implied["implied_by"].split(", ", 1)
                label = ", ".join([IMPLIED_BY[source], *used])
                look = {"color": job.colour("published"), **IMPLIED_LINE}
                entries.append(Line2D([], [], label=label, **look))
            job.legend(figure, entries, rows)
            job.save(figure, panel, rows)


def draw_run(run: RunData, axes: Axes, job: Job, kind: Kind) -> list[Row]:
    """Draw a run over time on its axes; return the CSV's rows.

    Mean and range of each step, ends of epochs, each epoch's mean, and its published mark, or else
    what the published times of whole epochs imply.
    """
    points = kind.points_of(run, job.records.get(run.id, ""))
    colour = job.colour(run.factors["storage"])
    bins = list(binned(points))
    scale = {"dataset_scale": run.factors["dataset_scale"]}
    steps = [
        csv_row(run, kind.quantity, Number(b.mean, 1), "all", **scale, epoch=b.epoch,
            **{kind.along: b.x}, n_points=b.n, low=b.low, high=b.high)
        for b in bins
    ]  # fmt: skip
    is_wide = has_range(steps)
    for _, of_epoch in groupby(bins, key=lambda b: b.epoch):  # nothing from one epoch to the next
        part = list(of_epoch)
        x, lows, highs = [b.x for b in part], [b.low for b in part], [b.high for b in part]
        if is_wide:
            axes.fill_between(x, lows, highs, color=style.pale(colour), linewidth=0)
        axes.plot(x, [b.mean for b in part], color=colour, **LINE)
    for bound in points.bounds:
        axes.axvline(bound, color=job.colour("epoch_bound"), **BOUND_LINE)
    draw_missing([(0.0, points.missing)], axes, job.colour("missing"))
    means = []
    for epoch in points.epochs:
        part = [b for b in bins if b.epoch == epoch]
        means.append(float(np.average([b.mean for b in part], weights=[b.n for b in part])))
    digits = max(0, 2 - int(math.log10(max([*means, 1.0]))))  # three of the largest mean
    marked: list[Row] = []
    marks: list[float] = []
    ends = pairwise([0.0, *points.bounds])
    for epoch, (start, end), mean in zip(points.epochs, ends, means, strict=True):
        middle, reads_k = (start + end) / 2, mean * (end - start) / 1e3
        words = f"{'mean ' if epoch == points.epochs[0] else ''}{mean:.{digits}f}"
        words += f"\n{reads_k:.1f} k reads" if kind.is_rate and reads_k else ""
        axes.annotate(
            words, (middle, 1.0), ha="center", va="top", xycoords=axes.get_xaxis_transform(),
            xytext=(0, -3), textcoords="offset points", fontsize="x-small",
        )  # fmt: skip
        epoch_set = "1+" if epoch else "0"
        row = job.plotted(run, kind.quantity, epoch_set, Number(mean, 1), **scale, epoch=epoch)
        if row.mark:
            draw_mark(axes, middle, row, 0.9 * (end - start))
            marked.append(row)
            marks.append(row.mark.value)
    if kind.quantity == STALL_QUANTITY and not marked:
        implied, ink = implied_by(run, job, scale)
        if implied:
            marks.append(implied["value"])
            axes.axhline(implied["value"], color=ink, **IMPLIED_LINE)
            marked.append(implied)
    cut = limit(axes, bins, marks, columns.unit(kind.quantity))
    workers = counted(run.factors["num_workers"], "loader workers")
    axes.set_title("\n".join(filter(None, (workers, cut))), fontsize="small")
    if points.bounds:
        axes.set_xlim(-0.01 * points.bounds[-1], 1.01 * points.bounds[-1])
    else:
        axes.set_xticks([])
    return [*steps, *marked]


def binned(points: Points, n_bins: int = N_BINS) -> Iterator[Bin]:
    """Yield the points of each epoch, summarised in `n_bins` equal steps of x; none of empty steps.

    A point where one epoch ends and the next begins belongs to the earlier one.
    """
    for epoch, (start, end) in zip(points.epochs, pairwise([0.0, *points.bounds]), strict=True):
        edges = np.searchsorted(points.x, np.linspace(start, end, n_bins + 1))
        edges[0] = np.searchsorted(points.x, start, side="right" if start else "left")
        edges[-1] = np.searchsorted(points.x, end, side="right")
        for left, right in pairwise(edges.tolist()):
            v, x = points.values[left:right], points.x[left:right]
            if v.size:
                low, mean, high = float(v.min()), float(v.mean()), float(v.max())
                yield Bin(epoch, float(x.mean()), v.size, low, mean, high)


def has_range(rows: Sequence[Cells]) -> bool:
    """Return whether values differ within most steps (the rows with `low` and `high`)."""
    differs = [row["high"] - row["low"] > SAME * row["value"] for row in rows if "high" in row]
    return sum(differs) > len(differs) / 2


def implied_by(run: RunData, job: Job, scale: Cells) -> tuple[Cells, str]:
    """Compute the stall per mini-batch, ms, that a published epoch time implies: row, colour.

    implied = published stall / mini-batches; where no stall is published and there are no workers,
    (published E2E - our E2E + our stall) / mini-batches. `off_pct`: ours against it. `scale`:
    further columns. An empty row: there is none.
    """
    n_minibatches = run.number("n_minibatches", "all").value
    e2e_s = run.number("e2e_s", "all", "median").value or math.inf
    stall_s = run.number("stall_s", "all", "median").value or 0.0
    source = mark(job.marks, run.factors, "stall_s", "all")
    words, ours_s, other_s = "median stall", stall_s, 0.0
    if source is None and not run.factors["num_workers"]:
        source = mark(job.marks, run.factors, "e2e_s", "all")
        words, ours_s, other_s = "median E2E less our compute", e2e_s, e2e_s - stall_s
    if source is None or not n_minibatches or source.value <= other_s:
        return {}, ""
    implied_ms = 1e3 * (source.value - other_s) / n_minibatches
    off_pct = 100.0 * (1e3 * stall_s / n_minibatches / implied_ms - 1.0)
    words += f", {SEEN[source.seen_by_fit]}" if job.backend == TWIN else ""
    more = {**scale, "implied_by": words, "off_pct": off_pct}
    row = csv_row(run, IMPLIED, Number(implied_ms, 0), "all", **more)
    return row, job.ink(job.judged(source, [ours_s]))


def limit(axes: Axes, bins: Sequence[Bin], marks: Sequence[float], unit: str) -> str:
    """Set the y limits to the highest value, less outliers; return in words what is cut off.

    Cut off are starts of epochs far above all else, and then single peaks elsewhere. `marks` are
    published values, which stay.
    """
    earlier_epochs = [None] * START_BINS + [b.epoch for b in bins]  # of the bin START_BINS before
    starts = [
        b.high for b, earlier in zip(bins, earlier_epochs, strict=False) if b.epoch != earlier
    ]
    highs = [b.high for b, earlier in zip(bins, earlier_epochs, strict=False) if b.epoch == earlier]
    start = max(starts, default=0.0)
    peak_from = PEAK * float(np.median(highs)) if highs else 0.0
    peaks = [high for high in highs if high > peak_from]
    if not 0 < len(peaks) <= MOST_PEAKS * len(highs):
        peaks = []
    rest = max((*(high for high in highs if not peaks or high <= peak_from), *marks), default=0.0)
    is_cut = start > CUT * rest > 0
    axes.set_ylim(0, HEAD * (rest if is_cut else max(rest, start)) or 1.0)
    if not is_cut:
        return ""
    elsewhere = f"; elsewhere {max(peaks):.0f} {unit}" if peaks else ""
    return f"{STARTS} cut off: up to {start:.0f} {unit}{elsewhere}"
