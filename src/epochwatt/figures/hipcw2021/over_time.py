"""HiPCW 2021, figures 6 and 7: reads from the disk, and stalls of mini-batches, over the epochs.

Source: sections III.E and III.F, on NX. A panel shows one storage medium and size of the data set,
side by side for each number of loader workers, which the paper does not give. The text names the
media of panels a to c and d to f; that the size rises within them is inferred.
"""

import math
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from epochwatt.board.records.run_folder import RunFolder
from epochwatt.columns import MINIBATCH_COLUMNS, TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import SEEN, draw_mark, is_marked, mark
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.figures.common.series import series
from epochwatt.text import counted

ONE_SCALE = ("read_iops",)  # fields have one scale; stalls with and without workers are far apart
PANELS = tuple(zip("abcdef", product(("ssd", "hdd"), (0.25, 1.0, 4.0)), strict=True))
N_BINS = 60  # of an epoch
REMARKS = f"Steps are 1/{N_BINS} of an epoch. The paper does not say its number of workers."
NO_NUMBER = "The paper prints no number of this panel."
ONE_RATE = (
    "A simulated run reads at one rate throughout an epoch; workers take room from the page cache, "
    "so that more is read again."
)
WITH_STARTS = "Means include the starts of epochs, which are cut off here."
TITLE_CHARACTERS = 48  # in a line of a field's title
STARTS = "starts of epochs"
START_BINS = 2  # of an epoch are its start: workers start one after another
CUT = 1.5  # an epoch's start that is higher than all else by this factor is cut off
PEAK, MOST_PEAKS = 3.0, 0.05  # of the median step: a peak; which share of the steps may be such
BELOW_ZERO = 0.02  # of the axis: a line at zero is seen above it
LINE: dict[str, Any] = {"linewidth": 1.2}
TO_K = 1000.0
SAME = 1e-3  # of their mean, that ends of a range are apart where there is none
HEAD = 1.22  # height of the axes over what they show: above it is each epoch's mean
SECOND_LINE = 1.12  # the same again, for the number of reads below it
IMPLIED_LINE: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (1, 1)), "zorder": 2.5}
BOUND_LINE: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (4, 2)), "zorder": 1.5}
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


def binned(points: Points, n_bins: int = N_BINS) -> Iterator[Bin]:
    """Yield an epoch's points in equal steps of x; a step without a point gives none.

    A point where one epoch ends and the next begins is of the first.
    """
    for epoch, (start, end) in zip(points.epochs, pairwise([0.0, *points.bounds]), strict=True):
        edges = np.linspace(start, end, n_bins + 1)
        cuts = np.searchsorted(points.x, edges)
        cuts[0] = np.searchsorted(points.x, start, side="right" if start else "left")
        cuts[-1] = np.searchsorted(points.x, end, side="right")
        for left, right in pairwise(cuts.tolist()):
            inside = slice(left, right)
            v = points.values[inside]
            if v.size:
                x = float(points.x[inside].mean())
                yield Bin(epoch, x, v.size, float(v.min()), float(v.mean()), float(v.max()))


def draw_series(
    job: Job,
    quantity: str,
    label: tuple[str, str],
    along: tuple[str, str],
    points_of: Callable[[RunData, str], Points],
) -> None:
    """Draw the panels of a figure: one medium and size of the data set each.

    Parameters
    ----------
    quantity : name in the CSV of what is drawn
    said : its label and its unit
    along : name in the CSV and label of what it is drawn over
    points_of : gives what is drawn of a run, from the folder with the records of its epochs
    """
    for letter, (storage, scale) in PANELS:
        f = {"storage": storage, "dataset_scale": scale}
        runs = [run for run in job.runs if all(run.factors[name] == f[name] for name in f)]
        runs.sort(key=lambda run: run.factors["num_workers"])
        panel = f"{job.figure}{letter}"
        with job.panel(panel, runs) as (figure, axes):
            facets = style.side_by_side(figure, axes, max(len(runs), 1))
            facets[0].set_ylabel(f"{label[0]} ({label[1]})")
            rows = []
            for run, facet in zip(runs, facets, strict=False):
                points = points_of(run, job.records.get(run.id, ""))
                rows += _draw_run(run, points, facet, job, (quantity, label[1]), along[0])
                facet.set_xlabel(along[1])
                facet.xaxis.set_major_locator(MaxNLocator(4))
            if quantity in ONE_SCALE:
                top = SECOND_LINE * max(facet.get_ylim()[1] for facet in facets)
                for facet in facets:
                    facet.set_ylim(-BELOW_ZERO * top, top)
            if not runs:
                reason = f"lacks {', '.join(job.lacking)}" if job.lacking else "no such run"
                draw_missing([(0.0, reason)], facets[0], job.palette["missing"])
            else:
                job.remark(panel, REMARKS)
                if any(STARTS in facet.get_title() for facet in facets):
                    job.remark(panel, WITH_STARTS)
                if job.backend == TWIN and not _has_range(rows):
                    job.remark(panel, ONE_RATE)
                if quantity in ONE_SCALE and not any(map(is_marked, rows)):
                    job.remark(panel, NO_NUMBER)
                _series_legend(figure, storage, rows, job)
            job.save(figure, panel, rows)


def _series_legend(figure: Figure, medium: str, rows: Sequence[dict[str, Any]], job: Job) -> None:
    colour = job.colours(medium, "epoch_bound", "published")
    drawn: list[Any] = [Line2D([], [], color=colour[medium], label="mean", **LINE)]
    if _has_range(rows):
        drawn.append(Patch(color=style.pale(colour[medium]), label="range"))
    look = {"color": colour["epoch_bound"], **BOUND_LINE}
    drawn.append(Line2D([], [], label="end of an epoch", **look))
    implied = [row for row in rows if row["quantity"] == IMPLIED]
    for row in implied[:1]:
        label = f"implied by the published {row['implied_by']}"
        drawn.append(Line2D([], [], color=colour["published"], label=label, **IMPLIED_LINE))
    job.legend(figure, drawn, rows)


def _has_range(rows: Sequence[dict[str, Any]]) -> bool:
    """Say whether values differ within most of the steps that are drawn as one."""
    steps = [row["high"] - row["low"] > SAME * row["value"] for row in rows if "high" in row]
    return sum(steps) > len(steps) / 2


def _draw_run(
    run: RunData, points: Points, axes: Axes, job: Job, drawn: tuple[str, str], along: str
) -> list[dict[str, Any]]:
    """Draw mean and range of a run's points, a quantity in a unit; return the CSV's rows."""
    (quantity, unit), medium = drawn, run.factors["storage"]
    colour = job.colours(medium, "missing", "published", "epoch_bound")
    bins = list(binned(points))
    _draw_bins(axes, bins, colour[medium])
    for bound in points.bounds:
        axes.axvline(bound, color=colour["epoch_bound"], **BOUND_LINE)
    draw_missing([(0.0, points.missing)], axes, colour["missing"])
    scale = {"dataset_scale": run.factors["dataset_scale"]}
    rows = [
        csv_row(run, quantity, Number(b.mean, 1), "all", **scale, epoch=b.epoch,
            **{along: b.x}, n_points=b.n, low=b.low, high=b.high)
        for b in bins
    ]  # fmt: skip
    means = [_mean([b for b in bins if b.epoch == epoch]) for epoch in points.epochs]
    bounds = pairwise([0.0, *points.bounds])
    for epoch, ends, mean in zip(points.epochs, bounds, means, strict=True):
        row = marked_row(
            run, quantity, Number(mean, 1), job, "1+" if epoch else "0", **scale, epoch=epoch
        )
        middle = sum(ends) / 2
        first = "mean " if epoch == points.epochs[0] else ""
        count = _count_text(mean * (ends[1] - ends[0])) if quantity in ONE_SCALE else ""
        axes.annotate(
            f"{first}{mean:.{_decimals(means)}f}{count}", (middle, 1.0), ha="center", va="top",
            xycoords=axes.get_xaxis_transform(), xytext=(0, -3), textcoords="offset points",
            fontsize="x-small",
        )  # fmt: skip
        if row["published"] is not None:
            draw_mark(axes, middle, row, job.ink(row), 0.9 * (ends[1] - ends[0]))
            rows.append(row)
    if quantity == STALL_QUANTITY and not any(row.get("published") for row in rows):
        rows += _draw_implied(run, axes, job, scale)
    marks = [row.get("published") or row["value"] for row in rows if "low" not in row]
    cut = _limit(axes, bins, marks, unit)
    title = f"{counted(run.factors['num_workers'], 'workers')}{cut}"
    axes.set_title(textwrap.fill(title, TITLE_CHARACTERS), fontsize="small")
    if points.bounds:
        axes.set_xlim(-0.01 * points.bounds[-1], 1.01 * points.bounds[-1])
    else:
        axes.set_xticks([])
    return rows


def _count_text(reads_in_epoch: float) -> str:
    """Return how many reads an epoch's mean rate makes: the paper compares numbers."""
    return f"\n{reads_in_epoch / TO_K:.1f} k reads" if reads_in_epoch else ""


def _draw_bins(axes: Axes, bins: Sequence[Bin], colour: str) -> None:
    """Draw mean and range; nothing is drawn from one epoch to the next."""
    is_wide = _has_range([b._asdict() | {"value": b.mean} for b in bins])
    for _, of_epoch in groupby(bins, key=lambda b: b.epoch):
        part = list(of_epoch)
        x = [b.x for b in part]
        if is_wide:
            look: dict[str, Any] = {"color": style.pale(colour), "linewidth": 0}
            axes.fill_between(x, [b.low for b in part], [b.high for b in part], **look)
        axes.plot(x, [b.mean for b in part], color=colour, **LINE)


def _mean(bins: Sequence[Bin]) -> float:
    return float(np.average([b.mean for b in bins], weights=[b.n for b in bins]))


def _decimals(means: Sequence[float]) -> int:
    """Return how many decimals give the largest mean three digits."""
    return max(0, 2 - int(math.log10(max(*means, 1.0))))


def _draw_implied(
    run: RunData, axes: Axes, job: Job, scale: dict[str, Any]
) -> list[dict[str, Any]]:
    """Draw what published times of an epoch imply for a mini-batch; return the CSV's row.

    The published stall over the number of mini-batches; without one, and without workers, the
    published E2E less what is not stall here.
    """
    count = run.number("n_minibatches", "all").value
    whole, e2e = (mark(job.marks, run.factors, name, "all") for name in ("stall_s", "e2e_s"))
    if whole is not None:
        source, stall_s, words = whole, whole.value, "median stall"
    else:
        ours = [run.number(name, "all", "median").value for name in ("e2e_s", "stall_s")]
        if e2e is None or run.factors["num_workers"] or None in ours:
            return []
        source, words = e2e, "median E2E less our compute"
        stall_s = e2e.value - (ours[0] - ours[1])  # type: ignore[operator]
    if not count or stall_s <= 0.0:
        return []
    implied_ms = 1e3 * stall_s / count
    axes.axhline(implied_ms, color=job.colours("published")["published"], **IMPLIED_LINE)
    number = Number(implied_ms, 0)
    here_s = run.number("stall_s", "all", "median").value or 0.0
    off_pct = 100.0 * (1e3 * here_s / count / implied_ms - 1.0)
    words += f", {SEEN[source.seen_by_fit]}" if job.backend == TWIN else ""
    return [csv_row(run, IMPLIED, number, "all", **scale, implied_by=words, off_pct=off_pct)]


def _limit(axes: Axes, bins: Sequence[Bin], marks: Sequence[float], unit: str) -> str:
    """Show the axis up to the highest value; return in words what is cut off, or nothing.

    Cut off are starts of epochs, and single peaks elsewhere, far above all else.
    """
    epochs = [None] * START_BINS + [b.epoch for b in bins]
    firsts = [n for n, b in enumerate(bins) if b.epoch != epochs[n]]
    start = max([bins[n].high for n in firsts], default=0.0)
    highs = [b.high for n, b in enumerate(bins) if n not in firsts]
    few = PEAK * float(np.median(highs)) if highs else 0.0
    peaks = [high for high in highs if high > few]
    if not 0 < len(peaks) <= MOST_PEAKS * len(highs):
        peaks = []
    rest = max((*(high for high in highs if not peaks or high <= few), *marks), default=0.0)
    is_cut = start > CUT * rest > 0
    axes.set_ylim(0, HEAD * (rest if is_cut else max(rest, start)) or 1.0)
    if not is_cut:
        return ""
    further = f"; elsewhere {max(peaks):.0f} {unit}" if peaks else ""
    return f" ({STARTS}: up to {start:.0f} {unit}{further})"


def draw_reads(job: Job) -> None:
    """Draw the rate of reads from the disk over the training time."""
    label = "reads from the disk", "1/s"
    draw_series(job, "read_iops", label, ("t_s", "training time (s)"), reads)


def reads(run: RunData, folder: str) -> Points:
    """Return the rate of reads over the training time, s."""
    samples = series(run, folder, "host", "read_iops")
    epochs = list(dict.fromkeys(samples.epoch.tolist()))
    return Points(samples.t_s, samples.values, samples.bounds_s, epochs, samples.missing)


def draw_stalls(job: Job) -> None:
    """Draw the stall of each mini-batch over their number."""
    label = "stall per mini-batch", "ms"
    along = "minibatch", "mini-batches since the run began"
    draw_series(job, STALL_QUANTITY, label, along, stalls)


def stalls(run: RunData, folder: str) -> Points:
    """Return the stall of each mini-batch, ms, over their number."""
    records = RunFolder(*os.path.split(folder))
    epochs = [row["epoch"] for row in run.valid("all") if records.has(row["epoch"])]
    values = [1e3 * records.read(k).minibatch_s[:, STALL].sum(axis=1) for k in epochs]
    all_ms = np.concatenate([np.zeros(0), *values])
    bounds = np.cumsum([len(part) for part in values]).tolist()
    missing = "" if epochs else run.reason or "no record of a valid epoch"
    return Points(np.arange(all_ms.size) + 0.5, all_ms, bounds, epochs, missing)
