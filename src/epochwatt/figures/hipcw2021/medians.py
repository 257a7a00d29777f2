"""HiPCW 2021, figures 2 to 5 and bars of figure 8: medians by loader workers and storage medium.

Source: sections III.A to III.C. Its numbers are medians over all epochs of a run, three in the
paper; the text has some of first epochs, too. Marks are those of this paper alone: it contradicts
the main paper, and the simulated boards were not fitted to it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bar,
    draw_missing,
    label_axes,
    marked_row,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark, handles
from epochwatt.figures.common.runs import FACTORS, RunData

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
MEDIA = ("hdd", "sd", "ssd", "emmc")  # in the paper's order
WIDE, NARROW = 0.9, 0.5  # bars of the first epoch, and of the median before them
BESIDE = (WIDE + NARROW) / 4  # where mark and reason of the first epoch stand, left of the median's


def bars_of(runs: Sequence[RunData], group: str, tick: str) -> list[Bar]:
    """Return a bar for each run, in order of two factors: those of its group and of its tick.

    Further factors that differ are named with the group.
    """
    grouping = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    others = [f for f in FACTORS if f not in grouping and len({run.factors[f] for run in runs}) > 1]

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
    rows = [_median_row(bar.run, quantity, job, "all") for bar in bars]
    for bar, row, at in zip(bars, rows, x, strict=True):
        axes.bar(at, row["value"] or 0.0, NARROW, color=colour[bar.run.factors["storage"]])
        draw_mark(axes, at, row, colour["published"])
        if row["value"] == 0:  # told from what is missing
            axes.annotate("0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                          fontsize="small")  # fmt: skip
    missing = zip(x.tolist(), [row["missing"] for row in rows], strict=True)
    draw_missing([*missing, *behind], axes, colour["missing"])
    label_axes(bars, axes, label)
    return rows


def draw_first(bars: Sequence[Bar], axes: Axes, job: Job, quantity: str) -> list[dict[str, Any]]:
    """Draw the first epoch of each run, wide and pale behind the median; return the CSV's rows."""
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    x = positions([bar.group for bar in bars])
    rows = [_median_row(bar.run, quantity, job, "0") for bar in bars]
    for bar, row, at in zip(bars, rows, x, strict=True):
        pale = style.pale(colour[bar.run.factors["storage"]])
        axes.bar(at, row["value"] or 0.0, WIDE, color=pale)
        draw_mark(axes, at - BESIDE, row, colour["published"])
    return rows


def _median_row(run: RunData, quantity: str, job: Job, epoch_set: str) -> dict[str, Any]:
    number = run.number(quantity, epoch_set, "median")
    more = {"statistic": "median", "dataset_scale": run.factors["dataset_scale"]}
    return marked_row(run, quantity, number, job, epoch_set, **more)


def draw_workers(job: Job, quantity: str, label: str) -> None:
    """Draw a quantity by number of workers and storage medium: figures 2 to 5, of one panel each.

    Parameters
    ----------
    quantity : column of epochs.csv
    label : of the y axis
    """
    bars, grey = bars_of(job.runs, "num_workers", "storage"), job.colours("missing")["missing"]
    with job.panel(job.figure) as (figure, axes):
        first = draw_first(bars, axes, job, quantity)
        x = (positions([bar.group for bar in bars]) - BESIDE).tolist()
        behind = zip(x, [row["missing"] for row in first], strict=True)
        rows = draw_medians(bars, axes, job, quantity, "loader workers", behind) + first
        axes.set_ylabel(label)
        drawn = [
            Patch(color=grey, label="median of all epochs"),
            Patch(color=style.pale(grey), label="first epoch"),
        ]
        style.legend(figure, [*drawn, *handles(rows, job.palette["published"])])
        job.save(figure, job.figure, rows)
