"""Bars in groups, one run each: groups, stacks, what is missing, labels below."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from epochwatt.figures.job import Job
from epochwatt.figures.published import BOUNDS, SHAPES, cells, draw_mark, is_marked, mark
from epochwatt.figures.runs import FACTORS, Number, RunData, row

PARTS = ("stall", "compute", "overhead")
MARKED = ("stall_s", "e2e_s")  # of a stack: marks at the heights of both
REASON_CHARACTERS = 32  # of a missing bar; the CSV has all of it


@dataclass(frozen=True)
class Bar:
    """One run in its group; `tick` stands below the bar, `group` below all of them."""

    run: RunData
    group: str
    tick: str


def grouped(
    runs: Sequence[RunData],
    job: Job,
    within: Sequence[str],
    tick: Callable[[RunData], str],
    order: Callable[[RunData], Any],
) -> list[Bar]:
    """Return the runs as bars, group by group.

    Parameters
    ----------
    within : factors that bars of one group differ in; every other factor makes another group
    tick : what stands below a bar
    order : sorts the bars of a group
    """
    labels = group_labels([run.factors for run in runs], job, within)
    labels = [
        f"{label}\nimported" if run.is_imported else label
        for label, run in zip(labels, runs, strict=True)
    ]
    groups = list(dict.fromkeys(labels))
    bars = [Bar(run, label, tick(run)) for run, label in zip(runs, labels, strict=True)]
    return sorted(bars, key=lambda bar: (groups.index(bar.group), order(bar.run)))


def group_labels(
    factors: Sequence[Mapping[str, Any]], job: Job, within: Sequence[str]
) -> list[str]:
    """Name each run's group: model, device where there are several, then what else differs."""

    def differs(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        return len({row[name] for row in rows}) > 1

    others = [f for f in FACTORS if f not in ("model", "device", "batch_size", *within)]
    labels = []
    for f in factors:
        alike = [o for o in factors if (o["model"], o["device"]) == (f["model"], f["device"])]
        words = [job.title(f["model"])]
        words += [job.title(f["device"])] if differs("device", factors) else []
        if "batch_size" not in within and differs("batch_size", factors):
            words.append(f"batch {f['batch_size']}")
        words += [f"{n.replace('_', ' ')} {_said(f[n])}" for n in others if differs(n, alike)]
        labels.append("\n".join(words))
    return labels


def _said(value: Any) -> str:
    """Return a factor's value in words: a scale of 8 and of 8.0 are one."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def positions(groups: Sequence[str]) -> NDArray[np.floating]:
    """Return x of each bar, (n,): one apart inside a group, two between groups."""
    steps = [1.0 if a == b else 2.0 for a, b in pairwise(groups)]
    return np.concatenate([[0.0], np.cumsum(steps)]) if groups else np.zeros(0)


def draw_stacks(bars: Sequence[Bar], axes: Axes, job: Job, epoch_set: str) -> list[dict[str, Any]]:
    """Draw stall, compute and overhead stacked, with published marks; return the CSV's rows."""
    colour = job.colours(*PARTS, "missing", "published")
    x, bottom = positions([bar.group for bar in bars]), np.zeros(len(bars))
    for part in PARTS:
        found = [bar.run.number(f"{part}_s", epoch_set) for bar in bars]
        height = np.array([number.value or 0.0 for number in found])
        axes.bar(x, height, bottom=bottom, width=0.8, color=colour[part], label=part)
        bottom += height
    rows = [
        marked_row(bar.run, quantity, bar.run.number(quantity, epoch_set), job, epoch_set)
        for bar in bars
        for quantity in (*(f"{part}_s" for part in PARTS), "e2e_s")
    ]
    for n, at in enumerate(x):
        for told in rows[4 * n : 4 * n + 4]:
            if told["quantity"] in MARKED:
                draw_mark(axes, at, told, colour["published"])
    draw_missing([told["missing"] for told in rows[::4]], x, axes, colour["missing"])
    return rows


def marked_row(
    run: RunData, quantity: str, number: Number, job: Job, epoch_set: str = "1+", **more: Any
) -> dict[str, Any]:
    """Return a row of the CSV with what is published of it. Parameters as of `runs.row`."""
    found = mark(job.marks, run.factors, quantity, epoch_set)
    return {**row(run, quantity, number, epoch_set, **more), **cells(found)}


def legend(axes: Axes, rows: Sequence[Mapping[str, Any]], colour: str) -> None:
    """Draw the legend of what was drawn, with an entry for each kind of published value."""
    handles = legend_handles(axes, rows, colour)
    axes.legend(handles=handles, ncols=len(handles))


def legend_handles(axes: Axes, rows: Sequence[Mapping[str, Any]], colour: str) -> list[Any]:
    """Return the entries of a legend: what was drawn, and each kind of published value."""
    handles, _ = axes.get_legend_handles_labels()
    marked = [
        told for told in rows if is_marked(told) and told["published_qualifier"] not in BOUNDS
    ]
    kinds = dict.fromkeys(SHAPES[told["quantity"]] for told in marked if told["quantity"] in SHAPES)
    for shape, label in kinds:
        handles.append(
            Line2D([], [], linestyle="none", marker=shape, markersize=4.5, label=label,
                   markeredgecolor=colour, markerfacecolor="white")
        )  # fmt: skip
    return handles


def draw_missing(reasons: Sequence[str], x: Iterable[float], axes: Axes, colour: str) -> None:
    """Write where a bar is missing, and why."""
    for reason, at in zip(reasons, x, strict=True):
        if reason:
            cut = reason[:REASON_CHARACTERS].rstrip()
            short = reason if len(reason) <= REASON_CHARACTERS else f"{cut}…"
            axes.annotate(
                f"missing: {short}", (at, 0), xytext=(0, 3), textcoords="offset points",
                rotation=90, ha="center", va="bottom", fontsize="x-small", color=colour,
            )  # fmt: skip


def label_axes(bars: Sequence[Bar], axes: Axes, label: str) -> None:
    """Write each bar's tick below it, the group's name below its bars, `label` below all."""
    x = positions([bar.group for bar in bars])
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.grid(visible=False, axis="x")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 1.15)  # room for the legend
    groups = list(dict.fromkeys(bar.group for bar in bars))
    middles = [
        float(np.mean([at for bar, at in zip(bars, x, strict=True) if bar.group == group]))
        for group in groups
    ]
    lines = max((bar.tick.count("\n") for bar in bars), default=0) + 1
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(middles, ["\n" * lines + group for group in groups])
    below.tick_params("x", length=0, pad=7)
    below.spines["bottom"].set_visible(False)
    below.set_xlabel(label)
