"""Figure 9: power modes. Time of an epoch, stacked (a), and energy with the base load in it (b).

Source: SIGMETRICS 2023, section 5.6. The base load is the idle power of the same power mode, state
(i) by the board's own sensors, times the E2E time. Below panel a stand the printed changes between
modes, beside ours; below panel b the share of the base load, in the band that is printed.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt import columns
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    BAR,
    Bar,
    Bracket,
    draw_bars,
    draw_brackets,
    draw_missing,
    draw_stacks,
    label_below,
    legend,
    of_epochs,
    places,
    x_of,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    BOUNDS,
    DASHES,
    GLYPHS,
    ON_BOARD,
    Plotted,
    Related,
    idle_mark,
    key_of,
    mark_look,
    metric_of,
    numbers_of,
)
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.modes import (
    groups_of,
    mode_axis,
    outside,
    ranges,
    remark_pale,
)
from epochwatt.published.numbers import SPREADS, Config, run_key, single
from epochwatt.tables import read_cells

RATIOS = (2.2, 1.0)  # of heights: bars, what is below them
CHANGES = {name: columns.label(name) for name in ("stall_s", "compute_s", "e2e_s")}
COLOURS = {"stall_s": "stall", "compute_s": "compute", "e2e_s": "missing"}  # E2E is no part
PARTS_PT = 24.0  # of the parts' names below the axes
BOUND_AT = 0.16  # of the arrow at a bound, beside our dot
PLACE = ("device", "instance", "power_mode")
SHARE = "baseload_wh/energy_wh"
BAND_ALPHA = 0.15  # of a published range
OR_BEYOND = {"^": "or higher", "v": "or lower"}  # marker of a bound of a change -> words
NO_BASELOAD = "no idle power of this mode"
ENERGY = ("energy_paper_wh", "baseload_wh", "baseload_pct")  # rows of a bar in panel b

BaseLoads = Mapping[tuple[str, ...], float]  # device, instance, power mode -> idle power, W


def draw(job: Job) -> None:
    """Draw the panels."""
    groups, base_w = groups_of(job), baseloads(job.idle, job.backend)
    changes = job.related(*CHANGES, number_of=numbers_of(of_epochs(job.runs)))
    runs = {key_of(run): run for run in of_epochs(job.runs)}

    def number_of(config: Config, metric: str) -> float | None:
        run = runs.get(run_key({**config, "epoch": None}))
        if run is None or metric != SHARE:
            return None if run is None else metric_of(run, metric, "1+")
        return energy_numbers(run, base_w)[2].value

    shares = job.related(SHARE, "energy_wh", number_of=number_of)
    spreads = [one for one in shares if one.relation.formula in SPREADS]
    lines: list[Artist] = []
    if len(shares) > len(spreads):
        black = job.palette["published"]
        lines = [
            Patch(facecolor=black, alpha=BAND_ALPHA, linewidth=0, label="published share"),
            Line2D([], [], color=black, linewidth=1.3, label="share at the published idle power"),
        ]
    shown = [bar.run for group in groups for bar in group]
    with job.panel("fig09a", shown) as (figure, axes):
        rows: list[Plotted | Related] = []
        fields = _fields(figure, axes, len(groups))
        for top, bottom, group in zip(*fields, groups, strict=False):
            rows += draw_stacks(group, top, job, "1+", beside=False)
            rows += draw_changes(group, bottom, job, changes)
        labels = (style.axis_title("e2e_s", "epochs 1+"), "change (%)")
        _label_fields(job, "fig09a", fields, groups, labels)
        legend(fields[0][0], rows, job, change=change_words(rows))
        job.save(figure, "fig09a", rows)
    with job.panel("fig09b", shown) as (figure, axes):
        rows = []
        fields = _fields(figure, axes, len(groups))
        for top, bottom, group in zip(*fields, groups, strict=False):
            energies = draw_energies(group, top, job, base_w)
            rows += [*energies, *draw_shares(group, bottom, energies, shares, job)]
        labels = (
            style.axis_title("energy_paper_wh", "epochs 1+"),
            style.axis_title("baseload_pct", width=14),
        )
        _label_fields(job, "fig09b", fields, groups, labels)
        legend(fields[0][0], rows, job, lines=lines, change="")
        draw_brackets([
            (top, spread_brackets(group, spreads))
            for top, group in zip(fields[0], groups, strict=False)
        ])  # fmt: skip
        job.save(figure, "fig09b", rows)


def _fields(figure: Any, axes: Axes, n: int) -> tuple[Sequence[Axes], Sequence[Axes]]:
    """Return the axes of bars of each network, and those below them."""
    axes.remove()
    above, below = figure.subplots(2, max(n, 1), squeeze=False, height_ratios=RATIOS)
    return above, below


def _label_fields(
    job: Job,
    panel: str,
    fields: tuple[Sequence[Axes], Sequence[Axes]],
    groups: Sequence[Sequence[Bar]],
    labels: tuple[str, str],
) -> None:
    """Label axes, networks and modes of drawn bars; bars that the paper does not compare get pale.

    `fields`: axes of bars and those below; `labels`: their y labels.
    """
    above, below = fields
    pale: set[str] = set()
    for top, group in zip(above, groups, strict=False):
        top.set_title(group[0].group.replace("\n", ", "), fontsize="small")
        top.set_xticks(x_of(group), [bar.tick for bar in group])
        rotation = 90 if any(len(bar.tick) > 1 for bar in group) else 0
        top.tick_params("x", length=0, labelsize="small", rotation=rotation)
        top.grid(visible=False, axis="x")
        top.margins(x=0.02)
        not_compared = outside(job, group)
        pale |= not_compared
        for container in top.containers:
            if isinstance(container, BarContainer) and len(container) == len(group):
                for bar, patch in zip(group, container, strict=True):
                    if bar.tick in not_compared:
                        patch.set_facecolor(style.pale(to_hex(patch.get_facecolor())))
    above[0].set_ylabel(labels[0])
    below[0].set_ylabel(labels[1])
    above[len(above) // 2].set_xlabel(mode_axis(groups))
    remark_pale(job, panel, pale)


# -- panel a: changes between modes ---------------------------------------------------------------


def change_words(rows: Sequence[Plotted | Related]) -> str:
    """Return the legend's words for the changes among the rows: ours, published, ranges, bounds."""
    relations = [row.relation for row in rows if isinstance(row, Related)]
    words = ["grey between two: range"] if any(r.value_hi is not None for r in relations) else []
    markers = {BOUNDS[r.qualifier] for r in relations if r.qualifier in BOUNDS}
    words += [f"{GLYPHS[marker]}: {OR_BEYOND[marker]}" for marker in sorted(markers)]
    return f"published change{' (' + ', '.join(words) + ')' if words else ''}; ●: ours"


def draw_changes(
    bars: Sequence[Bar], axes: Axes, job: Job, changes: Sequence[Related]
) -> list[Related]:
    """Draw the printed changes between the modes of a group beside ours; return the CSV's rows.

    A published change is a line, a range a band, a bound has an arrow; ours are dots.
    """
    place = places(bars)
    shown = [
        change for change in changes
        if all(place(run) is not None for side in change.relation.sides for run in single(side))
    ]  # fmt: skip
    shown.sort(key=lambda change: (list(CHANGES).index(change.relation.metric), change.relation.id))
    for at, change in enumerate(shown):
        relation, ends = change.relation, (at - 0.35, at + 0.35)
        values = [v for v in (relation.value, relation.value_hi) if v is not None]
        axes.hlines(values, *ends, color=change.ink, linewidth=1.3, linestyles=change.linestyle)
        if relation.value_hi is not None:
            band = (relation.value, relation.value_hi)
            axes.fill_between(ends, *band, color=change.ink, alpha=0.2, linewidth=0)
        if marker := BOUNDS.get(relation.qualifier):
            look = mark_look(marker, change.seen_by_fit, change.ink)
            axes.plot([at + BOUND_AT], [relation.value], **look)
        shade = job.palette[COLOURS[relation.metric]]
        axes.plot(
            [at] * len(change.here), change.here, "o-", linewidth=1, markersize=3.5, color=shade
        )
    modes = ["→".join(side["power_mode"] for side in change.relation.sides) for change in shown]
    axes.set_xticks(range(len(shown)), modes)
    axes.set_xlim(-0.6, max(len(shown) - 0.4, 0.6))
    axes.axhline(0.0, color="black", linewidth=0.5)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", rotation=90, labelsize="x-small")
    for label, change in zip(axes.get_xticklabels(), shown, strict=True):
        label.set_color(change.ink)
    metrics = [change.relation.metric for change in shown]
    names = list(dict.fromkeys(metrics))
    middles = [float(np.mean([n for n, m in enumerate(metrics) if m == name])) for name in names]
    below = label_below(axes, middles, [CHANGES[name] for name in names], PARTS_PT)
    below.tick_params("x", labelsize="x-small")
    for end in (n for n, (a, b) in enumerate(pairwise(metrics)) if a != b):
        axes.axvline(end + 0.5, color="black", linewidth=0.5, linestyle=":")
    if not shown:
        axes.set_axis_off()
    return shown


# -- panel b: the base load -----------------------------------------------------------------------


def baseloads(path: str, backend: str) -> BaseLoads:
    """Read from idle.csv the power, W, of each `PLACE` in state (i), by the board's sensors.

    Empty without a path.
    """
    wanted = (backend, ON_BOARD, "module")
    return {
        tuple(row[key] for key in PLACE): float(row["power_w"])
        for row in (read_cells(path) if path else ())
        if (row["backend"], row["state"], row["power_scope"]) == wanted and row["power_w"]
    }


def energy_numbers(run: RunData, base_w: BaseLoads) -> tuple[Number, Number, Number]:
    """Return an epoch's energy, Wh, the base load in it, Wh, and its share, %: as in `ENERGY`.

    Base load = idle power x E2E / 3600.
    """
    energy, e2e = run.number("energy_paper_wh"), run.number("e2e_s")
    power_w = base_w.get(tuple(run.factors[key] for key in PLACE))
    base = Number(None, 0, e2e.missing or NO_BASELOAD)
    share = Number(None, 0, energy.missing or base.missing)
    if power_w is not None and e2e.value is not None:
        base = e2e._replace(value=power_w * e2e.value / 3600.0)
        if energy.value is not None:
            share = energy._replace(value=100.0 * power_w * e2e.value / 3600.0 / energy.value)
    return energy, base, share


def draw_energies(bars: Sequence[Bar], axes: Axes, job: Job, base_w: BaseLoads) -> list[Plotted]:
    """Draw the energy of an epoch with the base load in it; return the CSV's rows."""
    rows = [
        job.plotted(bar.run, quantity, number=number)
        for bar in bars
        for quantity, number in zip(ENERGY, energy_numbers(bar.run, base_w), strict=True)
    ]
    whole, base = rows[:: len(ENERGY)], rows[1 :: len(ENERGY)]
    x, name = x_of(bars), columns.label("baseload_wh")
    look = {"color": job.colour("above_baseload"), "label": f"above the {name}"}
    missing = draw_bars(axes, x, whole, job, BAR, 0, **look)
    draw_missing(missing, axes, job.colour("missing"))
    whole_wh = np.array([row.height for row in whole])
    base_wh = np.array([row.height for row in base])
    axes.bar(x, base_wh, BAR, color=job.colour("baseload"), label=name)
    unknown = (whole_wh > 0) & (base_wh == 0)
    if unknown.any():
        grey = job.colour("missing")
        axes.bar(x[unknown], whole_wh[unknown], BAR, color=grey, label=NO_BASELOAD)
    return rows


def draw_shares(
    bars: Sequence[Bar],
    axes: Axes,
    energies: Sequence[Plotted],
    shares: Sequence[Related],
    job: Job,
) -> list[Related]:
    """Draw the share of the base load in each mode, in the printed band; return the CSV's rows.

    A line at a mode is the share that its printed idle power would have in our energy.
    """
    colour, pale = job.colour("baseload"), outside(job, bars)
    x, place, shown = x_of(bars), places(bars), []
    percent = [row.value for row in energies if row.row["quantity"] == "baseload_pct"]
    for at, share, bar in zip(x, percent, bars, strict=True):
        shade = style.pale(colour) if bar.tick in pale else colour
        axes.plot([at], [np.nan if share is None else share], "o", markersize=3.5, color=shade)
        device, mode = bar.run.factors["device"], bar.run.factors["power_mode"]
        printed = idle_mark(job.marks, device, mode, ON_BOARD, "module")
        energy, e2e = bar.run.number("energy_paper_wh").value, bar.run.number("e2e_s").value
        if printed is not None and energy and e2e is not None:
            implied_pct = 100.0 * printed.value * e2e / 3600.0 / energy
            dash: Any = "-" if printed.seen_by_fit else DASHES
            look = {"color": job.palette["published"], "linewidth": 1.3, "linestyles": dash}
            axes.hlines(implied_pct, at - 0.45, at + 0.45, **look)
    for published in shares:
        found = [place(config) for config in single(published.relation.config_a)]
        inside = [at for at in found if at is not None]
        if published.relation.metric == SHARE and len(inside) == len(found):
            band = (
                published.relation.value,
                published.relation.value_hi or published.relation.value,
            )
            ends = [min(inside) - 0.5, max(inside) + 0.5]
            axes.fill_between(ends, *band, linewidth=0, color=published.ink, alpha=BAND_ALPHA)
            shown.append(published)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0, labelsize="small")
    axes.tick_params("x", rotation=90 if any(len(bar.tick) > 1 for bar in bars) else 0)
    axes.set_xlim(-0.7, x[-1] + 0.7)
    axes.set_ylim(0, 100)
    axes.grid(visible=False, axis="x")
    return shown


def spread_brackets(bars: Sequence[Bar], spreads: Sequence[Related]) -> list[Bracket]:
    """Return brackets of the spreads over some of the bars, parted where bars are left out."""
    place, brackets = places(bars), []
    for spread in spreads:
        configs = single(spread.relation.config_a)
        at = sorted(x for config in configs if (x := place(config)) is not None)
        if len(at) == len(configs):
            gaps = [pair for pair in pairwise(at) if pair[1] - pair[0] > 1.0]
            modes = ranges(config["power_mode"] for config in configs)
            words = [f"spread, {modes}: {spread.reading()}"]
            brackets.append(Bracket(at[0], at[-1], words, spread.ink, spread.linestyle, gaps))
    return brackets
