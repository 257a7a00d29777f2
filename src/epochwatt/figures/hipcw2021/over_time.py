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
    """Axes of a figure: names in the CSV, and how to get them of a run."""

    quantity: str
    along: str
    along_label: str
    points_of: Callable[[RunData, str], Points]  # run, folder with the records of its epochs

    @property
    def is_rate(self) -> bool:
        """Whether its fields have one scale; stalls with and without workers are far apart."""
        return self.quantity == "read_iops"


def reads(run: RunData, folder: str) -> Points:
    """Return the rate of reads over the training time, s."""
    samples = series(run, folder, "host", "read_iops")
    epochs = list(dict.fromkeys(samples.epoch.tolist()))
    return Points(samples.t_s, samples.values, samples.bounds_s, epochs, samples.missing)


def stalls(run: RunData, folder: str) -> Points:
    """Return the stall of each mini-batch, ms, over their number."""
    records = RunFolder(*os.path.split(folder))
    epochs = [row["epoch"] for row in run.valid("all") if records.has(row["epoch"])]
    values = [1e3 * records.read(k).minibatch_s[:, STALL].sum(axis=1) for k in epochs]
    all_ms = np.concatenate([np.zeros(0), *values])
    bounds = np.cumsum([len(part) for part in values]).tolist()
    missing = "" if epochs else run.reason or "no record of a valid epoch"
    return Points(np.arange(all_ms.size) + 0.5, all_ms, bounds, epochs, missing)


READS = Kind("read_iops", "t_s", "training time (s)", reads)
STALLS = Kind(STALL_QUANTITY, "minibatch", "mini-batches since the run began", stalls)


def draw_reads(job: Job) -> None:
    """Draw the rate of reads from the disk over the training time."""
    draw_series(job, READS)


def draw_stalls(job: Job) -> None:
    """Draw the stall of each mini-batch over their number."""
    draw_series(job, STALLS)


def draw_series(job: Job, kind: Kind) -> None:
    """Draw the panels of a figure: one medium and size of the data set each."""
    for letter, (storage, scale) in PANELS:
        f = {"storage": storage, "dataset_scale": scale}
        runs = [run for run in job.runs if all(run.factors[name] == f[name] for name in f)]
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
            plain = [row for row in rows if isinstance(row, dict)]
            job.drawn[panel].note += "" if kind.is_rate else "; each field has its own scale"
            job.remark(panel, REMARKS)
            is_cut = any(STARTS in facet.get_title() for facet in facets)
            job.remark(panel, WITH_STARTS if is_cut else "")
            job.remark(panel, ONE_RATE if job.backend == TWIN and not has_range(plain) else "")
            job.remark(panel, NO_NUMBER if kind.is_rate and len(plain) == len(rows) else "")
            medium, bound = job.colour(storage), job.colour("epoch_bound")
            step = f"of 1/{N_BINS} of an epoch"
            drawn: list[Artist] = [Line2D([], [], color=medium, label=f"mean {step}", **LINE)]
            drawn += (
                [Patch(color=style.pale(medium), label="lowest to highest in it")]
                if has_range(plain)
                else []
            )
            drawn.append(Line2D([], [], color=bound, label="end of an epoch", **BOUND_LINE))
            for by in [row["implied_by"] for row in plain if "implied_by" in row][:1]:
                look = {"color": job.colour("published"), **IMPLIED_LINE}
                drawn.append(Line2D([], [], label=f"implied by the published {by}", **look))
            job.legend(figure, drawn, rows)
            job.save(figure, panel, rows)


def draw_run(run: RunData, axes: Axes, job: Job, kind: Kind) -> list[Row]:
    """Draw mean and range of a run's points, step by step; return the CSV's rows."""
    points, colour = (
        kind.points_of(run, job.records.get(run.id, "")),
        job.colour(run.factors["storage"]),
    )
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
        for implied in implied_rows(run, job, scale):
            marks.append(implied["value"])
            axes.axhline(implied["value"], color=job.colour("published"), **IMPLIED_LINE)
            marked.append(implied)
    cut = limit(axes, bins, marks, columns.unit(kind.quantity))
    workers = counted(run.factors["num_workers"], "workers")
    axes.set_title("\n".join(filter(None, (workers, cut))), fontsize="small")
    if points.bounds:
        axes.set_xlim(-0.01 * points.bounds[-1], 1.01 * points.bounds[-1])
    else:
        axes.set_xticks([])
    return [*steps, *marked]


def binned(points: Points, n_bins: int = N_BINS) -> Iterator[Bin]:
    """Yield an epoch's points in equal steps of x; a step without a point gives none.

    A point where one epoch ends and the next begins is of the first.
    """
    for epoch, (start, end) in zip(points.epochs, pairwise([0.0, *points.bounds]), strict=True):
        cuts = np.searchsorted(points.x, np.linspace(start, end, n_bins + 1))
        cuts[0] = np.searchsorted(points.x, start, side="right" if start else "left")
        cuts[-1] = np.searchsorted(points.x, end, side="right")
        for left, right in pairwise(cuts.tolist()):
            v, x = points.values[left:right], points.x[left:right]
            if v.size:
                ends = float(v.min()), float(v.mean()), float(v.max())
                yield Bin(epoch, float(x.mean()), v.size, *ends)


def has_range(rows: Sequence[Cells]) -> bool:
    """Say whether values differ within most of the steps that are drawn as one."""
    steps = [row["high"] - row["low"] > SAME * row["value"] for row in rows if "high" in row]
    return sum(steps) > len(steps) / 2


def implied_rows(run: RunData, job: Job, scale: Cells) -> list[Cells]:
    """Return what published times of an epoch imply for a mini-batch, as rows of the CSV.

    The published stall over the number of mini-batches; without one, and without workers, the
    published E2E less what is not stall here.
    """
    count = run.number("n_minibatches", "all").value
    whole, e2e = (mark(job.marks, run.factors, name, "all") for name in ("stall_s", "e2e_s"))
    ours_s = {name: run.number(name, "all", "median").value for name in ("e2e_s", "stall_s")}
    source, words, other_s = whole, "median stall", 0.0
    if whole is None and not run.factors["num_workers"]:
        source, words = (
            e2e,
            "median E2E less our compute",
        )
        other_s = (ours_s["e2e_s"] or math.inf) - (ours_s["stall_s"] or 0.0)
    if source is None or not count or source.value <= other_s:
        return []
    implied_ms = 1e3 * (source.value - other_s) / count
    off_pct = 100.0 * (1e3 * (ours_s["stall_s"] or 0.0) / count / implied_ms - 1.0)
    words += f", {SEEN[source.seen_by_fit]}" if job.backend == TWIN else ""
    more = {**scale, "implied_by": words, "off_pct": off_pct}
    return [csv_row(run, IMPLIED, Number(implied_ms, 0), "all", **more)]


def limit(axes: Axes, bins: Sequence[Bin], marks: Sequence[float], unit: str) -> str:
    """Show the axis up to the highest value; return in words what is cut off, or nothing.

    Cut off are starts of epochs, and single peaks elsewhere, far above all else.
    """
    epochs = [None] * START_BINS + [b.epoch for b in bins]
    starts = [b.high for n, b in enumerate(bins) if b.epoch != epochs[n]]
    highs = [b.high for n, b in enumerate(bins) if b.epoch == epochs[n]]
    start, few = max(starts, default=0.0), PEAK * float(np.median(highs)) if highs else 0.0
    peaks = [high for high in highs if high > few]
    if not 0 < len(peaks) <= MOST_PEAKS * len(highs):
        peaks = []
    rest = max((*(high for high in highs if not peaks or high <= few), *marks), default=0.0)
    is_cut = start > CUT * rest > 0
    axes.set_ylim(0, HEAD * (rest if is_cut else max(rest, start)) or 1.0)
    if not is_cut:
        return ""
    further = f"; elsewhere {max(peaks):.0f} {unit}" if peaks else ""
    return f"{STARTS} cut off: up to {start:.0f} {unit}{further}"
