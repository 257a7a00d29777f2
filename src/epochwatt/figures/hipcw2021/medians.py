"""HiPCW 2021, figures 2 to 5 and bars of figure 8: medians by loader workers and storage medium.

Source: sections III.A to III.C. Its numbers are medians over all epochs of a run, three in the
paper; the text has some of first epochs, too. Marks are those of this paper alone: it contradicts
the main paper. Stalls differ by two orders of magnitude between numbers of workers: they are dots
on a logarithmic scale, where a factor is a distance.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epochwatt.columns import FACTOR_NAMES
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bar,
    draw_missing,
    draw_whisker,
    label_axes,
    marked_row,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    METRICS,
    Bracket,
    Related,
    bracket_handles,
    cells,
    draw_brackets,
    draw_mark,
    inferred,
    relation_row,
)
from epochwatt.figures.common.runs import RunData
from epochwatt.published.numbers import Config, Measurement, load_published, single
from epochwatt.text import counted

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
MEDIA = {"hdd": "HDD", "sd": "SD", "ssd": "SSD", "emmc": "eMMC"}  # in the papers' order
ORDER = list(MEDIA)
BAR, BESIDE = 0.3, 0.17  # width of a bar, and how far it is from the middle of a pair
PRINTED_FACTORS = "Factors are A / B of the paper's seconds; it prints (A - B) / B, 1 less."
ROOM = 1.35  # of a logarithmic axis beyond its lowest and highest number
LONE_BAR = 0.5
WORKERS = "workers"  # in the note of a number whose setting is inferred
SLIP = "slip:"  # begins the note of a published number that is corrected
LATER = "1+"  # epochs that have no mark of their own
FIRST = "first_"  # begins the quantity of a first epoch's mark
SAME = {  # factor of a run -> key of a published configuration
    **{name: name for name in ("device", "model", "storage", "num_workers", "power_mode")},
    **{"instance": "instance", "batch_size": "batch_size", "dataset_scale": "scale"},
}


def bars_of(runs: Sequence[RunData], group: str, tick: str) -> list[Bar]:
    """Return a bar for each run, in order of two factors: those of its group and of its tick.

    Further factors that differ are named with the group.
    """
    grouping = {"id", group, tick, *ALONG.get(group, ()), *ALONG.get(tick, ())}
    others = [
        f for f in FACTOR_NAMES if f not in grouping and len({run.factors[f] for run in runs}) > 1
    ]

    def name(run: RunData) -> str:
        return "\n".join([f"{run.factors[group]:g}", *(f"{f} {run.factors[f]}" for f in others)])

    def order(run: RunData) -> tuple[Any, ...]:
        last = run.factors[tick]
        place = ORDER.index(last) if last in MEDIA else len(MEDIA)
        return run.factors[group], *(str(run.factors[f]) for f in others), place, last

    def words(run: RunData) -> str:
        return MEDIA.get(run.factors[tick], str(run.factors[tick]))

    return [Bar(run, name(run), words(run)) for run in sorted(runs, key=order)]


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
) -> list[dict[str, Any]]:
    """Draw the median epoch of each run, in the colour of its medium; return the CSV's rows.

    Parameters
    ----------
    label : what the groups are
    has_first : whether the first epoch stands beside it, pale; its rows follow those of all medians
    is_log : dots on a logarithmic scale instead of bars
    not_marked : ids of published numbers that have no place in the panel
    """
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    places = positions([bar.group for bar in bars])
    sets = (("all", BESIDE), ("0", -BESIDE)) if has_first else (("all", 0.0),)
    width = BAR if has_first else LONE_BAR
    rows: list[dict[str, Any]] = []
    missing: list[tuple[float, str]] = []
    for epoch_set, beside in sets:
        for bar, at in zip(bars, (places + beside).tolist(), strict=True):
            row = _median_row(bar.run, quantity, job, epoch_set, not_marked)
            shade = colour[bar.run.factors["storage"]]
            is_first, side = epoch_set != "all", -1 if beside < 0.0 else 1
            if is_log:
                look = _dot(shade, is_first=is_first)
                axes.plot([at], [row["value"] or np.nan], **look)
            else:
                fill = style.pale(shade) if is_first else shade
                axes.bar(at, row["value"] or 0.0, width, color=fill)
            draw_whisker(axes, at, bar.run, quantity, colour["missing"], epoch_set)
            draw_mark(axes, at, marked(row), job.ink(row), 0.0 if is_log else width, side)
            if row["value"] == 0 and not is_log:  # told from what is missing
                axes.annotate("0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                              fontsize="small")  # fmt: skip
            rows.append(row)
            missing.append((at, row["missing"]))
    if is_log:
        style.set_log(axes, "y")
    draw_missing(missing, axes, colour["missing"])
    label_axes(bars, axes, label)
    return rows


def marked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as its mark is drawn: that of a first epoch has a shape of its own."""
    first = FIRST if row["epoch_set"] == "0" else ""
    return {**row, "quantity": f"{first}{row['quantity']}"}


def _median_row(
    run: RunData, quantity: str, job: Job, epoch_set: str, not_marked: Collection[str]
) -> dict[str, Any]:
    number = run.number(quantity, epoch_set, "median")
    row = marked_row(run, quantity, number, job, epoch_set, statistic="median")
    return {**row, **cells(None)} if row["published_id"] in not_marked else row


def changes(job: Job, metric: str) -> list[Related]:
    """Return the published changes of a metric between two of the runs, with what they are here."""

    def number_of(config: Config, name: str) -> float | None:
        return next(
            (
                run.number(name, config["epoch"], "median").value
                for run in job.runs
                if run.epochs and is_of(run, config)
            ),
            None,
        )

    return job.related(metric, number_of=number_of)


def is_of(run: RunData, config: Config) -> bool:
    """Say whether a published configuration is of this run."""
    return all(run.factors[factor] == config.get(key) for factor, key in SAME.items())


def _dot(colour: str, *, is_first: bool) -> dict[str, Any]:
    """Return the look of a median, and of a first epoch: hollow."""
    face = "white" if is_first else colour
    look: dict[str, Any] = {"marker": "o", "markersize": 5.5, "linestyle": "none"}
    look |= {"markeredgewidth": 1.3}
    return {**look, "markerfacecolor": face, "markeredgecolor": colour}


def draw_workers(job: Job, quantity: str, label: str, is_log: bool = False) -> None:
    """Draw a quantity by number of workers and storage medium: figures 2 to 5, of one panel each.

    Parameters
    ----------
    quantity : column of epochs.csv
    label : of the y axis
    is_log : dots on a logarithmic scale, with the factors that more workers make
    """
    bars, (grey, black) = (
        bars_of(job.runs, "num_workers", "storage"),
        [job.palette[key] for key in ("missing", "published")],
    )
    shown = within(changes(job, quantity), bars) if is_log else []
    placeless = placeless_of(job, quantity, bars)
    with job.panel(job.figure) as (figure, axes):
        rows = draw_medians(
            bars, axes, job, quantity, "loader workers",
            has_first=True, is_log=is_log, not_marked=[one.id for one in placeless],
        )  # fmt: skip
        axes.set_ylabel(label)
        drawn: list[Artist] = [
            Patch(color=style.pale(grey), label="first epoch"),
            Patch(color=grey, label="median of all epochs"),
        ]
        if is_log:
            _scale_log(axes)
            drawn = [
                Line2D([], [], label="first epoch", **_dot(grey, is_first=True)),
                Line2D([], [], label="median of all epochs", **_dot(grey, is_first=False)),
            ]
        relations = [relation_row(one) for one in shown]
        job.legend(figure, drawn, [*map(marked, rows), *relations], bracket_handles(shown, black))
        draw_brackets([(axes, brackets_over(shown, bars, job, BESIDE, named=True))])
        if any("(A-B)/B is printed" in one.relation.note for one in shown):
            job.remark(job.figure, PRINTED_FACTORS)
        for sentence in [*slips(job, quantity, bars), *placeless_words(placeless)]:
            job.remark(job.figure, sentence)
        rows.sort(key=lambda row: row["epoch_set"] == "0")  # medians first
        job.save(figure, job.figure, rows)


def placeless_of(job: Job, quantity: str, bars: Sequence[Bar]) -> list[Measurement]:
    """Return the published numbers of bars whose number of workers the paper does not say."""
    return [
        fact
        for fact in inferred(job.published).values()
        if (fact.paper, fact.metric) == (job.paper, METRICS.get(quantity, quantity))
        and WORKERS in fact.note
        and any(is_of(bar.run, config) for bar in bars for config in single(fact.config))
    ]


def placeless_words(facts: Sequence[Measurement]) -> Iterator[str]:
    """Yield which numbers have no place among numbers of workers."""
    words = [
        f"{MEDIA[single(fact.config)[0]['storage']]}, {fact.value:g} {fact.unit} ({fact.section})"
        for fact in facts
    ]
    if words:
        yield f"Not marked, as printed without a number of workers: {', '.join(words)}."


def slips(job: Job, quantity: str, bars: Sequence[Bar]) -> Iterator[str]:
    """Yield which numbers of later epochs are printed wrongly.

    They are those whose row in `measurements.csv` has another value and is noted as a slip.
    """
    for fact in load_published(Path(job.published)).measurements.values():
        is_slip = fact.note.startswith(SLIP) and fact.as_printed
        if (fact.paper, fact.metric) != (job.paper, METRICS.get(quantity, quantity)) or not is_slip:
            continue
        configs = [config for config in single(fact.config) if config["epoch"] == LATER]
        if any(is_of(bar.run, config) for bar in bars for config in configs):
            workers = counted(int(configs[0]["num_workers"]), "workers")
            yield (
                f"{fact.section} prints {fact.as_printed} for later epochs with {workers}, not "
                f"marked: {fact.note.removeprefix(SLIP).strip()}."
            )


def _scale_log(axes: Axes) -> None:
    """Give a logarithmic axis plain numbers and lines at 1, 2 and 5, and some room."""
    low, high = axes.dataLim.intervaly
    if np.isfinite([low, high]).all() and low > 0.0:
        axes.set_ylim(low / ROOM, high * ROOM)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def within(shown: Sequence[Related], bars: Sequence[Bar]) -> list[Related]:
    """Return the changes between two of the bars."""
    runs = [bar.run for bar in bars]
    return [
        one
        for one in shown
        if all(any(is_of(run, side) for run in runs) for side in one.relation.sides)
    ]


def brackets_over(
    shown: Sequence[Related],
    bars: Sequence[Bar],
    job: Job,
    offset: float = 0.0,
    *,
    named: bool = False,
) -> list[Bracket]:
    """Return a bracket for each change that the paper prints of two of the bars.

    Parameters
    ----------
    offset : of the bars from their places
    named : write the tick of the bars first, where a bracket spans others
    """
    x = (positions([bar.group for bar in bars]) + offset).tolist()
    brackets = []
    for one in shown:
        ends = [
            (at, bar.tick)
            for side in one.relation.sides
            for bar, at in zip(bars, x, strict=True)
            if is_of(bar.run, side)
        ]
        if len(ends) == 2:
            (left, tick), (right, _) = ends
            words = one.reading(a_is_left=left < right)
            words = f"{tick} {words}" if named else words
            ink = job.ink({"published_id": one.relation.id})
            low, high = sorted([left, right])
            brackets.append(Bracket(low, high, [words], ink, one.linestyle))
    return brackets
