"""HiPCW 2021, figures 2 to 5 and bars of figure 8: medians by loader workers and storage medium.

Source: sections III.A to III.C. Its numbers are medians over all epochs of a run. Stalls differ by
two orders of magnitude: they are dots on a logarithmic scale, where a factor is a distance.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt import columns
from epochwatt.columns import FACTOR_NAMES
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bar,
    brackets_of,
    draw_bars,
    draw_brackets,
    draw_missing,
    draw_whisker,
    label_axes,
    places,
    x_of,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    FIRST_EPOCH,
    INFERRED,
    METRICS,
    Plotted,
    Related,
    draw_mark,
    numbers_of,
)
from epochwatt.figures.common.runs import RunData
from epochwatt.published.numbers import Measurement, single

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
MEDIA = {"hdd": "HDD", "sd": "SD", "ssd": "SSD", "emmc": "eMMC"}  # in the papers' order
BAR, BESIDE, LONE_BAR = 0.3, 0.17, 0.5  # widths, and how far a pair's bars are from its middle
PRINTED_FACTORS = "Factors are A / B of the paper's seconds; it prints (A - B) / B, 1 less."
ROOM = 1.35  # of a logarithmic axis beyond its lowest and highest number
WORKERS = "workers"  # in the note of a number whose setting is inferred
LATER = "1+"  # epochs that have no mark of their own


def draw_workers(job: Job, quantity: str, label: str = "", is_log: bool = False) -> None:
    """Draw a quantity by number of workers and storage medium: figures 2 to 5, of one panel each.

    On a logarithmic scale they are dots, with the factors that more workers make. The axis is named
    like the quantity, or has a label of its own.
    """
    bars = bars_of(job.runs, "num_workers", "storage")
    changes = changes_of(bars, job, quantity) if is_log else []
    placeless = placeless_of(job, quantity, bars)
    with job.panel(job.figure) as (figure, axes):
        rows = draw_medians(
            bars, axes, job, quantity, columns.label("num_workers"),
            has_first=True, is_log=is_log, not_marked=[fact.id for fact in placeless],
        )  # fmt: skip
        more = ["logarithmic"] if is_log else []
        axes.set_ylabel(label or style.axis_title(quantity, *more))
        grey = job.palette["missing"]
        names = {"first epoch": True, "median of all epochs": False}
        entries: list[Artist] = []
        for name, is_first in names.items():
            fill = style.pale(grey) if is_first else grey
            look = _dot(grey, is_first=is_first)
            dot = Line2D([], [], label=name, **look)
            entries.append(dot if is_log else Patch(color=fill, label=name))
        if is_log:
            _scale_log(axes)
        job.legend(figure, entries, [*rows, *changes])
        place = places(bars, BESIDE)
        brackets = []
        for medium, tick in MEDIA.items():
            of_medium = [one for one in changes if one.relation.config_a["storage"] == medium]
            brackets += brackets_of(of_medium, place, job, {quantity: tick})
        draw_brackets([(axes, brackets)])
        if any("(A-B)/B is printed" in one.relation.note for one in changes):
            job.remark(job.figure, PRINTED_FACTORS)
        if placeless:
            words = [
                f"{MEDIA[single(fact.config)[0]['storage']]}, "
                f"{fact.value:g} {fact.unit} ({fact.section})"
                for fact in placeless
            ]
            printed = f"printed without a number of workers: {', '.join(words)}"
            job.remark(job.figure, f"Not marked, as {printed}.")
        job.save(figure, job.figure, rows)


def bars_of(runs: Sequence[RunData], group: str, tick: str) -> list[Bar]:
    """Return a bar for each run, in order of two factors: those of its group and of its tick.

    Further factors that differ are named with the group.
    """
    grouping = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    others = [
        f for f in FACTOR_NAMES if f not in grouping and len({run.factors[f] for run in runs}) > 1
    ]

    def order(run: RunData) -> tuple[Any, ...]:
        last = run.factors[tick]
        place = list(MEDIA).index(last) if last in MEDIA else len(MEDIA)
        return run.factors[group], *(str(run.factors[f]) for f in others), place, last

    bars = []
    for run in sorted(runs, key=order):
        words = [f"{run.factors[group]:g}", *(f"{f} {run.factors[f]}" for f in others)]
        name = MEDIA.get(run.factors[tick], str(run.factors[tick]))
        bars.append(Bar(run, "\n".join(words), name))
    return bars


def draw_medians(
    bars: Sequence[Bar],
    axes: Axes,
    job: Job,
    quantity: str,
    label: str,
    *,
    has_first: bool = False,
    is_log: bool = False,
    not_marked: Collection[str] = (),
) -> list[Plotted]:
    """Draw the median epoch of each run, in the colour of its medium; return the CSV's rows.

    `label` is what the groups are, `not_marked` ids of published numbers without a place here. The
    first epoch may stand beside it, pale: its rows follow those of all medians.
    """
    colours = [job.colour(bar.run.factors["storage"]) for bar in bars]
    sets = (("all", BESIDE, 1), ("0", -BESIDE, -1)) if has_first else (("all", 0.0, 1),)
    rows: list[Plotted] = []
    missing: list[tuple[float, str]] = []
    for epoch_set, beside, side in sets:
        is_first = epoch_set == "0"
        of_set = []
        for bar in bars:
            number = bar.run.number(quantity, epoch_set, "median")
            row = job.plotted(bar.run, quantity, epoch_set, number, statistic="median")
            row = replace(row, mark=None) if row.published_id in not_marked else row
            of_set.append(replace(row, kind=FIRST_EPOCH) if is_first else row)
        x = (x_of(bars) + beside).tolist()
        if is_log:
            for at, row, colour in zip(x, of_set, colours, strict=True):
                axes.plot([at], [row.value or np.nan], **_dot(colour, is_first=is_first))
                draw_whisker(axes, at, row, job)
                draw_mark(axes, at, row, 0.0, side)
                missing.append((at, row.row["missing"]))
        else:
            fills = [style.pale(colour) for colour in colours] if is_first else colours
            width = BAR if has_first else LONE_BAR
            missing += draw_bars(axes, x, of_set, job, width, side, color=fills)
            for at in (at for at, row in zip(x, of_set, strict=True) if row.value == 0):
                axes.annotate(  # told from what is missing
                    "0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                    fontsize="small",
                )  # fmt: skip
        rows += of_set
    if is_log:
        style.set_log(axes, "y")
    draw_missing(missing, axes, job.colour("missing"))
    label_axes(bars, axes, label)
    return rows


def _dot(colour: str, *, is_first: bool) -> style.Look:
    """Return the look of a median, and of a first epoch: hollow."""
    look: style.Look = {"marker": "o", "markersize": 5.5, "linestyle": "none"}
    look |= {"markeredgewidth": 1.3, "markeredgecolor": colour}
    return look | {"markerfacecolor": "white" if is_first else colour}


def _scale_log(axes: Axes) -> None:
    """Give a logarithmic axis plain numbers and lines at 1, 2 and 5, and some room."""
    low, high = axes.dataLim.intervaly
    if np.isfinite([low, high]).all() and low > 0.0:
        axes.set_ylim(low / ROOM, high * ROOM)
    style.label_log(axes.yaxis)


# -- what the paper prints ------------------------------------------------------------------------


def changes_of(bars: Sequence[Bar], job: Job, metric: str) -> list[Related]:
    """Return the published changes of a metric between two bars, with what they are here."""
    return job.related(metric, number_of=numbers_of((bar.run for bar in bars), "median"))


def placeless_of(job: Job, quantity: str, bars: Sequence[Bar]) -> list[Measurement]:
    """Return the published numbers of bars whose number of workers the paper does not say."""
    wanted, place = (job.paper, METRICS.get(quantity, quantity)), places(bars)
    return [
        fact
        for fact in job.facts.measurements.values()
        if (fact.paper, fact.metric) == wanted
        and fact.note.startswith(INFERRED)
        and WORKERS in fact.note
        and any(place(config) is not None for config in single(fact.config))
    ]
