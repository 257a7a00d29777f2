"""Figure 9: power modes. Time of an epoch, stacked (a), and energy with the base load in it (b).

Source: SIGMETRICS 2023, section 5.6. Means over epochs 1+. The base load is the idle power of the
same power mode, state (i) by the board's own sensors, times the E2E time. Each network has a
separate axis: LeNet-5's numbers are an order of magnitude below the others'. Below panel a stand
the changes between modes that the paper prints, beside ours; below panel b the share of the base
load, in the band that it prints for a range of modes.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.claims.number_sources import EpochTable
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    BAR,
    STACK,
    Bar,
    draw_stacks,
    grouped,
    legend,
    of_epochs,
    places,
    positions,
)
from epochwatt.figures.common.brackets import (
    CHANGE,
    bound_look,
    bracket_handles,
    draw_changes,
)
from epochwatt.figures.common.failing import entries, failing, red_of, unsized
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import BOUNDS as MARKERS
from epochwatt.figures.common.published import (
    deviation_text,
    draw_mark,
    handles,
    is_marked,
)
from epochwatt.figures.common.relations import SIGNS, Related, key_of, numbers_of
from epochwatt.figures.common.runs import RunData
from epochwatt.figures.sigmetrics2023.baseload import (
    BAND_ALPHA,
    SHARE,
    Rows,
    baseloads,
    draw_energies,
    draw_shares,
    draw_spreads,
    energy_of,
)
from epochwatt.figures.sigmetrics2023.clouds import modes_note, outside, outside_label
from epochwatt.figures.sigmetrics2023.fig07 import of_backend
from epochwatt.figures.sigmetrics2023.printed_modes import (
    MARK,
    UNJUDGED,
    contradictions,
    is_contradicted,
    near_points,
    unjudged_note,
)
from epochwatt.published.numbers import SPREADS, Config, run_key, single

BOUND_LABELS = {"v": "published bound: this or below", "^": "published bound: this or above"}
STRONGEST = ("max", "MAXN")
RATIOS = (2.2, 1.0)  # of heights: bars, what is below them
CHANGES = {"stall_s": "stall", "compute_s": "compute", "e2e_s": "E2E"}
OF_EPOCH = "epoch_0"  # colour of E2E, which is no part
PART_COLOURS = {"stall_s": "stall", "compute_s": "compute", "e2e_s": OF_EPOCH}
PARTS_PT = 97.0  # of the parts' names below the axes
BAND_LABEL = "published range"


def draw(job: Job) -> None:
    """Draw the panels."""
    groups, base_w = groups_of(job), baseloads(job.idle, job.backend)
    changes = job.related(*CHANGES, number_of=numbers_of(of_epochs(job.runs)))
    draw_panel(
        *(
            job,
            "fig09a",
            groups,
            ("time per epoch, epochs 1+ (s)", "change (%)"),
            changes,
        ),
        failing(job, "fig09a", changes, source_of(job)),
        draw_times,
        lambda group, axes, rows: draw_group_changes(group, axes, job, changes),
    )

    def number_of(config: Config, metric: str) -> float | None:
        run = next(
            (run for run in of_epochs(job.runs) if key_of(run) == run_key(_any_epoch(config))), None
        )
        return None if run is None else energy_of(run, metric, base_w)

    shares = job.related(SHARE, "energy_wh", number_of=number_of)
    spreads = [one for one in shares if one.relation.formula in SPREADS]
    wrong = failing(job, "fig09b", shares, source_of(job))
    draw_panel(
        *(job, "fig09b", groups, ("energy per epoch, epochs 1+ (Wh)", "base load (%)"), spreads),
        wrong,
        lambda group, axes, job: draw_energies(group, axes, job, base_w),
        lambda group, axes, rows: draw_shares(group, axes, rows, shares, wrong, job),
    )


def _any_epoch(config: Config) -> Config:
    return {**config, "epoch": None}


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
    brackets: Sequence[Related],
    wrong: Sequence[Related],
    drawn: Callable[[Sequence[Bar], Axes, Job], Rows],
    drawn_below: Callable[[Sequence[Bar], Axes, Rows], Rows],
) -> None:
    """Draw a panel: bars of each network above, what is printed of several of them below.

    Parameters
    ----------
    labels : of y, above and below
    brackets : relations over the bars of panel b
    wrong : relations of the panel by which a claim fails, which are red
    drawn, drawn_below : draw one group and return rows of the CSV
    """
    black, n = job.palette["published"], max(len(groups), 1)
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
        on_stack = [row for row in rows if row["quantity"] == "compute_s" and is_marked(row)]
        marks = [row for row in rows if row not in on_stack]
        more = [*compute_handles(on_stack, black), *_handles(brackets, panel, job)]
        more += [*band_handles(rows, black), *entries(job, wrong), *pale_handles(groups, job)]
        legend(above[0], marks, black, more)
        note = modes_note(job, [bar.run for group in groups for bar in group])
        style.add_to_note(figure, note + _changes_note(job, [] if panel == "fig09b" else brackets))
        for top, group in zip(above, groups if panel == "fig09b" else (), strict=False):
            draw_spreads(top, group, brackets, wrong, job)
        job.save(figure, panel, rows, source_of(job))


def _handles(shown: Sequence[Related], panel: str, job: Job) -> list[Artist]:
    """Return the legend's entries for relations."""
    lines = bracket_handles(shown, job.palette["published"], job.backend)
    if panel == "fig09a" and lines:
        for line in lines:
            line.set_label(str(line.get_label()).replace(CHANGE, "published change"))
        dot: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 3.5}
        lines.append(Line2D([], [], **dot, color=job.palette["missing"], label="our change"))
        lines += _bound_handles(job, shown)
    if panel == "fig09b":
        for line in lines:
            line.set_label(str(line.get_label()).replace(CHANGE, "published spread, then ours"))
    return [*lines]


def _changes_note(job: Job, shown: Sequence[Related]) -> str:
    """Return for the corner how near changes have to be, and which printed ones are doubtful."""
    if not shown:
        return ""
    note = f"; a printed change holds within {near_points(job):g} points"
    note += unjudged_note(job) if unjudged(job, shown) else ""
    return note + contradictions(job, [one.relation for one in shown])


def _bound_handles(job: Job, shown: Sequence[Related]) -> list[Line2D]:
    """Return the legend's entry for each kind of arrow at a published change."""
    kinds: dict[str, list[bool]] = {}
    for one in shown:
        if marker := MARKERS.get(one.relation.qualifier):
            kinds.setdefault(marker, []).append(one.seen_by_fit)
    return [
        Line2D(
            [],
            [],
            label=BOUND_LABELS[marker],
            **bound_look(marker, all(seen), job.palette["published"]),
        )
        for marker, seen in kinds.items()
    ]


def compute_handles(rows: Rows, colour: str) -> list[Line2D]:
    """Return the legend's entry of published compute times; none where there are none."""
    entries = handles(rows, colour)[:1]
    for entry in entries:
        entry.set_label("published compute, on our stall")
    return entries


def source_of(job: Job) -> EpochTable:
    """Return what claims of the figure are judged on: its epochs and its idle powers."""
    idles = of_backend(job.idle, job.backend) if job.idle else []
    return EpochTable([row for run in of_epochs(job.runs) for row in run.epochs], idles)


def fade(axes: Axes, bars: Sequence[Bar], job: Job) -> None:
    """Draw the bars of modes pale that the paper has of other networks alone."""
    for container in axes.containers:
        if isinstance(container, BarContainer) and len(container) == len(bars):
            for bar, patch in zip(bars, container, strict=True):
                if bar.tick in outside(job, [bar.run]):
                    patch.set_facecolor(style.pale(to_hex(patch.get_facecolor())))


def band_handles(rows: Rows, colour: str) -> list[Artist]:
    """Return the legend's entry of the bands of panel b; none where there are none."""
    if not any(str(row["quantity"]).startswith(SHARE) for row in rows):
        return []
    return [Patch(facecolor=colour, alpha=BAND_ALPHA, linewidth=0, label=BAND_LABEL)]


def pale_handles(groups: Sequence[Sequence[Bar]], job: Job) -> list[Artist]:
    """Return the legend's entry of pale bars; none where there are none."""
    modes = {mode for group in groups for mode in outside(job, [bar.run for bar in group])}
    grey = style.pale(job.palette["missing"])
    return [Patch(facecolor=grey, label=outside_label(modes, job))] if modes else []


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
    off = unjudged(job, shown)
    names = [f"{_modes(r)}: {_values(r)}{UNJUDGED * (r.relation.id in off)}" for r in shown]
    colours = [job.palette[PART_COLOURS[one.relation.metric]] for one in shown]
    rows = draw_changes(axes, shown, names, colours, job.palette["published"])
    axes.tick_params("x", rotation=90, labelsize="x-small")
    wrong = failing(job, "fig09a", shown, source_of(job))
    for label, one in zip(axes.get_xticklabels(), shown, strict=True):
        if one in wrong:
            label.set_color(red_of(job))
    _name_parts(axes, shown)
    if not shown:
        axes.set_axis_off()
    return rows


def unjudged(job: Job, shown: Sequence[Related]) -> set[str]:
    """Return ids of changes that are off, though no claim judges their size."""
    ids, points = unsized(job, "fig09a", shown), near_points(job)
    return {r.relation.id for r in shown if r.relation.id in ids and _off_by(r) > points}


def _off_by(one: Related) -> float:
    """Return by how many points ours is beside the printed change, or its nearest end."""
    r = one.relation
    low, high = (r.value, r.value if r.value_hi is None else r.value_hi)
    low = -math.inf if MARKERS.get(r.qualifier) == "v" else low
    high = math.inf if MARKERS.get(r.qualifier) == "^" else high
    return max(max(low - value, value - high, 0.0) for value in one.here)


def _modes(one: Related) -> str:
    return "→".join(str(side["power_mode"]) for side in one.relation.sides)


def _values(one: Related) -> str:
    """Return the published change and ours: `-39 to -31, here -30`."""
    r, here = one.relation, dict.fromkeys(map(_here, one.here))
    ends = [r.value] if r.value_hi is None else [r.value, r.value_hi]
    sign = f"{SIGNS[r.qualifier]} " if r.qualifier in SIGNS else ""
    printed = sign + " to ".join(f"{end:+g}" for end in ends)
    printed += MARK * is_contradicted(r)
    return f"{printed}, here {' to '.join(here)}"


def _here(value: float) -> str:
    """Return our change in whole per cent; a smaller one with a decimal, so that it has a sign."""
    if abs(value) >= 1.0:
        return f"{value:+.0f}"
    return f"{value:+.1f}" if round(value, 1) else "0"


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
    """Draw stall, compute and overhead stacked; return the CSV's rows."""
    rows = draw_stacks(bars, axes, job, "1+", beside=False)
    black = job.palette["published"]
    for n, at in enumerate(positions([bar.group for bar in bars])):
        stall, compute = rows[len(STACK) * n : len(STACK) * n + 2]
        if is_marked(compute) and stall["value"] is not None:
            top = stall["value"] + compute["published"]
            mark = {**compute, "published": top, "value": None}
            draw_mark(axes, at, mark, black, BAR, side=0)
            words = f"{compute['published']:g} {deviation_text(compute)}".strip()
            axes.annotate(words, (at, top), xytext=(0, -8), textcoords="offset points",
                          rotation=90, ha="center", va="top", fontsize="x-small",
                          color=black)  # fmt: skip
    return rows
