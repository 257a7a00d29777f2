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


def draw_workers(job: Job, quantity: str, label: str = "", is_log: bool = False) -> None:
    """Draw a quantity by number of workers and storage medium: figures 2 to 5, of one panel each.

    With `is_log` they are dots on a logarithmic scale, with the published factors between numbers
    of workers. `label` replaces the y axis's title.
    """
    bars = bars_of(job.runs, "num_workers", "storage")
    changes = changes_of(bars, job, quantity) if is_log else []
    placeless = placeless_of(job, quantity, bars)
    with job.panel(job.figure) as (figure, axes):
        rows = draw_medians(
            bars, axes, job, quantity, columns.label("num_workers"),
            has_first=True, is_log=is_log, not_marked=[fact.id for fact in placeless],
        )  # fmt: skip
        scale_words = ["log scale"] if is_log else []
        axes.set_ylabel(label or style.axis_title(quantity, *scale_words))
        grey = job.palette["missing"]
        entries: list[Artist] = []
        for name, is_first in (("first epoch", True), ("median of all epochs", False)):
            if is_log:
                entries.append(Line2D([], [], label=name, **_dot(grey, is_first=is_first)))
            else:
                entries.append(Patch(color=style.pale(grey) if is_first else grey, label=name))
        if is_log:
            _scale_log(axes)
        job.legend(figure, entries, [*rows, *changes])
        place = places(bars, BESIDE)
        brackets = []
        for medium, tick in MEDIA.items():
            on_medium = [c for c in changes if c.relation.config_a["storage"] == medium]
            brackets += brackets_of(on_medium, place, job, {quantity: tick})
        draw_brackets([(axes, brackets)])
        if any("(A-B)/B is printed" in change.relation.note for change in changes):
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
    """Make a bar of each run, sorted and labelled by the factors `group` and `tick`.

    Further factors that differ are lines of the group's label. Media have the papers' order.
    """
    named = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    further = [
        f for f in FACTOR_NAMES if f not in named and len({run.factors[f] for run in runs}) > 1
    ]

    def order(run: RunData) -> tuple[Any, ...]:
        value = run.factors[tick]
        rank = list(MEDIA).index(value) if value in MEDIA else len(MEDIA)
        return run.factors[group], *(str(run.factors[f]) for f in further), rank, value

    bars = []
    for run in sorted(runs, key=order):
        words = [f"{run.factors[group]:g}", *(f"{f} {run.factors[f]}" for f in further)]
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

    With `has_first` a run's first epoch stands beside it, pale; these rows follow all medians.
    `label` stands below the groups. Published numbers with an id in `not_marked` get no mark.
    """
    colours = [job.colour(bar.run.factors["storage"]) for bar in bars]
    sets = (("all", BESIDE, 1), ("0", -BESIDE, -1)) if has_first else (("all", 0.0, 1),)
    rows: list[Plotted] = []
    missing: list[tuple[float, str]] = []
    for epoch_set, offset, side in sets:
        is_first = epoch_set == "0"
        set_rows = []
        for bar in bars:
            number = bar.run.number(quantity, epoch_set, "median")
            row = job.plotted(bar.run, quantity, epoch_set, number, statistic="median")
            row = replace(row, mark=None) if row.published_id in not_marked else row
            set_rows.append(replace(row, kind=FIRST_EPOCH) if is_first else row)
        x = (x_of(bars) + offset).tolist()
        if is_log:
            for at, row, colour in zip(x, set_rows, colours, strict=True):
                axes.plot([at], [row.value or np.nan], **_dot(colour, is_first=is_first))
                draw_whisker(axes, at, row, job)
                draw_mark(axes, at, row, 0.0, side)
                missing.append((at, row.row["missing"]))
        else:
            fills = [style.pale(colour) for colour in colours] if is_first else colours
            width = BAR if has_first else LONE_BAR
            missing += draw_bars(axes, x, set_rows, job, width, side, color=fills)
            for at, row in zip(x, set_rows, strict=True):
                if row.value == 0:  # told from what is missing
                    axes.annotate(
                        "0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                        fontsize="small",
                    )  # fmt: skip
        rows += set_rows
    if is_log:
        style.set_log(axes, "y")
    draw_missing(missing, axes, job.colour("missing"))
    label_axes(bars, axes, label)
    return rows


def _dot(colour: str, *, is_first: bool) -> style.Look:
    """Return matplotlib's keywords of a median's dot; a first epoch's is hollow."""
    look: style.Look = {"marker": "o", "markersize": 5.5, "linestyle": "none"}
    look |= {"markeredgewidth": 1.3, "markeredgecolor": colour}
    return look | {"markerfacecolor": "white" if is_first else colour}


def _scale_log(axes: Axes) -> None:
    """Widen the logarithmic y axis by `ROOM` at both ends; label it at 1, 2 and 5."""
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
    metric, place = METRICS.get(quantity, quantity), places(bars)
    return [
        fact
        for fact in job.facts.measurements.values()
        if (fact.paper, fact.metric) == (job.paper, metric)
        and fact.note.startswith(INFERRED)
        and WORKERS in fact.note
        and any(place(config) is not None for config in single(fact.config))
    ]
