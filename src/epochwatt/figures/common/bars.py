"""Bars in groups, one run each: groups, stacks, what is missing, labels below."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epochwatt.columns import FACTOR_NAMES
from epochwatt.figures.common import style
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import BOUNDS, cells, draw_mark, is_marked, key_of, mark
from epochwatt.figures.common.runs import Number, RunData, csv_row, data_words
from epochwatt.published.numbers import MEANT_EPOCHS, Config, run_key

PARTS = ("stall", "compute", "overhead")
STACK = (*(f"{part}_s" for part in PARTS), "e2e_s")  # rows of a stack
BAR = 0.66  # width of a bar; marks stand in the gap
THIN, BESIDE = 0.16, 0.45  # width of a published compute time, and how far beside its stack
TWIN_LABEL = "published compute, from 0"
WHISKERS = (("e2e_s", 0.0), ("stall_s", -0.2))  # of a stack, and how far beside its middle
REASON_CHARACTERS = 24  # of a missing bar; the CSV has all of it
SENTENCE_CHARACTERS = 30  # in a line of what is missing where nothing is there
REASONS_SHOWN = 3  # where nothing is there; the CSV has all
LINE_PT, LETTER_PT = 10.0, 8.0  # height of a tick's line, width of its letter
FLAT = 0.05  # of the highest stack: a stall so low would be hidden by a line over it
SETUP = "sigmetrics2023"  # whose numbers are over `MEANT_EPOCHS`
NEAR = 0.5  # bars that are so close and miss for one reason say so once


@dataclass(frozen=True)
class Bar:
    """One run in its group; `tick` stands below the bar, `group` below all of them."""

    run: RunData
    group: str
    tick: str


def of_epochs(runs: Sequence[RunData], epoch_set: str = "all") -> list[RunData]:
    """Return the runs with their epochs of a set, so that the corner note counts what is drawn.

    Of the paper's set-up they are those of its numbers, which claims are judged on, too: a run of
    15 hours has more.
    """
    first = 1 if epoch_set == "1+" else 0

    def last(run: RunData) -> float:
        return 0 if epoch_set == "0" else MEANT_EPOCHS if run.factors["setup"] == SETUP else np.inf

    return [
        replace(run, epochs=[row for row in run.epochs if first <= row["epoch"] <= last(run)])
        for run in runs
    ]


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
        f"{label}\nimported" if run.factors.get("imported") else label
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

    others = [f for f in FACTOR_NAMES if f not in ("model", "device", "batch_size", *within)]
    labels = []
    for f in factors:
        alike = [o for o in factors if (o["model"], o["device"]) == (f["model"], f["device"])]
        words = [job.title(f["model"])]
        words += [job.title(f["device"])] if differs("device", factors) else []
        if "batch_size" not in within and differs("batch_size", factors):
            words.append(f"batch {f['batch_size']}")
        words += [f"{n.replace('_', ' ')} {factor_text(f[n])}" for n in others if differs(n, alike)]
        labels.append("\n".join(words))
    return labels


def factor_text(value: Any) -> str:
    """Return a factor's value in words: a scale of 8 and of 8.0 are one."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def positions(groups: Sequence[str]) -> NDArray[np.floating]:
    """Return x of each bar, (n,): one apart inside a group, two between groups."""
    steps = [1.0 if a == b else 2.0 for a, b in pairwise(groups)]
    return np.concatenate([[0.0], np.cumsum(steps)]) if groups else np.zeros(0)


def places(bars: Sequence[Bar], offset: float = 0.0) -> Callable[[Config], float | None]:
    """Return the function that finds the x of a run's bar, for brackets over bars."""
    x = positions([bar.group for bar in bars])
    by_key = {key_of(b.run): float(at) + offset for b, at in zip(bars, x, strict=True)}
    return lambda config: by_key.get(run_key({**config, "epoch": None}))


def draw_stacks(
    bars: Sequence[Bar], axes: Axes, job: Job, epoch_set: str, *, beside: bool = True
) -> list[dict[str, Any]]:
    """Draw stall, compute and overhead stacked, with published marks; return the CSV's rows.

    What is published of the compute time is a thin bar beside the stack, from 0: each mark stands
    at its value, and on no part that it does not judge. The mark of a stall that is too low for a
    line over it stands beside its bar.

    Parameters
    ----------
    beside : there is room beside stacks; else marks stand on them, and compute is not marked
    """
    colour = job.colours(*PARTS, "missing", "published")
    x, bottom = positions([bar.group for bar in bars]), np.zeros(len(bars))
    for part in PARTS:
        numbers = [bar.run.number(f"{part}_s", epoch_set) for bar in bars]
        height = np.array([number.value or 0.0 for number in numbers])
        axes.bar(x, height, bottom=bottom, width=BAR, color=colour[part], label=part)
        bottom += height
    rows = [
        marked_row(bar.run, quantity, bar.run.number(quantity, epoch_set), job, epoch_set)
        for bar in bars
        for quantity in STACK
    ]
    for n, (bar, at) in enumerate(zip(bars, x, strict=True)):
        for quantity, aside in WHISKERS:
            draw_whisker(axes, at + aside, bar.run, quantity, colour["missing"], epoch_set)
        stall, compute, _, e2e = rows[len(STACK) * n : len(STACK) * (n + 1)]
        side = 1 if beside else 0
        is_flat = (stall["value"] or 0.0) < FLAT * float(bottom.max())
        aside = is_flat and beside and stall["published_qualifier"] not in BOUNDS
        draw_mark(axes, at, stall, job.ink(stall), BAR, side=side, line=not aside)
        if beside and compute["published_qualifier"] in BOUNDS:
            draw_mark(axes, at + BESIDE, compute, job.ink(compute))
        elif beside and is_marked(compute):
            low, high = compute["published"], compute["published_hi"]
            foot, top = (0.0, low) if high is None else (low, high)
            ink = job.ink(compute)
            axes.bar(
                at + BESIDE, top - foot, THIN, foot, edgecolor=ink, linewidth=0.7, zorder=4,
                color=ink if compute["seen_by_fit"] else "white",
            )  # fmt: skip
        draw_mark(axes, at, e2e, job.ink(e2e), BAR, side=side)
    missing = [row["missing"] for row in rows[:: len(STACK)]]
    draw_missing(zip(x.tolist(), missing, strict=True), axes, colour["missing"])
    return rows


def draw_whisker(
    axes: Axes, at: float, run: RunData, quantity: str, colour: str, epoch_set: str = "1+"
) -> None:
    """Draw from the lowest to the highest epoch of a measured run; one epoch has no spread."""
    values = run.values(quantity, epoch_set)
    if run.is_measured and values.size > 1:
        mean = float(values.mean())
        below, above = mean - float(values.min()), float(values.max()) - mean
        ends = [[max(below, 0.0)], [max(above, 0.0)]]  # of equal numbers the mean may be rounded
        shape: dict[str, Any] = {"capsize": 2.0, "linewidth": 0.8, "capthick": 0.8}
        if quantity == STACK[0]:  # seen on the dark part, too
            wide: dict[str, Any] = {"capsize": 2.6, "linewidth": 2.2, "capthick": 2.2}
            axes.errorbar(at, mean, ends, color="white", zorder=4, **wide)
        axes.errorbar(at, mean, ends, color=colour, zorder=4, **shape)


def marked_row(
    run: RunData, quantity: str, number: Number, job: Job, epoch_set: str = "1+", **more: Any
) -> dict[str, Any]:
    """Return a row of the CSV with what is published of it. Parameters as of `runs.csv_row`.

    A measured row of several epochs has their lowest and highest, too.
    """
    values = run.values(quantity, epoch_set) if run.is_measured and _has(run, quantity) else ()
    if len(values) > 1:
        more |= {"lowest": float(min(values)), "highest": float(max(values))}
    published_mark = mark(job.marks, run.factors, quantity, epoch_set)
    return {**csv_row(run, quantity, number, epoch_set, **more), **cells(published_mark)}


def _has(run: RunData, column: str) -> bool:
    return bool(run.epochs) and column in run.epochs[0]


def legend(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    job: Job,
    relations: Sequence[Any] = (),
    *,
    red: bool = False,
) -> None:
    """Draw the legend of a panel of bars: what was drawn, and what is published.

    Parameters
    ----------
    axes : that have an entry of each kind of bar
    relations : entries of brackets
    red : as of `Job.legend`
    """
    drawn, _ = axes.get_legend_handles_labels()
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    stacked = any(row.get("quantity") == STACK[0] for row in rows)
    beside = [r for r in rows if stacked and r["quantity"] == "compute_s" and is_marked(r)]
    if beside:
        black = job.palette["published"]
        face = black if all(row["seen_by_fit"] for row in beside) else "white"
        drawn.append(Patch(facecolor=face, edgecolor=black, linewidth=0.7, label=TWIN_LABEL))
    job.legend(figure, drawn, [row for row in rows if row not in beside], relations, red=red)


def by_model(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Return the bars of each network in a list of their own, without its name in their group."""
    models = dict.fromkeys(bar.run.factors["model"] for bar in bars)
    return [
        [
            replace(bar, group=bar.group.partition("\n")[2])
            for bar in bars
            if bar.run.factors["model"] == model
        ]
        for model in models
    ]


def model_facets(
    figure: Figure,
    axes: Axes,
    bars: Sequence[Bar],
    job: Job,
    labels: tuple[str, str],
    *,
    turned: bool = False,
) -> list[tuple[Axes, list[Bar]]]:
    """Return axes and bars of each network, side by side, each with a scale of its own.

    The bars are labelled: ticks below bars, groups below ticks. Where all ticks are one and the
    same, the groups take their place.
    """
    x_label, y_label = labels
    of_models = by_model(bars) or [[]]
    spans = [max(len(of_model) + len({b.group for b in of_model}), 4) for of_model in of_models]
    facets = style.widths(figure, axes, spans)
    alike = len({bar.tick for bar in bars}) == 1 and all(bar.group for b in of_models for bar in b)
    for facet, of_model, span in zip(facets, of_models, spans, strict=True):
        if of_model:
            facet.set_title(job.title(of_model[0].run.factors["model"]))
            label_axes(of_model, facet, "", ticks_are_groups=alike, turned=turned)
            x = positions([bar.group for bar in of_model])
            side = 0.5 * (span - (x[-1] - x[0]))
            facet.set_xlim(x[0] - side, x[-1] + side)
    data = [data_words(bar.run for bar in of_model) for of_model in of_models]
    if any(data):
        texts = [f"{facet.get_title()}\n{words}" for facet, words in zip(facets, data, strict=True)]
        style.set_titles(figure, facets, texts)
    facets[0].set_ylabel(y_label)
    if not alike:
        for facet in [facets[len(facets) // 2]] if len(facets) != 2 else facets:
            for below in facet.child_axes:
                below.set_xlabel(x_label)
    return list(zip(facets, of_models, strict=True))


def draw_missing(missing: Iterable[tuple[float, str]], axes: Axes, colour: str) -> None:
    """Write where bars are missing, and why; one sentence where all are.

    Parameters
    ----------
    missing : x and reason of each bar; the reason of those that are there is empty
    """
    missing_bars = sorted(missing, key=lambda bar: bar[0])
    if missing_bars and all(reason for _, reason in missing_bars):
        _say_missing(list(dict.fromkeys(reason for _, reason in missing_bars)), axes, colour)
        return
    spans: list[tuple[str, float, float]] = []
    for at, reason in missing_bars:
        before, start, end = spans[-1] if spans else ("", 0.0, 0.0)
        if reason and reason == before and at - end < NEAR:
            spans[-1] = (reason, start, at)
        else:
            spans.append((reason, at, at))
    for reason, start, end in spans:
        if reason:
            cut = reason[:REASON_CHARACTERS].rstrip()
            short = reason if len(reason) <= REASON_CHARACTERS else f"{cut}…"
            axes.annotate(
                f"missing: {short}", ((start + end) / 2, 0.0), xytext=(0, 3),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points", rotation=90, ha="center", va="bottom",
                fontsize="x-small", color=colour,
            )  # fmt: skip


def _say_missing(reasons: Sequence[str], axes: Axes, colour: str) -> None:
    """Write instead of bars why none is there."""
    sentences = [
        textwrap.fill(f"missing: {r}", SENTENCE_CHARACTERS) for r in reasons[:REASONS_SHOWN]
    ]
    if len(reasons) > REASONS_SHOWN:
        sentences.append("and other reasons: see the CSV")
    axes.text(0.5, 0.5, "\n".join(sentences), transform=axes.transAxes, ha="center", va="center",
              fontsize="x-small", color=colour)  # fmt: skip
    axes.set_yticks([])


def label_axes(
    bars: Sequence[Bar],
    axes: Axes,
    label: str,
    *,
    ticks_are_groups: bool = False,
    turned: bool = False,
) -> None:
    """Write each bar's tick below it, the group's name below its bars, `label` below all.

    Parameters
    ----------
    ticks_are_groups : write the group in the tick's place
    turned : write ticks upwards, where bars stand too close for words
    """
    x = positions([bar.group for bar in bars])
    axes.set_xticks(x, [bar.group if ticks_are_groups else bar.tick for bar in bars])
    axes.grid(visible=False, axis="x")
    if ticks_are_groups:
        axes.set_xlabel(label)
        return
    groups = list(dict.fromkeys(bar.group for bar in bars))
    middles = [
        float(np.mean([at for bar, at in zip(bars, x, strict=True) if bar.group == group]))
        for group in groups
    ]
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(middles, groups)
    n_lines = max((bar.tick.count("\n") for bar in bars), default=0) + 1
    height = LINE_PT * n_lines
    if turned:
        axes.tick_params("x", rotation=90)
        height = LETTER_PT * max((len(bar.tick) for bar in bars), default=1)
    below.tick_params("x", length=0, pad=7 + height)
    below.spines["bottom"].set_visible(False)
    below.set_xlabel(label)
