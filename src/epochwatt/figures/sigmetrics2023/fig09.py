"""Figure 9: power modes. Time of an epoch, stacked (a), and energy with the base load in it (b).

Source: SIGMETRICS 2023, section 5.6. Means over epochs 1+. The base load is the idle power of the
same power mode, state (i) by the board's own sensors, times the E2E time. Each network has a
separate axis: LeNet-5's numbers are an order of magnitude below the others'. Below panel a stand
the changes between modes that the paper prints, beside ours; below panel b the share of the base
load, in the band that it prints for a range of modes.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.patches import Patch

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    BAR,
    STACK,
    Bar,
    draw_stacks,
    grouped,
    of_epochs,
    places,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    BOUNDS,
    Related,
    bracket_handles,
    draw_brackets,
    draw_mark,
    is_marked,
    key_of,
    mark_look,
    numbers_of,
    relation_row,
)
from epochwatt.figures.common.runs import RunData
from epochwatt.figures.sigmetrics2023.baseload import (
    BAND_ALPHA,
    SHARE,
    Rows,
    baseloads,
    draw_energies,
    draw_shares,
    energy_of,
    spread_brackets,
)
from epochwatt.figures.sigmetrics2023.clouds import PALE_NOTE, outside, outside_label
from epochwatt.published.numbers import SPREADS, Config, run_key, single

STRONGEST = ("max", "MAXN")
RATIOS = (2.2, 1.0)  # of heights: bars, what is below them
CHANGES = {"stall_s": "stall", "compute_s": "compute", "e2e_s": "E2E"}
OF_EPOCH = "epoch_0"  # colour of E2E, which is no part
PART_COLOURS = {"stall_s": "stall", "compute_s": "compute", "e2e_s": OF_EPOCH}
PARTS_PT = 24.0  # of the parts' names below the axes
BOUND_AT = 0.16  # of the arrow at a bound, beside our dot


def draw(job: Job) -> None:
    """Draw the panels."""
    groups, base_w = groups_of(job), baseloads(job.idle, job.backend)
    changes = job.related(*CHANGES, number_of=numbers_of(of_epochs(job.runs)))
    label = "published change; dots: ours"
    entries = bracket_handles(changes, job.palette["published"], label)
    draw_panel(
        job,
        "fig09a",
        groups,
        ("time per epoch, epochs 1+ (s)", "change (%)"),
        entries,
        draw_times,
        lambda group, axes, rows: draw_group_changes(group, axes, job, changes),
    )
    runs = {key_of(run): run for run in of_epochs(job.runs)}

    def number_of(config: Config, metric: str) -> float | None:
        run = runs.get(run_key({**config, "epoch": None}))
        return None if run is None else energy_of(run, metric, base_w)

    shares = job.related(SHARE, "energy_wh", number_of=number_of)
    black = job.palette["published"]
    band = Patch(facecolor=black, alpha=BAND_ALPHA, linewidth=0, label="published share")
    spreads = [one for one in shares if one.relation.formula in SPREADS]
    draw_panel(
        job,
        "fig09b",
        groups,
        ("energy per epoch, epochs 1+ (Wh)", "base load (%)"),
        [band] if len(shares) > len(spreads) else [],
        lambda group, axes, job: draw_energies(group, axes, job, base_w),
        lambda group, axes, rows: draw_shares(group, axes, rows, shares, job),
        spreads,
    )


def groups_of(job: Job) -> list[list[Bar]]:
    """Return the bars by what they differ in beside the power mode; one mode compares nothing."""

    def mode(run: RunData) -> str:
        return str(run.factors["power_mode"])

    bars = grouped(
        of_epochs(job.runs), job, ("power_mode",), mode, lambda run: mode_order(mode(run))
    )
    names = dict.fromkeys(bar.group for bar in bars)
    groups = [[bar for bar in bars if bar.group == name] for name in names]
    return [group for group in groups if len(group) > 1]


def mode_order(mode: str) -> tuple[bool, bool, str]:
    """Return what sorts power modes: the paper's letters, then the strongest, then the others."""
    return len(mode) > 1, mode not in STRONGEST, mode


def draw_panel(
    job: Job,
    panel: str,
    groups: Sequence[Sequence[Bar]],
    labels: tuple[str, str],
    entries: Sequence[Artist],
    drawn: Callable[[Sequence[Bar], Axes, Job], Rows],
    drawn_below: Callable[[Sequence[Bar], Axes, Rows], Rows],
    spreads: Sequence[Related] = (),
) -> None:
    """Draw a panel: bars of each network above, what is printed of several of them below.

    Parameters
    ----------
    labels : of y, above and below
    entries : of the legend, for what is printed
    drawn, drawn_below : draw one group and return rows of the CSV
    spreads : over the bars above, as brackets
    """
    n = max(len(groups), 1)
    with job.panel(panel, [bar.run for group in groups for bar in group]) as (figure, axes):
        axes.remove()
        above, below = figure.subplots(2, n, squeeze=False, height_ratios=RATIOS)
        rows: Rows = []
        for top, bottom, group in zip(above, below, groups, strict=False):
            of_group = drawn(group, top, job)
            rows += of_group + drawn_below(group, bottom, of_group)
            top.set_title(group[0].group.replace("\n", ", "), fontsize="small")
            top.set_xticks(positions([bar.group for bar in group]), [bar.tick for bar in group])
            rotation = 90 if any(len(bar.tick) > 1 for bar in group) else 0
            top.tick_params("x", length=0, labelsize="small", rotation=rotation)
            top.grid(visible=False, axis="x")
            top.margins(x=0.02)
            fade(top, group, job)
        above[0].set_ylabel(labels[0])
        below[0].set_ylabel(labels[1])
        above[n // 2].set_xlabel("power mode")
        modes = {mode for group in groups for mode in outside(job, [bar.run for bar in group])}
        if modes:
            job.remark(panel, f"Pale: {outside_label(modes, job)}.")
            job.drawn[panel].note += PALE_NOTE
        bars, _ = above[0].get_legend_handles_labels()
        job.legend(figure, bars, rows, entries)
        draw_brackets([
            spread_brackets(top, group, spreads, job)
            for top, group in zip(above, groups, strict=False)
        ])  # fmt: skip
        job.save(figure, panel, rows)


def fade(axes: Axes, bars: Sequence[Bar], job: Job) -> None:
    """Draw the bars of modes pale that the paper has of other networks alone."""
    for container in axes.containers:
        if isinstance(container, BarContainer) and len(container) == len(bars):
            for bar, patch in zip(bars, container, strict=True):
                if bar.tick in outside(job, [bar.run]):
                    patch.set_facecolor(style.pale(to_hex(patch.get_facecolor())))


def draw_group_changes(
    bars: Sequence[Bar], axes: Axes, job: Job, changes: Sequence[Related]
) -> Rows:
    """Draw the printed changes between the modes of a group beside ours; return the CSV's rows."""
    place = places(bars)
    shown = [
        one for one in changes
        if all(place(config) is not None for side in one.relation.sides for config in single(side))
    ]  # fmt: skip
    shown.sort(key=lambda one: (list(CHANGES).index(one.relation.metric), one.relation.id))
    rows = [relation_row(one) for one in shown]
    for at, (one, row) in enumerate(zip(shown, rows, strict=True)):
        _draw_change(axes, at, one, job.ink(row), job.palette[PART_COLOURS[one.relation.metric]])
    modes = ["→".join(side["power_mode"] for side in one.relation.sides) for one in shown]
    axes.set_xticks(range(len(shown)), modes)
    axes.set_xlim(-0.6, max(len(shown) - 0.4, 0.6))
    axes.axhline(0.0, color="black", linewidth=0.5)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", rotation=90, labelsize="x-small")
    for label, row in zip(axes.get_xticklabels(), rows, strict=True):
        label.set_color(job.ink(row))
    _name_parts(axes, shown)
    if not shown:
        axes.set_axis_off()
    return rows


def _draw_change(axes: Axes, at: int, one: Related, ink: str, shade: str) -> None:
    """Draw a published change as a line, a range as a band, a bound with an arrow; ours as dots."""
    r = one.relation
    ends = [r.value] if r.value_hi is None else [r.value, r.value_hi]
    axes.hlines(ends, at - 0.35, at + 0.35, color=ink, linewidth=1.3, linestyles=one.linestyle)
    if r.value_hi is not None:
        low, high = ends
        axes.fill_between([at - 0.35, at + 0.35], low, high, color=ink, alpha=0.2, linewidth=0)
    if marker := BOUNDS.get(r.qualifier):
        axes.plot([at + BOUND_AT], [r.value], **mark_look(marker, one.seen_by_fit, ink))
    axes.plot([at] * len(one.here), one.here, color=shade, linewidth=1.0)
    axes.plot([at] * len(one.here), one.here, "o", markersize=3.5, color=shade)


def _name_parts(axes: Axes, shown: Sequence[Related]) -> None:
    """Write below the names of changes which part of an epoch they are of."""
    metrics = [one.relation.metric for one in shown]
    names = list(dict.fromkeys(metrics))
    middles = [float(np.mean([n for n, m in enumerate(metrics) if m == name])) for name in names]
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(middles, [CHANGES[name] for name in names])
    below.tick_params("x", length=0, pad=PARTS_PT, labelsize="x-small")
    below.spines["bottom"].set_visible(False)
    for end in (n for n, pair in enumerate(pairwise(metrics)) if pair[0] != pair[1]):
        axes.axvline(end + 0.5, color="black", linewidth=0.5, linestyle=":")


def draw_times(bars: Sequence[Bar], axes: Axes, job: Job) -> Rows:
    """Draw stall, compute and overhead stacked; return the CSV's rows.

    A published compute time is marked from the top of our stall.
    """
    rows = draw_stacks(bars, axes, job, "1+", beside=False)
    for n, at in enumerate(positions([bar.group for bar in bars])):
        stall, compute = rows[len(STACK) * n : len(STACK) * n + 2]
        if is_marked(compute) and stall["value"] is not None:
            on_stack = {**compute, "published": stall["value"] + compute["published"]}
            draw_mark(axes, at, on_stack, job.ink(compute), BAR, side=0)
    return rows
