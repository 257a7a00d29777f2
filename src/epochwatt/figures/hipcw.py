"""What the figures of HiPCW 2021 share: bars of the median epoch, and series over the epochs.

Its numbers are medians over all epochs of a run, three in the paper, which tells of some first
epochs, too. Marks are those of this paper
alone: it contradicts the main paper, and the simulated boards were not fitted to it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epochwatt.figures import style
from epochwatt.figures.bars import (
    Bar,
    draw_missing,
    label_axes,
    marked_row,
    positions,
)
from epochwatt.figures.job import Job
from epochwatt.figures.published import draw_mark, handles
from epochwatt.figures.runs import FACTORS, Number, RunData, row
from epochwatt.text import counted

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
PANELS = tuple(zip("abcdef", product(("ssd", "hdd"), (0.25, 1.0, 4.0)), strict=True))
N_BINS = 60  # of an epoch
MEDIA = ("hdd", "sd", "ssd", "emmc")  # in the paper's order
WIDE, NARROW = 0.9, 0.5  # bars of the first epoch, and of the median before them
BESIDE = (WIDE + NARROW) / 4  # where mark and reason of the first epoch stand, left of the median's
CUT = 1.5  # an epoch's start that is higher than all else by this factor is cut off
LINE: dict[str, Any] = {"linewidth": 1.2}
BOUND_LINE: dict[str, Any] = {"linewidth": 0.8, "zorder": 1.5}


def bars_of(runs: Sequence[RunData], group: str, tick: str) -> list[Bar]:
    """Return a bar for each run, in order of two factors: those of its group and of its tick.

    Further factors that differ are named with the group.
    """
    told = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    others = [f for f in FACTORS if f not in told and len({run.factors[f] for run in runs}) > 1]

    def name(run: RunData) -> str:
        return "\n".join([f"{run.factors[group]:g}", *(f"{f} {run.factors[f]}" for f in others)])

    def order(run: RunData) -> tuple[Any, ...]:
        last = run.factors[tick]
        place = MEDIA.index(last) if last in MEDIA else len(MEDIA)
        return run.factors[group], *(str(run.factors[f]) for f in others), place, last

    return [Bar(run, name(run), str(run.factors[tick])) for run in sorted(runs, key=order)]


def draw_medians(
    bars: Sequence[Bar],
    axes: Axes,
    job: Job,
    quantity: str,
    label: str,
    behind: Iterable[tuple[float, str]] = (),
) -> list[dict[str, Any]]:
    """Draw the median epoch of each run, in the colour of its medium; return the CSV's rows.

    Parameters
    ----------
    label : what the groups are
    behind : x of each bar behind them and why it is missing, as in `draw_missing`
    """
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    x = positions([bar.group for bar in bars])
    rows = [_told(bar.run, quantity, job, "all") for bar in bars]
    for bar, told, at in zip(bars, rows, x, strict=True):
        axes.bar(at, told["value"] or 0.0, NARROW, color=colour[bar.run.factors["storage"]])
        draw_mark(axes, at, told, colour["published"])
        if told["value"] == 0:  # told from what is missing
            axes.annotate("0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                          fontsize="small")  # fmt: skip
    missing = zip(x.tolist(), [told["missing"] for told in rows], strict=True)
    draw_missing([*missing, *behind], axes, colour["missing"])
    label_axes(bars, axes, label)
    return rows


def draw_first(bars: Sequence[Bar], axes: Axes, job: Job, quantity: str) -> list[dict[str, Any]]:
    """Draw the first epoch of each run, wide and pale behind the median; return the CSV's rows."""
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    x = positions([bar.group for bar in bars])
    rows = [_told(bar.run, quantity, job, "0") for bar in bars]
    for bar, told, at in zip(bars, rows, x, strict=True):
        own = style.pale(colour[bar.run.factors["storage"]])
        axes.bar(at, told["value"] or 0.0, WIDE, color=own)
        draw_mark(axes, at - BESIDE, told, colour["published"])
    return rows


def _told(run: RunData, quantity: str, job: Job, epoch_set: str) -> dict[str, Any]:
    number = run.number(quantity, epoch_set, "median")
    more = {"statistic": "median", "dataset_scale": run.factors["dataset_scale"]}
    return marked_row(run, quantity, number, job, epoch_set, **more)


def draw_workers(job: Job, quantity: str, said: str) -> None:
    """Draw a figure of one panel: a quantity by number of workers and storage medium."""
    bars, grey = bars_of(job.runs, "num_workers", "storage"), job.colours("missing")["missing"]
    with job.panel(job.figure) as (figure, axes):
        first = draw_first(bars, axes, job, quantity)
        x = (positions([bar.group for bar in bars]) - BESIDE).tolist()
        behind = zip(x, [told["missing"] for told in first], strict=True)
        rows = draw_medians(bars, axes, job, quantity, "loader workers", behind) + first
        axes.set_ylabel(said)
        drawn = [
            Patch(color=grey, label="median of all epochs"),
            Patch(color=style.pale(grey), label="first epoch"),
        ]
        style.legend(figure, [*drawn, *handles(rows, job.palette["published"])])
        job.save(figure, job.figure, rows)


class Points(NamedTuple):
    """A quantity over the training of one run.

    Attributes
    ----------
    x : float (n,), increasing: training time or mini-batches since the run began
    values : float (n,)
    bounds : where an epoch ends, in x
    epochs : which epochs these are
    missing : why there is nothing; empty when there is
    """

    x: NDArray[np.floating]
    values: NDArray[np.floating]
    bounds: Sequence[float]
    epochs: Sequence[int]
    missing: str = ""


class Bin(NamedTuple):
    """Points that are drawn as one: where, how many, their lowest, mean and highest value."""

    epoch: int
    x: float
    n: int
    low: float
    mean: float
    high: float


def binned(points: Points, n_bins: int = N_BINS) -> Iterator[Bin]:
    """Yield an epoch's points in equal steps of x; a step without a point gives none."""
    for epoch, (start, end) in zip(points.epochs, pairwise([0.0, *points.bounds]), strict=True):
        edges = np.linspace(start, end, n_bins + 1)
        cuts = np.searchsorted(points.x, edges)
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
    said: tuple[str, str],
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
        with job.panel(f"{job.figure}{letter}", runs) as (figure, axes):
            facets = style.side_by_side(figure, axes, max(len(runs), 1))
            facets[0].set_ylabel(f"{said[0]} ({said[1]})")
            rows = []
            for run, facet in zip(runs, facets, strict=False):
                points = points_of(run, job.records.get(run.id, ""))
                rows += _draw_run(run, points, facet, job, (quantity, said[1]), along[0])
                facet.set_xlabel(along[1])
            if not runs:
                told = f"lacks {', '.join(job.lacking)}" if job.lacking else "no such run"
                draw_missing([(0.0, told)], facets[0], job.palette["missing"])
            else:
                style.add_to_note(figure, f"; mean and range of 1/{N_BINS} of an epoch each")
                _series_legend(figure, storage, rows, job)
            job.save(figure, f"{job.figure}{letter}", rows)


def _series_legend(figure: Figure, medium: str, rows: Sequence[dict[str, Any]], job: Job) -> None:
    colour = job.colours(medium, "epoch_bound", "published")
    drawn = [
        Line2D([], [], color=colour[medium], label="mean", **LINE),
        Patch(color=style.pale(colour[medium]), label="range"),
        Line2D([], [], color=colour["epoch_bound"], label="end of an epoch", **BOUND_LINE),
    ]
    style.legend(figure, [*drawn, *handles(rows, colour["published"])])


def _draw_run(
    run: RunData, points: Points, axes: Axes, job: Job, about: tuple[str, str], along: str
) -> list[dict[str, Any]]:
    """Draw mean and range of a run's points, a quantity in a unit; return the CSV's rows."""
    (quantity, unit), medium = about, run.factors["storage"]
    colour = job.colours(medium, "missing", "published", "epoch_bound")
    bins = list(binned(points))
    x = [each.x for each in bins]
    low, high = [each.low for each in bins], [each.high for each in bins]
    axes.fill_between(x, low, high, color=style.pale(colour[medium]), linewidth=0)
    axes.plot(x, [each.mean for each in bins], color=colour[medium], **LINE)
    for bound in points.bounds:
        axes.axvline(bound, color=colour["epoch_bound"], **BOUND_LINE)
    draw_missing([(0.0, points.missing)], axes, colour["missing"])
    scale = {"dataset_scale": run.factors["dataset_scale"]}
    rows = [
        row(run, quantity, Number(each.mean, 1), "all", **scale, epoch=each.epoch,
            **{along: each.x}, n_points=each.n, low=each.low, high=each.high)
        for each in bins
    ]  # fmt: skip
    for epoch, ends in zip(points.epochs, pairwise([0.0, *points.bounds]), strict=True):
        inside = [each for each in bins if each.epoch == epoch]
        mean = float(np.average([b.mean for b in inside], weights=[b.n for b in inside]))
        told = marked_row(
            run, quantity, Number(mean, 1), job, "1+" if epoch else "0", **scale, epoch=epoch
        )
        if told["published"] is not None:
            draw_mark(axes, sum(ends) / 2, told, colour["published"])
            rows.append(told)
    start = _limit(axes, bins, [told.get("published") or 0.0 for told in rows])
    cut = f" (starts of epochs: up to {start:.0f} {unit})" if start else ""
    axes.set_title(f"{counted(run.factors['num_workers'], 'workers')}{cut}", fontsize="small")
    if points.bounds:
        axes.set_xlim(-0.01 * points.bounds[-1], 1.01 * points.bounds[-1])
    else:
        axes.set_xticks([])
    return rows


def _limit(axes: Axes, bins: Sequence[Bin], marks: Sequence[float]) -> float:
    """Show the axis up to the highest value; return the epochs' starts where they are cut off."""
    firsts = [n for n, b in enumerate(bins) if n == 0 or b.epoch != bins[n - 1].epoch]
    start = max([bins[n].high for n in firsts], default=0.0)
    rest = max((*(b.high for n, b in enumerate(bins) if n not in firsts), *marks), default=0.0)
    is_cut = start > CUT * rest > 0
    axes.set_ylim(0, 1.1 * (rest if is_cut else max(rest, start)) or 1.0)
    return start if is_cut else 0.0
