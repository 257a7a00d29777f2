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
LEAST_SPAN = 4  # of the axes of a network, in bars
THIN, BESIDE = 0.16, 0.45  # width of a published compute time, and how far beside its stack
STALL_ASIDE = 0.2  # how far from a stack's middle the whisker of its stall is
FLAT = 0.05  # of the highest stack: a stall so low would be hidden by a line over it
SETUP = "sigmetrics2023"  # whose numbers are over `MEANT_EPOCHS`
REASON_CHARACTERS = 24  # of a missing bar; the CSV has all of it
SENTENCE_CHARACTERS = 30  # in a line of what is missing where nothing is there
REASONS_SHOWN = 3  # where nothing is there; the CSV has all
NEAR = 0.5  # bars that are so close and miss for one reason say so once
TICK_PT, TICK_LETTER_PT, TICK_PAD_PT = 10.0, 8.0, 7  # a tick's line, letter, gap to the axis
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
    """Copy the runs with only the epochs of a set: `0` the first, `1+` those after it, or `all`.

    Runs of the paper's set-up end with epoch `MEANT_EPOCHS`, as its numbers and claims do: those of
    15 hours have more. The note below the panel then counts the epochs that are drawn.
    """
    first, last = {"0": (0, 0), "1+": (1, np.inf), "all": (0, np.inf)}[epoch_set]
    restricted = []
    for run in runs:
        end = min(last, MEANT_EPOCHS) if run.factors["setup"] == SETUP else last
        epochs = [row for row in run.epochs if first <= row["epoch"] <= end]
        restricted.append(replace(run, epochs=epochs))
    return restricted


def grouped(
    runs: Sequence[RunData],
    job: Job,
    within: Sequence[str],
    tick: Callable[[RunData], Any],
    order: Callable[[RunData], Any],
) -> list[Bar]:
    """Make a bar of each run, labelled and sorted by group, then by `order`.

    `within` are the factors that bars of one group differ in; any other makes another group. `tick`
    gives the label of a run's own bar.
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
    """Return the label of each run's group: model, device and batch size where runs differ in them,
    then every other factor in which runs of its model and device differ; each on its own line.
    """

    def differs(name: str, rows: Sequence[Cells]) -> bool:
        return len({row[name] for row in rows}) > 1

    labelled_first = ("model", "device", "batch_size")
    further = [name for name in FACTOR_NAMES if name not in (*labelled_first, *within)]
    labels = []
    for run in factors:
        model, device = run["model"], run["device"]
        peers = [row for row in factors if (row["model"], row["device"]) == (model, device)]
        lines = [job.title(model)]
        if differs("device", factors):
            lines.append(job.title(device))
        if "batch_size" not in within and differs("batch_size", factors):
            lines.append(f"batch {run['batch_size']}")
        for name in further:
            if differs(name, peers):  # a scale of 8 and of 8.0 are one
                value = f"{run[name]:g}" if isinstance(run[name], float) else run[name]
                lines.append(f"{name.replace('_', ' ')} {value}")
        labels.append("\n".join(lines))
    return labels


def split(bars: Sequence[Bar], key: Callable[[Bar], Any]) -> list[list[Bar]]:
    """Split bars into lists of equal `key`, in the order in which the keys first occur."""
    return [[bar for bar in bars if key(bar) == k] for k in dict.fromkeys(map(key, bars))]


def x_of(bars: Sequence[Bar]) -> NDArray[np.floating]:
    """Return x of each bar, (n,): one apart inside a group, two between groups."""
    steps = [1.0 if a.group == b.group else 2.0 for a, b in pairwise(bars)]
    return np.concatenate([[0.0], np.cumsum(steps)]) if bars else np.zeros(0)


def places(bars: Sequence[Bar], offset: float = 0.0) -> Callable[[Config], float | None]:
    """Return a function from a run's published config to the x of its bar; None: it has no bar."""
    x_by_run = {key_of(bar.run): float(x) + offset for bar, x in zip(bars, x_of(bars), strict=True)}
    return lambda config: x_by_run.get(run_key({**config, "epoch": None}))


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
    """Draw numbers as bars at `x`, with whiskers and published marks.

    Marks stand at a bar's right (`side` 1) or left (-1). Returns for `draw_missing` the x of each
    bar and the reason why it is missing, empty where it is not.
    """
    bar_x = list(x)
    axes.bar(bar_x, [row.height for row in rows], width, **look)
    missing = []
    for at, row in zip(bar_x, rows, strict=True):
        draw_whisker(axes, at, row, job)
        draw_mark(axes, at, row, width, side)
        missing.append((at, str(row.row["missing"])))
    return missing


def draw_whisker(axes: Axes, at: float, row: Plotted, job: Job) -> None:
    """Draw a whisker from the lowest to the highest epoch, if several were measured."""
    if "lowest" in row.row:
        low, high = row.row["lowest"], row.row["highest"]
        for colour, width in (("white", 2.2), (job.colour("missing"), 0.8)):  # seen on dark bars
            look: style.Look = {"linewidth": width, "capthick": width, "zorder": 4}
            axes.errorbar(at, low, [[0.0], [high - low]], color=colour, capsize=2.0, **look)


def draw_stacks(
    bars: Sequence[Bar], axes: Axes, job: Job, epoch_set: str, *, beside: bool = True
) -> list[Plotted]:
    """Draw stall, compute and overhead of each bar stacked; return the CSV's rows.

    Published compute is a thin bar from 0 beside the stack. Without room for it (`beside` False),
    it is a line as long as the published time, from the top of our stall. A published stall of a
    very low stall bar is a marker alone.
    """
    job.colours(*TIME_PARTS, "missing", "published")
    x, top_s = x_of(bars), np.zeros(len(bars))
    stacks = [[job.plotted(bar.run, quantity, epoch_set) for quantity in STACK] for bar in bars]
    for n, part in enumerate(TIME_PARTS):
        part_s = np.array([stack[n].height for stack in stacks])
        colour, label = job.palette[part], columns.label(f"{part}_s")
        axes.bar(x, part_s, bottom=top_s, width=BAR, color=colour, label=label)
        top_s += part_s
    rows: list[Plotted] = []
    for at, (stall, compute, overhead, e2e) in zip(x.tolist(), stacks, strict=True):
        draw_whisker(axes, at, e2e, job)
        draw_whisker(axes, at - STALL_ASIDE, stall, job)
        is_flat = beside and stall.height < FLAT * float(top_s.max())
        is_value = stall.mark is not None and stall.mark.qualifier not in BOUNDS
        side = 1 if beside else 0
        draw_mark(axes, at, stall, BAR, side, line=not (is_flat and is_value))
        mark = compute.mark
        if mark and not beside:
            compute, start_s = replace(compute, kind=IN_STACK), stall.height
            look: style.Look = {"color": compute.ink, "marker": "_", "markersize": 5.0}
            axes.plot([at, at], [start_s, start_s + mark.value], **look, linewidth=1.2, zorder=4.6,
                      path_effects=[halo(2.6)])  # fmt: skip
        elif mark and mark.qualifier in BOUNDS:
            draw_mark(axes, at + BESIDE, compute)
        elif mark:
            compute = replace(compute, kind=BESIDE_STACK)
            start_s, end_s = 0.0, mark.value
            if mark.value_hi is not None:
                start_s, end_s = mark.value, mark.value_hi
            axes.bar(
                at + BESIDE, end_s - start_s, THIN, start_s, edgecolor=compute.ink, linewidth=0.7,
                zorder=4, color=compute.ink if mark.seen_by_fit else "white",
            )  # fmt: skip
        draw_mark(axes, at, e2e, BAR, side)
        rows += [stall, compute, overhead, e2e]
    missing = [(at, row.row["missing"]) for at, row in zip(x, rows[:: len(STACK)], strict=True)]
    draw_missing(missing, axes, job.colour("missing"))
    return rows


def draw_missing(missing: Iterable[tuple[float, str]], axes: Axes, colour: str) -> None:
    """Write the reason in the place of each missing bar; where all are missing, once in the middle.

    `missing` has x and reason of every bar, an empty reason where it was drawn. Neighbours nearer
    than `NEAR` with one reason share it.
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
    spans: list[tuple[str, float, float]] = []  # reason, x of its first and its last bar
    for x, reason in bars:
        last_reason, start, end = spans[-1] if spans else ("", 0.0, 0.0)
        if reason and reason == last_reason and x - end < NEAR:
            spans[-1] = (reason, start, x)
        else:
            spans.append((reason, x, x))
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
    """Draw the panel's legend: the labelled artists of `axes`, then the entries of `Job.legend`."""
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
    """Replace the panel's axes by one per network, labelled; return each with its bars.

    Each has its own scale. Ticks stand below bars, groups below ticks; where all ticks are equal,
    the groups take their place. `labels` are those of the x and the y axis; `turned` ticks are
    vertical.
    """
    x_label, y_label = labels
    bars_by_model = [
        [replace(bar, group=bar.group.partition("\n")[2]) for bar in model_bars]  # less its name
        for model_bars in split(bars, lambda bar: bar.run.factors["model"])
    ] or [[]]
    spans = [max(len(model_bars) + len({b.group for b in model_bars}), LEAST_SPAN)
             for model_bars in bars_by_model]  # fmt: skip
    facets = style.side_by_side(figure, axes, len(spans), spans)
    all_grouped = all(bar.group for model_bars in bars_by_model for bar in model_bars)
    ticks_are_groups = all_grouped and len({bar.tick for bar in bars}) == 1
    for facet, model_bars, span in zip(facets, bars_by_model, spans, strict=True):
        if model_bars:
            facet.set_title(job.title(model_bars[0].run.factors["model"]))
            label_axes(model_bars, facet, "", ticks_are_groups=ticks_are_groups, turned=turned)
            x = x_of(model_bars)
            margin = 0.5 * (span - (x[-1] - x[0]))
            facet.set_xlim(x[0] - margin, x[-1] + margin)
    data = [data_words(bar.run for bar in model_bars) for model_bars in bars_by_model]
    if any(data):
        texts = [f"{facet.get_title()}\n{words}" for facet, words in zip(facets, data, strict=True)]
        style.set_titles(figure, facets, texts)
    facets[0].set_ylabel(y_label)
    if not ticks_are_groups:  # below the middle one of an odd number, below both of two
        for facet in facets if len(facets) == 2 else [facets[len(facets) // 2]]:
            for below in facet.child_axes:
                below.set_xlabel(x_label)
    return list(zip(facets, bars_by_model, strict=True))


def label_axes(
    bars: Sequence[Bar],
    axes: Axes,
    label: str,
    *,
    ticks_are_groups: bool = False,
    turned: bool = False,
) -> None:
    """Write each bar's tick below it, each group's name below its bars, `label` below all.

    With `ticks_are_groups` a bar's group is its tick; `turned` ticks are vertical.
    """
    axes.set_xticks(x_of(bars), [bar.group if ticks_are_groups else bar.tick for bar in bars])
    axes.grid(visible=False, axis="x")
    if ticks_are_groups:
        axes.set_xlabel(label)
        return
    x_by_group: dict[str, list[float]] = {}
    for bar, x in zip(bars, x_of(bars).tolist(), strict=True):
        x_by_group.setdefault(bar.group, []).append(x)
    ticks_pt = TICK_PT * (1 + max((bar.tick.count("\n") for bar in bars), default=0))
    if turned:
        axes.tick_params("x", rotation=90)
        ticks_pt = TICK_LETTER_PT * max((len(bar.tick) for bar in bars), default=1)
    middles = [float(np.mean(group_x)) for group_x in x_by_group.values()]
    label_below(axes, middles, [*x_by_group], TICK_PAD_PT + ticks_pt).set_xlabel(label)


def label_below(axes: Axes, x: Sequence[float], labels: Sequence[str], pad_pt: float) -> Any:
    """Add a secondary x axis with labels, `pad_pt` below the axes; return it."""
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
    """Make a bracket over each pair of bars that published changes are between.

    Changes between the same bars are lines of one bracket; one of a bar that is not drawn has none.
    `place` gives the x of a run's bar, None where it is not drawn; `words`: metric -> what begins
    its line.
    """
    by_ends: dict[tuple[float, float], list[tuple[Related, str]]] = {}
    for change in changes:
        bar_x = [place(config) for side in change.relation.sides for config in single(side)]
        drawn_x = [x for x in bar_x if x is not None]
        if drawn_x and len(drawn_x) == len(bar_x):
            reading = change.reading(a_is_left=drawn_x[0] <= drawn_x[-1])
            text = f"{words.get(change.relation.metric, '')} {reading}".strip()
            by_ends.setdefault((min(drawn_x), max(drawn_x)), []).append((change, text))
    return [
        Bracket(
            left,
            right,
            lines=[text for _, text in changes_with_text],
            colour=job.worst([change.ink for change, _ in changes_with_text]),
            linestyle="-" if all(c.seen_by_fit for c, _ in changes_with_text) else DASHES,
        )
        for (left, right), changes_with_text in by_ends.items()
    ]


def draw_brackets(over: Sequence[tuple[Axes, Sequence[Bracket]]]) -> None:
    """Draw brackets between axes and their titles, which move up; those that overlap are stacked.

    Call it last: it lays the figure out to learn how wide the axes are.
    """
    over = [(axes, brackets) for axes, brackets in over if brackets]
    if not over:
        return
    figure = over[0][0].get_figure(root=True)
    assert isinstance(figure, Figure)
    style.lay_out(figure)  # widths stay: brackets take room above axes
    pads_pt: dict[int, float] = {}  # row of axes -> room for its brackets
    for axes, brackets in over:
        row = _grid_row(axes)
        pads_pt[row] = max(pads_pt.get(row, 0.0), _draw_stacked(axes, brackets))
    for axes in figure.axes:
        if pad_pt := pads_pt.get(_grid_row(axes)):
            axes.set_title(axes.get_title(), pad=pad_pt, fontsize=axes.title.get_fontsize())


def _grid_row(axes: Axes) -> int:
    spec = axes.get_subplotspec()
    return -1 if spec is None else spec.rowspan.start


def _draw_stacked(axes: Axes, brackets: Sequence[Bracket]) -> float:
    """Draw the brackets above axes, each on the lowest level that is free over its span.

    Narrow ones come first, so they lie below. Returns the height of all levels, points.
    """
    width_pt = axes.bbox.width * 72.0 / axes.figure.dpi
    low, high = axes.get_xlim()
    letter_width = LETTER_PT * (high - low) / width_pt  # in x
    n_letters = max(int(width_pt / LETTER_PT), SHORTEST)
    levels: list[list[tuple[float, float]]] = []  # spans of x that are taken, from below
    placed: list[tuple[int, Bracket, float, str]] = []  # level, bracket, middle and text of it
    for bracket in sorted(brackets, key=lambda b: (round(b.right - b.left, 9), b.left)):
        lines = [line for text in bracket.lines for line in _wrapped(text, n_letters)]
        half = 0.5 * letter_width * max(map(len, lines))
        middle = (bracket.left + bracket.right) / 2
        middle = min(max(middle, low + half), max(high - half, low + half))  # text in the axes
        start, end = min(bracket.left, middle - half), max(bracket.right, middle + half)
        free = [
            level for level, spans in enumerate(levels)
            if all(end <= left or right <= start for left, right in spans)
        ]  # fmt: skip
        if not free:
            free = [len(levels)]
            levels.append([])
        levels[free[0]].append((start, end))
        placed.append((free[0], bracket, middle, "\n".join(lines)))
    n_lines = [1 + max(text.count("\n") for level, *_, text in placed if level == n)
               for n in range(len(levels))]  # fmt: skip
    tops_pt = np.cumsum([1.5 * FOOT_PT, *(2.5 * FOOT_PT + LINE_PT * n for n in n_lines)]).tolist()
    points = Affine2D().scale(1.0 / 72.0) + axes.figure.dpi_scale_trans
    shift = ScaledTranslation(0.0, 1.0, axes.transAxes)  # type: ignore[arg-type]
    above = blended_transform_factory(axes.transData, points + shift)
    for level, bracket, middle, text in placed:
        top_pt, foot_pt = tops_pt[level], tops_pt[level] - FOOT_PT
        starts = [bracket.left, *(gap_end for _, gap_end in bracket.gaps)]
        ends = [*(gap_start for gap_start, _ in bracket.gaps), bracket.right]
        for left, right in zip(starts, ends, strict=True):
            (line,) = axes.plot(
                [left, left, right, right], [foot_pt, top_pt, top_pt, foot_pt], transform=above,
                color=bracket.colour, linewidth=0.9, linestyle=bracket.linestyle, clip_on=False,
            )  # fmt: skip
            line.set_in_layout(False)
        axes.text(middle, top_pt + 1.0, text, transform=above, ha="center", va="bottom",
                  fontsize="x-small", linespacing=1.05, color=bracket.colour)  # fmt: skip
    return tops_pt[-1] - 0.5 * FOOT_PT


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a text to lines of `width` characters without parting a number from word or unit."""
    unbroken = text.replace(" %", "\u00a0%").replace("here ", "here\u00a0")
    unbroken = unbroken.replace(" to ", "\u00a0to\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(unbroken, width)]
