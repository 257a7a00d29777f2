"""The base load in the energy of an epoch: idle power times E2E time; its bars, shares, spreads."""

import csv
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import BAR, Bar, draw_missing, marked_row, places, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    DASHES,
    ON_BOARD,
    Bracket,
    Related,
    draw_mark,
    idle_mark,
    metric_of,
    relation_row,
)
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.clouds import outside, ranges
from epochwatt.published.numbers import single

PLACE = ("device", "instance", "power_mode")
SHARE = "baseload_wh/energy_wh"
BAND_ALPHA = 0.15  # of a published range
NO_BASELOAD = "no idle power of this mode"
ENERGY = ("energy_paper_wh", "baseload_wh", "baseload_pct")  # rows of a bar in panel b
Rows = list[dict[str, Any]]
BaseLoads = Mapping[tuple[Any, ...], float]


def energy_of(run: RunData, metric: str, base_w: BaseLoads) -> float | None:
    """Return the energy of an epoch, or the share of the base load in it."""
    if metric != SHARE:
        return metric_of(run, metric, "1+")
    share = _energy_numbers(run, base_w)[ENERGY.index("baseload_pct")]
    return share.value


def baseloads(path: str, backend: str) -> BaseLoads:
    """Return device, instance, power mode -> idle power in state (i) by the board's sensors, W.

    Parameters
    ----------
    path : table of idle powers; empty: there is none
    """
    if not path:
        return {}
    with open(path, newline="", encoding="utf-8") as handle:
        return {
            tuple(row[key] for key in PLACE): float(row["power_w"])
            for row in csv.DictReader(handle)
            if (row["backend"], row["state"], row["power_scope"]) == (backend, ON_BOARD, "module")
            and row["power_w"]
        }


def draw_energies(bars: Sequence[Bar], axes: Axes, job: Job, base_w: BaseLoads) -> Rows:
    """Draw the energy of an epoch with the base load in it; return the CSV's rows."""
    colour = job.colours("baseload", "above_baseload", "missing", "published")
    x = positions([bar.group for bar in bars])
    rows = [row for bar in bars for row in _energy_rows(bar.run, job, base_w)]
    whole, base, _ = (rows[n :: len(ENERGY)] for n in range(len(ENERGY)))
    height = np.array([row["value"] or 0.0 for row in whole])
    axes.bar(x, height, width=BAR, color=colour["above_baseload"], label="above the base load")
    part = np.array([row["value"] or 0.0 for row in base])
    axes.bar(x, part, width=BAR, color=colour["baseload"], label="base load")
    draw_missing(
        [(at, row["missing"]) for at, row in zip(x, whole, strict=True)], axes, colour["missing"]
    )
    unknown = (height > 0) & (part == 0)
    if unknown.any():
        grey = colour["missing"]
        axes.bar(x[unknown], height[unknown], width=BAR, color=grey, label=NO_BASELOAD)
    for at, row in zip(x, whole, strict=True):
        draw_mark(axes, at, row, job.ink(row), BAR, side=0)
    return rows


def _energy_rows(run: RunData, job: Job, base_w: BaseLoads) -> Rows:
    numbers = dict(zip(ENERGY, _energy_numbers(run, base_w), strict=True))
    return [marked_row(run, quantity, number, job) for quantity, number in numbers.items()]


def _energy_numbers(run: RunData, base_w: BaseLoads) -> tuple[Number, Number, Number]:
    """Return the energy of an epoch, the base load in it and its share."""
    energy, e2e = run.number("energy_paper_wh"), run.number("e2e_s")
    power_w = base_w.get(tuple(run.factors[key] for key in PLACE))
    base = Number(None, 0, e2e.missing or NO_BASELOAD)
    share = Number(None, 0, energy.missing or base.missing)
    if power_w is not None and e2e.value is not None:
        base = e2e._replace(value=power_w * e2e.value / 3600.0)
        if energy.value is not None:
            share = energy._replace(value=100.0 * power_w * e2e.value / 3600.0 / energy.value)
    return energy, base, share


def draw_shares(
    bars: Sequence[Bar], axes: Axes, rows: Rows, shares: Sequence[Related], job: Job
) -> Rows:
    """Draw the share of the base load in each mode, in the printed band; return the CSV's rows."""
    colour = job.colours("baseload", "published")
    x, place = positions([bar.group for bar in bars]), places(bars)
    percent = [row["value"] for row in rows if row["quantity"] == "baseload_pct"]
    pale = outside(job, [bar.run for bar in bars])
    for at_bar, share, bar in zip(x, percent, bars, strict=True):
        shade = style.pale(colour["baseload"]) if bar.tick in pale else colour["baseload"]
        axes.plot([at_bar], [np.nan if share is None else share], "o", markersize=3.5, color=shade)
    shown = []
    for one in shares:
        at = [place(config) for config in single(one.relation.config_a)]
        inside = [place_of_bar for place_of_bar in at if place_of_bar is not None]
        if one.relation.metric == SHARE and len(inside) == len(at):
            band = (one.relation.value, one.relation.value_hi or one.relation.value)
            row = relation_row(one)
            axes.fill_between([min(inside) - 0.5, max(inside) + 0.5], *band, linewidth=0,
                              color=job.ink(row), alpha=BAND_ALPHA)  # fmt: skip
            shown.append(row)
    for at_bar, bar in zip(x, bars, strict=True):
        _draw_printed_baseload(at_bar, bar.run, axes, job)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0, labelsize="small")
    axes.tick_params("x", rotation=90 if any(len(bar.tick) > 1 for bar in bars) else 0)
    axes.set_xlim(-0.7, x[-1] + 0.7)
    axes.set_ylim(0, 100)
    axes.grid(visible=False, axis="x")
    return shown


def _draw_printed_baseload(at: float, run: RunData, axes: Axes, job: Job) -> None:
    """Draw the share that the printed idle power of a mode would have in our energy."""
    mode, device = run.factors["power_mode"], run.factors["device"]
    printed = idle_mark(job.marks, device, mode, ON_BOARD, "module")
    energy, e2e = run.number("energy_paper_wh").value, run.number("e2e_s").value
    if printed is not None and energy and e2e is not None:
        percent = 100.0 * printed.value * e2e / 3600.0 / energy
        line: Any = "-" if printed.seen_by_fit else DASHES
        black = job.palette["published"]
        axes.hlines(percent, at - 0.45, at + 0.45, color=black, linewidth=1.3, linestyles=line)


def spread_brackets(
    axes: Axes, bars: Sequence[Bar], spreads: Sequence[Related], job: Job
) -> tuple[Axes, list[Bracket]]:
    """Return brackets of the spreads over some of the bars, parted where bars are left out."""
    place, brackets = places(bars), []
    for one in spreads:
        configs = single(one.relation.config_a)
        at = sorted(x for config in configs if (x := place(config)) is not None)
        if len(at) == len(configs):
            gaps = [pair for pair in pairwise(at) if pair[1] - pair[0] > 1.0]
            modes = ranges(config["power_mode"] for config in configs)
            lines = [f"spread, {modes}: {one.reading()}"]
            ink = job.ink({"published_id": one.relation.id})
            brackets.append(Bracket(at[0], at[-1], lines, ink, one.linestyle, gaps))
    return axes, brackets
