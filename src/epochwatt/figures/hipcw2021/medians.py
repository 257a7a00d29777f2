"""HiPCW 2021, figures 2 to 5 and bars of figure 8: medians by loader workers and storage medium.

Source: sections III.A to III.C. Its numbers are medians over all epochs of a run, three in the
paper; the text has some of first epochs, too. Marks are those of this paper alone: it contradicts
the main paper. Stalls differ by two orders of magnitude between numbers of workers: each has a
field and a scale of its own.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

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
from epochwatt.figures.common.published import draw_mark, handles
from epochwatt.figures.common.relations import Related
from epochwatt.figures.common.runs import FACTORS, RunData
from epochwatt.published.numbers import Config
from epochwatt.text import counted

ALONG = {"num_workers": {"prefetch_factor"}, "dataset_scale": {"dataset_source"}}  # follow a factor
MEDIA = {"hdd": "HDD", "sd": "SD", "ssd": "SSD", "emmc": "eMMC"}  # in the paper's order
ORDER = list(MEDIA)
BAR, BESIDE = 0.36, 0.2  # width of a bar, and how far it is from the middle of a pair
LONE_BAR = 0.5
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
    others = [f for f in FACTORS if f not in grouping and len({run.factors[f] for run in runs}) > 1]

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
    bars: Sequence[Bar], axes: Axes, job: Job, quantity: str, label: str, has_first: bool = False
) -> list[dict[str, Any]]:
    """Draw the median epoch of each run, in the colour of its medium; return the CSV's rows.

    Parameters
    ----------
    label : what the groups are
    has_first : whether the first epoch stands beside it, pale; its rows follow those of all medians
    """
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    places = positions([bar.group for bar in bars])
    sets = (("all", BESIDE), ("0", -BESIDE)) if has_first else (("all", 0.0),)
    width = BAR if has_first else LONE_BAR
    rows: list[dict[str, Any]] = []
    missing: list[tuple[float, str]] = []
    for epoch_set, beside in sets:
        for bar, at in zip(bars, (places + beside).tolist(), strict=True):
            row = _median_row(bar.run, quantity, job, epoch_set)
            shade = colour[bar.run.factors["storage"]]
            look = shade if epoch_set == "all" else style.pale(shade)
            axes.bar(at, row["value"] or 0.0, width, color=look)
            draw_whisker(axes, at, bar.run, quantity, colour["missing"], epoch_set)
            draw_mark(axes, at, marked(row), colour["published"], width)
            if row["value"] == 0:  # told from what is missing
                axes.annotate("0", (at, 0), xytext=(0, 2), textcoords="offset points", ha="center",
                              fontsize="small")  # fmt: skip
            rows.append(row)
            missing.append((at, row["missing"]))
    draw_missing(missing, axes, colour["missing"])
    label_axes(bars, axes, label)
    return rows


def marked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as its mark is drawn: that of a first epoch has a shape of its own."""
    first = FIRST if row["epoch_set"] == "0" else ""
    return {**row, "quantity": f"{first}{row['quantity']}"}


def _median_row(run: RunData, quantity: str, job: Job, epoch_set: str) -> dict[str, Any]:
    number = run.number(quantity, epoch_set, "median")
    more = {"statistic": "median", "dataset_scale": run.factors["dataset_scale"]}
    return marked_row(run, quantity, number, job, epoch_set, **more)


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


def draw_workers(job: Job, quantity: str, label: str, by_workers: bool = False) -> None:
    """Draw a quantity by number of workers and storage medium: figures 2 to 5, of one panel each.

    Parameters
    ----------
    quantity : column of epochs.csv
    label : of the y axis
    by_workers : whether each number of workers has a field and a scale of its own
    """
    bars, grey = bars_of(job.runs, "num_workers", "storage"), job.colours("missing")["missing"]
    groups = [list(members) for _, members in groupby(bars, key=lambda bar: bar.group)]
    shown = changes(job, quantity) if by_workers else []
    with job.panel(job.figure) as (figure, axes):
        fields, rows = [axes], []
        if by_workers and groups:
            fields = style.side_by_side(figure, axes, len(groups))
            style.add_to_note(figure, "; each number of workers has its own scale")
        for field, group in zip(fields, groups if by_workers and groups else [bars], strict=True):
            rows += draw_medians(group, field, job, quantity, "loader workers", has_first=True)
            field.margins(y=0.08)
            field.set_title(_cuts(shown, group), fontsize="x-small")
        fields[0].set_ylabel(label)
        drawn = [
            Patch(color=style.pale(grey), label="first epoch"),
            Patch(color=grey, label="median of all epochs"),
        ]
        marks = handles(map(marked, rows), job.palette["published"])
        style.legend(figure, [*drawn, *marks])
        rows.sort(key=lambda row: row["epoch_set"] == "0")  # medians first
        job.save(figure, job.figure, rows)


def _cuts(shown: Sequence[Related], bars: Sequence[Bar]) -> str:
    """Return in lines by how much the workers of these bars cut the stall of fewer workers."""
    lines: dict[str, None] = {}  # each once, in order
    for bar in bars:
        for one in shown:
            fewer, more = one.relation.sides
            if is_of(bar.run, more):
                workers = counted(more["num_workers"], "workers")
                lines[f"{fewer['num_workers']} to {workers}, here\n(from the paper's seconds):"] = (
                    None
                )
                factors = f"÷{one.here[0]:.1f} (÷{one.relation.value:.1f})"
                lines[f"{bar.tick} {factors}"] = None
    return "\n".join(lines)
