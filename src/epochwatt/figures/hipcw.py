"""What the figures of HiPCW 2021 share: bars of the median epoch, and series over the epochs.

Its numbers are medians over all epochs of a run, three in the paper. Marks are those of this paper
alone: it contradicts the main paper, and the simulated boards were not fitted to it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from epochwatt.figures import style
from epochwatt.figures.bars import (
    Bar,
    draw_mark,
    draw_missing,
    label_axes,
    legend,
    marked_row,
    positions,
)
from epochwatt.figures.job import Job
from epochwatt.figures.runs import FACTORS, Number, RunData, row

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
PANELS = tuple(zip("abcdef", product(("ssd", "hdd"), (0.25, 1.0, 4.0)), strict=True))
N_BINS = 60  # of an epoch


def bars_of(runs: Sequence[RunData], group: str, tick: str) -> list[Bar]:
    """Return a bar for each run, in order of two factors: those of its group and of its tick.

    Further factors that differ are named with the group.
    """
    told = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    others = [f for f in FACTORS if f not in told and len({run.factors[f] for run in runs}) > 1]

    def name(run: RunData) -> str:
        return "\n".join([f"{run.factors[group]:g}", *(f"{f} {run.factors[f]}" for f in others)])

    def order(run: RunData) -> tuple[Any, ...]:
        return run.factors[group], *(str(run.factors[f]) for f in others), run.factors[tick]

    return [Bar(run, name(run), str(run.factors[tick])) for run in sorted(runs, key=order)]


def draw_medians(
    bars: Sequence[Bar], axes: Axes, job: Job, quantity: str, label: str
) -> list[dict[str, Any]]:
    """Draw the median epoch of each run, in the colour of its medium; return the CSV's rows.

    Parameters
    ----------
    label : what the groups are
    """
    media = {bar.run.factors["storage"] for bar in bars}
    colour = job.colours("missing", "published", *sorted(media))
    x = positions([bar.group for bar in bars])
    numbers = [bar.run.number(quantity, "all", "median") for bar in bars]
    colours = [colour[bar.run.factors["storage"]] for bar in bars]
    axes.bar(x, [number.value or 0.0 for number in numbers], width=0.8, color=colours)
    draw_missing([number.missing for number in numbers], x, axes, colour["missing"])
    rows = []
    for bar, number, at in zip(bars, numbers, x, strict=True):
        scale = bar.run.factors["dataset_scale"]
        more = {"statistic": "median", "dataset_scale": scale}
        rows.append(marked_row(bar.run, quantity, number, job, "all", **more))
        draw_mark(axes, at, rows[-1], colour["published"])
        if number.value == 0:  # told from what is missing
            axes.annotate("0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center")
    label_axes(bars, axes, label)
    legend(axes, rows, colour["published"])
    return rows


def draw_workers(job: Job, quantity: str, said: str) -> None:
    """Draw a figure of one panel: a quantity by number of workers and storage medium."""
    with job.panel(job.figure) as (figure, axes):
        rows = draw_medians(
            bars_of(job.runs, "num_workers", "storage"), axes, job, quantity, "loader workers"
        )
        axes.set_ylabel(said)
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
    said: str,
    along: tuple[str, str],
    points_of: Callable[[RunData, str], Points],
) -> None:
    """Draw the panels of a figure: one medium and size of the data set each.

    Parameters
    ----------
    quantity, said : name in the CSV and label of what is drawn
    along : the same of what it is drawn over
    points_of : gives what is drawn of a run, from the folder with the records of its epochs
    """
    for letter, (storage, scale) in PANELS:
        f = {"storage": storage, "dataset_scale": scale}
        runs = [run for run in job.runs if all(run.factors[name] == f[name] for name in f)]
        runs.sort(key=lambda run: run.factors["num_workers"])
        with job.panel(f"{job.figure}{letter}", runs) as (figure, axes):
            facets = style.side_by_side(figure, axes, max(len(runs), 1))
            facets[0].set_ylabel(said)
            rows = []
            for run, facet in zip(runs, facets, strict=False):
                points = points_of(run, job.records.get(run.id, ""))
                rows += _draw_run(run, points, facet, job, quantity, along[0])
                facet.set_xlabel(along[1])
                facet.set_title(f"{run.factors['num_workers']} workers")
            if not runs:
                told = f"lacks {', '.join(job.lacking)}" if job.lacking else "no such run"
                draw_missing([told], [0.0], facets[0], job.palette["missing"])
            else:
                style.add_to_note(figure, f"; mean and range of 1/{N_BINS} of an epoch each")
            job.save(figure, f"{job.figure}{letter}", rows)


def _draw_run(
    run: RunData, points: Points, axes: Axes, job: Job, quantity: str, along: str
) -> list[dict[str, Any]]:
    """Draw mean and range of a run's points; return the CSV's rows."""
    medium = run.factors["storage"]
    colour = job.colours(medium, "missing", "published", "epoch_bound")
    bins = list(binned(points))
    x = [each.x for each in bins]
    low, high = [each.low for each in bins], [each.high for each in bins]
    axes.fill_between(x, low, high, color=colour[medium], alpha=0.4, linewidth=0)
    axes.plot(x, [each.mean for each in bins], color=colour[medium], linewidth=1.2)
    for bound in points.bounds:
        axes.axvline(bound, color=colour["epoch_bound"], linewidth=0.8)
    draw_missing([points.missing], [0.0], axes, colour["missing"])
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
    marks = [told.get("published") or 0.0 for told in rows]
    axes.set_ylim(0, 1.1 * max([*high, *marks, 1e-9]))
    axes.set_xlim(0, max([*points.bounds, 1e-9]))
    return rows
