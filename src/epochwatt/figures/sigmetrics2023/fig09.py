"""Figure 9: power modes. Time of an epoch, stacked (a), and energy with the base load in it (b).

Source: SIGMETRICS 2023, section 5.6. Means over epochs 1+. The base load is the idle power of the
same power mode, state (i) by the board's own sensors, times the E2E time. Each network has a
separate axis: LeNet-5's numbers are an order of magnitude below the others'. The paper gives base
loads as shares of a range of modes, so panel b has marks of whole epochs only.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bar,
    draw_missing,
    draw_stacks,
    grouped,
    legend,
    marked_row,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import ON_BOARD, draw_mark
from epochwatt.figures.common.runs import Number, RunData

STRONGEST = ("max", "MAXN")
PLACE = ("device", "instance", "power_mode")
NO_BASELOAD = "no idle power of this mode"
ENERGY = ("energy_paper_wh", "baseload_wh", "baseload_pct")  # rows of a bar in panel b

Rows = list[dict[str, Any]]
BaseLoads = Mapping[tuple[Any, ...], float]


def draw(job: Job) -> None:
    """Draw the panels."""
    groups, base_w = groups_of(job), baseloads(job.idle, job.backend)
    _draw_facets(job, "fig09a", groups, "time per epoch, epochs 1+ (s)", draw_times)
    _draw_facets(
        *(job, "fig09b", groups, "energy per epoch, epochs 1+ (Wh)"),
        lambda group, axes, job: draw_energies(group, axes, job, base_w),
    )


def groups_of(job: Job) -> list[list[Bar]]:
    """Return the bars by what they differ in beside the power mode; one mode compares nothing."""

    def mode(run: RunData) -> str:
        return str(run.factors["power_mode"])

    bars = grouped(job.runs, job, ("power_mode",), mode, lambda run: mode_order(mode(run)))
    names = dict.fromkeys(bar.group for bar in bars)
    groups = [[bar for bar in bars if bar.group == name] for name in names]
    return [group for group in groups if len(group) > 1]


def mode_order(mode: str) -> tuple[bool, bool, str]:
    """Return what sorts power modes: the paper's letters, then the strongest, then the others."""
    return len(mode) > 1, mode not in STRONGEST, mode


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


def _draw_facets(
    job: Job,
    panel: str,
    groups: Sequence[Sequence[Bar]],
    y_label: str,
    drawn: Callable[[Sequence[Bar], Axes, Job], Rows],
) -> None:
    runs = [bar.run for group in groups for bar in group]
    with job.panel(panel, runs) as (figure, axes):
        facets, rows = style.side_by_side(figure, axes, max(len(groups), 1)), []
        for facet, group in zip(facets, groups, strict=False):
            rows += drawn(group, facet, job)
            facet.set_title(group[0].group.replace("\n", ", "))
            facet.set_xticks(positions([bar.group for bar in group]), [bar.tick for bar in group])
            facet.tick_params("x", length=0, rotation=90 if max(map(_width, group)) > 1 else 0)
            facet.grid(visible=False, axis="x")
        facets[0].set_ylabel(y_label)
        facets[len(facets) // 2].set_xlabel("power mode")
        legend(facets[0], rows, job.palette["published"])
        job.save(figure, panel, rows)


def _width(bar: Bar) -> int:
    return len(bar.tick)


def draw_times(bars: Sequence[Bar], axes: Axes, job: Job) -> Rows:
    """Draw stall, compute and overhead stacked; return the CSV's rows."""
    return draw_stacks(bars, axes, job, "1+")


def draw_energies(bars: Sequence[Bar], axes: Axes, job: Job, base_w: BaseLoads) -> Rows:
    """Draw the energy of an epoch with the base load in it; return the CSV's rows."""
    colour = job.colours("baseload", "above_baseload", "missing", "published")
    x = positions([bar.group for bar in bars])
    rows = [row for bar in bars for row in _energy_rows(bar.run, job, base_w)]
    whole, base, _ = (rows[n :: len(ENERGY)] for n in range(len(ENERGY)))
    height = np.array([row["value"] or 0.0 for row in whole])
    axes.bar(x, height, width=0.8, color=colour["above_baseload"], label="above the base load")
    part = np.array([row["value"] or 0.0 for row in base])
    axes.bar(x, part, width=0.8, color=colour["baseload"], label="base load")
    draw_missing(
        [(at, row["missing"]) for at, row in zip(x, whole, strict=True)], axes, colour["missing"]
    )
    unknown = (height > 0) & (part == 0)
    if unknown.any():
        grey = colour["missing"]
        axes.bar(x[unknown], height[unknown], width=0.8, color=grey, label=NO_BASELOAD)
    for at, row in zip(x, whole, strict=True):
        draw_mark(axes, at, row, colour["published"])
    return rows


def _energy_rows(run: RunData, job: Job, base_w: BaseLoads) -> Rows:
    energy, e2e = run.number("energy_paper_wh"), run.number("e2e_s")
    power_w = base_w.get(tuple(run.factors[key] for key in PLACE))
    base = Number(None, 0, e2e.missing or NO_BASELOAD)
    share = Number(None, 0, energy.missing or base.missing)
    if power_w is not None and e2e.value is not None:
        base = e2e._replace(value=power_w * e2e.value / 3600.0)
        if energy.value is not None:
            share = energy._replace(value=100.0 * power_w * e2e.value / 3600.0 / energy.value)
    numbers = dict(zip(ENERGY, (energy, base, share), strict=True))
    return [marked_row(run, quantity, number, job) for quantity, number in numbers.items()]
