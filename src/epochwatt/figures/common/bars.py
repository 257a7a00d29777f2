"""Bars in groups, one run each: groups, stacks, what is missing, labels below, brackets above."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, ScaledTranslation, blended_transform_factory
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.columns import FACTOR_NAMES, TIME_PARTS
from epochwatt.figures.common import style
from epochwatt.figures.common.job import Job, Row
from epochwatt.figures.common.published import (
    BESIDE_STACK,
    BOUNDS,
    DASHES,
    IN_STACK,
    Plotted,
    Related,
    draw_mark,
    halo,
    key_of,
)
from epochwatt.figures.common.runs import Cells, RunData, data_words
from epochwatt.published.numbers import MEANT_EPOCHS, Config, run_key, single

STACK = (*(f"{part}_s" for part in TIME_PARTS), "e2e_s")  # rows of a stack
BAR = 0.66  # width of a bar; marks stand in the gap
THIN, BESIDE = 0.16, 0.45  # width of a published compute time, and how far beside its stack
STALL_ASIDE = 0.2  # how far from a stack's middle the whisker of its stall is
FLAT = 0.05  # of the highest stack: a stall so low would be hidden by a line over it
SETUP = "sigmetrics2023"  # whose numbers are over `MEANT_EPOCHS`
REASON_CHARACTERS = 24  # of a missing bar; the CSV has all of it
SENTENCE_CHARACTERS = 30  # in a line of what is missing where nothing is there
REASONS_SHOWN = 3  # where nothing is there; the CSV has all
NEAR = 0.5  # bars that are so close and miss for one reason say so once
TICK_PT, TICK_LETTER_PT = 10.0, 8.0  # height of a tick's line, width of its letter
LINE_PT, LETTER_PT, FOOT_PT = 8.0, 3.7, 3.0  # of the small letters on brackets, of their feet
SHORTEST = 16  # letters of a bracket's line

# -- groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One run in its group; `tick` stands below the bar, `group` below all of them."""

    run: RunData
    group: str
    tick: str


def of_epochs(runs: Sequence[RunData], epoch_set: str = "all") -> list[RunData]:
    """Return the runs with their epochs of a set, so that the note counts what is drawn.

    Of the paper's set-up they are those of its numbers, which claims are judged on, too: a run of
    15 hours has more.
    """
    first, last = {"0": (0, 0), "1+": (1, np.inf), "all": (0, np.inf)}[epoch_set]
    found = []
    for run in runs:
        end = min(last, MEANT_EPOCHS) if run.factors["setup"] == SETUP else last
        epochs = [row for row in run.epochs if first <= row["epoch"] <= end]
        found.append(replace(run, epochs=epochs))
    return found


def grouped(
    runs: Sequence[RunData],
    job: Job,
    within: Sequence[str],
    tick: Callable[[RunData], Any],
    order: Callable[[RunData], Any],
) -> list[Bar]:
    """Return the runs as bars, group by group, with what stands below each.

    `within` are the factors that bars of one group differ in; any other makes another group.
    """
    labels = group_labels([run.factors for run in runs], job, within)
    labels = [
        f"{label}\nimported" if run.factors.get("imported") else label
        for label, run in zip(labels, runs, strict=True)
    ]
    groups = list(dict.fromkeys(labels))
    bars = [Bar(run, label, str(tick(run))) for run, label in zip(runs, labels, strict=True)]
    return sorted(bars, key=lambda bar: (groups.index(bar.group), order(bar.run)))


def group_labels(factors: Sequence[Cells], job: Job, within: Sequence[str]) -> list[str]:
    """Name each run's group: model, device where there are several, then what else differs."""

    def differs(name: str, rows: Sequence[Cells]) -> bool:
        return len({row[name] for row in rows}) > 1

    others = [f for f in FACTOR_NAMES if f not in ("model", "device", "batch_size", *within)]
    labels = []
    for f in factors:
        alike = [o for o in factors if (o["model"], o["device"]) == (f["model"], f["device"])]
        words = [job.title(f["model"])]
        words += [job.title(f["device"])] if differs("device", factors) else []
        if "batch_size" not in within and differs("batch_size", factors):
            words.append(f"batch {f['batch_size']}")
        for name in others:
            if differs(name, alike):  # a scale of 8 and of 8.0 are one
                value = f"{f[name]:g}" if isinstance(f[name], float) else f[name]
                words.append(f"{name.replace('_', ' ')} {value}")
        labels.append("\n".join(words))
    return labels


def split(bars: Sequence[Bar], key: Callable[[Bar], Any]) -> list[list[Bar]]:
    """Return bars with an equal key together, in the order in which the keys come."""
    return [[bar for bar in bars if key(bar) == k] for k in dict.fromkeys(map(key, bars))]


def x_of(bars: Sequence[Bar]) -> NDArray[np.floating]:
    """Return x of each bar, (n,): one apart inside a group, two between groups."""
    steps = [1.0 if a.group == b.group else 2.0 for a, b in pairwise(bars)]
    return np.concatenate([[0.0], np.cumsum(steps)]) if bars else np.zeros(0)


def places(bars: Sequence[Bar], offset: float = 0.0) -> Callable[[Config], float | None]:
    """Return the function that finds the x of a run's bar, for brackets over bars."""
    by_key = {key_of(b.run): float(at) + offset for b, at in zip(bars, x_of(bars), strict=True)}
    return lambda config: by_key.get(run_key({**config, "epoch": None}))


# -- bars -----------------------------------------------------------------------------------------


def draw_bars(
    axes: Axes,
    x: Iterable[float],
    rows: Sequence[Plotted],
    job: Job,
    width: float = BAR,
    side: int = 1,
    **look: Any,
) -> list[tuple[float, str]]:
    """Draw numbers as bars, with their whiskers and what is published of them.

    `side` is that of `published.draw_mark`. Returns for `draw_missing` x of each bar, and why it is
    missing.
    """
    at = list(x)
    axes.bar(at, [row.height for row in rows], width, **look)
    for place, row in zip(at, rows, strict=True):
        draw_whisker(axes, place, row, job)
        draw_mark(axes, place, row, width, side)
    return [(place, str(row.row["missing"])) for place, row in zip(at, rows, strict=True)]


def draw_whisker(axes: Axes, at: float, row: Plotted, job: Job) -> None:
    """Draw from the lowest to the highest epoch of a measured run; one epoch has no spread."""
    if "lowest" in row.row:
        low, high = row.row["lowest"], row.row["highest"]
        for colour, width in (("white", 2.2), (job.colour("missing"), 0.8)):  # on dark bars, too
            look: style.Look = {"linewidth": width, "capthick": width, "zorder": 4}
            axes.errorbar(at, low, [[0.0], [high - low]], color=colour, capsize=2.0, **look)


def draw_stacks(
    bars: Sequence[Bar], axes: Axes, job: Job, epoch_set: str, *, beside: bool = True
) -> list[Plotted]:
    """Draw stall, compute and overhead stacked, with published marks; return the CSV's rows.

    What is published of the compute time is a thin bar beside the stack, from 0; without room
    `beside`, a line as long as it, from the top of our stall. The mark of a stall that is too low
    for a line over it stands beside its bar.
    """
    job.colours(*TIME_PARTS, "missing", "published")
    x, bottom = x_of(bars), np.zeros(len(bars))
    stacks = [[job.plotted(bar.run, quantity, epoch_set) for quantity in STACK] for bar in bars]
    for n, part in enumerate(TIME_PARTS):
        height = np.array([stack[n].height for stack in stacks])
        axes.bar(
            x,
            height,
            bottom=bottom,
            width=BAR,
            color=job.palette[part],
            label=columns.label(f"{part}_s"),
        )
        bottom += height
    rows: list[Plotted] = []
    for at, (stall, compute, overhead, e2e) in zip(x.tolist(), stacks, strict=True):
        draw_whisker(axes, at, e2e, job)
        draw_whisker(axes, at - STALL_ASIDE, stall, job)
        is_flat = beside and stall.height < FLAT * float(bottom.max())
        is_value = stall.mark is not None and stall.mark.qualifier not in BOUNDS
        side = 1 if beside else 0
        draw_mark(axes, at, stall, BAR, side, line=not (is_flat and is_value))
        mark = compute.mark
        if mark and not beside:
            compute, foot = replace(compute, kind=IN_STACK), stall.height
            look: style.Look = {"color": compute.ink, "marker": "_", "markersize": 5.0}
            axes.plot([at, at], [foot, foot + mark.value], **look, linewidth=1.2, zorder=4.6,
                      path_effects=[halo(2.6)])  # fmt: skip
        elif mark and mark.qualifier in BOUNDS:
            draw_mark(axes, at + BESIDE, compute)
        elif mark:
            compute = replace(compute, kind=BESIDE_STACK)
            foot, top = (0.0, mark.value) if mark.value_hi is None else (mark.value, mark.value_hi)
            axes.bar(
                at + BESIDE, top - foot, THIN, foot, edgecolor=compute.ink, linewidth=0.7, zorder=4,
                color=compute.ink if mark.seen_by_fit else "white",
            )  # fmt: skip
        draw_mark(axes, at, e2e, BAR, side)
        rows += [stall, compute, overhead, e2e]
    missing = [(at, row.row["missing"]) for at, row in zip(x, rows[:: len(STACK)], strict=True)]
    draw_missing(missing, axes, job.colour("missing"))
    return rows


def draw_missing(missing: Iterable[tuple[float, str]], axes: Axes, colour: str) -> None:
    """Write where bars are missing, and why; one sentence where all are.

    `missing` has x and reason of each bar; the reason of those that are there is empty.
    """
    bars = sorted(missing, key=lambda bar: bar[0])
    if bars and all(reason for _, reason in bars):
        reasons = list(dict.fromkeys(reason for _, reason in bars))
        sentences = [
            textwrap.fill(f"missing: {r}", SENTENCE_CHARACTERS) for r in reasons[:REASONS_SHOWN]
        ]
        if len(reasons) > REASONS_SHOWN:
            sentences.append("and other reasons: see the CSV")
        axes.text(0.5, 0.5, "\n".join(sentences), transform=axes.transAxes, ha="center",
                  va="center", fontsize="x-small", color=colour)  # fmt: skip
        axes.set_yticks([])
        return
    spans: list[tuple[str, float, float]] = []
    for at, reason in bars:
        before, start, end = spans[-1] if spans else ("", 0.0, 0.0)
        if reason and reason == before and at - end < NEAR:
            spans[-1] = (reason, start, at)
        else:
            spans.append((reason, at, at))
    for reason, start, end in spans:
        if reason:
            is_long = len(reason) > REASON_CHARACTERS
            short = f"{reason[:REASON_CHARACTERS].rstrip()}…" if is_long else reason
            axes.annotate(
                f"missing: {short}", ((start + end) / 2, 0.0), xytext=(0, 3),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points", rotation=90, ha="center", va="bottom",
                fontsize="x-small", color=colour,
            )  # fmt: skip


# -- axes and legends -----------------------------------------------------------------------------


def legend(axes: Axes, rows: Sequence[Row], job: Job, **more: Any) -> None:
    """Draw the legend of a panel: each kind of bar that axes have, then as `Job.legend`."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    job.legend(figure, axes.get_legend_handles_labels()[0], rows, **more)


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
    of_models = [
        [replace(bar, group=bar.group.partition("\n")[2]) for bar in of_model]
        for of_model in split(bars, lambda bar: bar.run.factors["model"])
    ] or [[]]
    spans = [max(len(of_model) + len({b.group for b in of_model}), 4) for of_model in of_models]
    facets = style.side_by_side(figure, axes, len(spans), spans)
    alike = len({bar.tick for bar in bars}) == 1 and all(bar.group for b in of_models for bar in b)
    for facet, of_model, span in zip(facets, of_models, spans, strict=True):
        if of_model:
            facet.set_title(job.title(of_model[0].run.factors["model"]))
            label_axes(of_model, facet, "", ticks_are_groups=alike, turned=turned)
            x = x_of(of_model)
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


def label_axes(
    bars: Sequence[Bar],
    axes: Axes,
    label: str,
    *,
    ticks_are_groups: bool = False,
    turned: bool = False,
) -> None:
    """Write each bar's tick below it, the group's name below its bars, `label` below all.

    The group may take the tick's place. Ticks are turned where bars stand too close for words.
    """
    axes.set_xticks(x_of(bars), [bar.group if ticks_are_groups else bar.tick for bar in bars])
    axes.grid(visible=False, axis="x")
    if ticks_are_groups:
        axes.set_xlabel(label)
        return
    x_by_group: dict[str, list[float]] = {}
    for bar, at in zip(bars, x_of(bars).tolist(), strict=True):
        x_by_group.setdefault(bar.group, []).append(at)
    height = TICK_PT * (1 + max((bar.tick.count("\n") for bar in bars), default=0))
    if turned:
        axes.tick_params("x", rotation=90)
        height = TICK_LETTER_PT * max((len(bar.tick) for bar in bars), default=1)
    middles = [float(np.mean(at)) for at in x_by_group.values()]
    label_below(axes, middles, [*x_by_group], 7 + height).set_xlabel(label)


def label_below(axes: Axes, x: Sequence[float], labels: Sequence[str], pad_pt: float) -> Any:
    """Write labels below those of the x axis; return the axes of their own that they have."""
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(x, labels)
    below.tick_params("x", length=0, pad=pad_pt)
    below.spines["bottom"].set_visible(False)
    return below


# -- brackets over bars ---------------------------------------------------------------------------


class Bracket(NamedTuple):
    """A bracket over bars: x of both ends, the lines of its text, its look."""

    left: float
    right: float
    lines: Sequence[str]
    colour: str
    linestyle: Any = "-"
    gaps: Sequence[tuple[float, float]] = ()  # ends of bars in its middle that it is not of


def brackets_of(
    changes: Iterable[Related],
    place: Callable[[Config], float | None],
    job: Job,
    words: Mapping[str, str],
) -> list[Bracket]:
    """Return a bracket for each pair of bars that relations are of; several are its lines.

    `place` gives the x of a run's bar, None where it is not drawn; `words` begin a metric's line.
    """
    by_ends: dict[tuple[float, float], list[tuple[Related, str]]] = {}
    for one in changes:
        found = [place(config) for side in one.relation.sides for config in single(side)]
        ends = [at for at in found if at is not None]
        if ends and len(ends) == len(found):
            reading = one.reading(a_is_left=ends[0] <= ends[-1])
            text = f"{words.get(one.relation.metric, '')} {reading}".strip()
            by_ends.setdefault((min(ends), max(ends)), []).append((one, text))
    return [
        Bracket(
            *ends,
            [text for _, text in alike],
            job.ink(*(one.published_id for one, _ in alike)),
            "-" if all(one.seen_by_fit for one, _ in alike) else DASHES,
        )
        for ends, alike in by_ends.items()
    ]


def draw_brackets(over: Sequence[tuple[Axes, Sequence[Bracket]]]) -> None:
    """Draw brackets above axes, below their titles: their height is no value.

    Brackets that would lie on one another stand one above the other. Call it last: it lays the
    figure out to learn how large the axes are.
    """
    over = [(axes, brackets) for axes, brackets in over if brackets]
    if not over:
        return
    figure = over[0][0].get_figure(root=True)
    assert isinstance(figure, Figure)
    style.lay_out(figure)  # widths stay: brackets take room above axes
    pads_pt: dict[int, float] = {}
    for axes, brackets in over:
        row = _row_of(axes)
        pads_pt[row] = max(pads_pt.get(row, 0.0), _draw_over(axes, brackets))
    for axes in figure.axes:
        if pad_pt := pads_pt.get(_row_of(axes)):
            axes.set_title(axes.get_title(), pad=pad_pt, fontsize=axes.title.get_fontsize())


def _row_of(axes: Axes) -> int:
    place = axes.get_subplotspec()
    return -1 if place is None else place.rowspan.start


def _draw_over(axes: Axes, brackets: Sequence[Bracket]) -> float:
    """Draw the brackets of axes, narrow ones below; return how much room they take, in points."""
    width_pt = axes.bbox.width * 72.0 / axes.figure.dpi
    low, high = axes.get_xlim()
    letter = LETTER_PT * (high - low) / width_pt  # in x
    letters = max(int(width_pt / LETTER_PT), SHORTEST)
    levels: list[list[tuple[float, float]]] = []  # what is taken of x
    placed: list[tuple[int, Bracket, float, str]] = []
    for bracket in sorted(brackets, key=lambda b: (round(b.right - b.left, 9), b.left)):
        lines = [line for text in bracket.lines for line in _lines(text, letters)]
        half = 0.5 * letter * max(map(len, lines))
        middle = (bracket.left + bracket.right) / 2
        middle = min(max(middle, low + half), max(high - half, low + half))
        start, end = min(bracket.left, middle - half), max(bracket.right, middle + half)
        free = [n for n, t in enumerate(levels) if all(end <= a or b <= start for a, b in t)]
        level = min(free, default=len(levels))
        levels[level:level] = [] if free else [[]]
        levels[level].append((start, end))
        placed.append((level, bracket, middle, "\n".join(lines)))
    n_lines = [1 + max(text.count("\n") for at, *_, text in placed if at == n)
               for n in range(len(levels))]  # fmt: skip
    tops_pt = np.cumsum([1.5 * FOOT_PT, *(2.5 * FOOT_PT + LINE_PT * n for n in n_lines)]).tolist()
    points = Affine2D().scale(1.0 / 72.0) + axes.figure.dpi_scale_trans
    shift = ScaledTranslation(0.0, 1.0, axes.transAxes)  # type: ignore[arg-type]
    above = blended_transform_factory(axes.transData, points + shift)
    for level, bracket, middle, text in placed:
        top_pt, foot_pt = tops_pt[level], tops_pt[level] - FOOT_PT
        ends = [bracket.left, *(x for gap in bracket.gaps for x in gap), bracket.right]
        for left, right in zip(ends[::2], ends[1::2], strict=True):
            (line,) = axes.plot(
                [left, left, right, right], [foot_pt, top_pt, top_pt, foot_pt], transform=above,
                color=bracket.colour, linewidth=0.9, linestyle=bracket.linestyle, clip_on=False,
            )  # fmt: skip
            line.set_in_layout(False)
        axes.text(middle, top_pt + 1.0, text, transform=above, ha="center", va="bottom",
                  fontsize="x-small", linespacing=1.05, color=bracket.colour)  # fmt: skip
    return tops_pt[-1] - 0.5 * FOOT_PT


def _lines(text: str, width: int) -> list[str]:
    """Return a text in lines that part no number from its word or its unit."""
    bound = text.replace(" %", "\u00a0%").replace("here ", "here\u00a0")
    bound = bound.replace(" to ", "\u00a0to\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(bound, width)]
