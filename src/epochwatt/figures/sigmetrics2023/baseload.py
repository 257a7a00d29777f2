"""The base load in the energy of an epoch: idle power times E2E time, its share, its bars."""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures.common.bars import BAR, Bar, draw_missing, marked_row, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import ON_BOARD, draw_mark
from epochwatt.figures.common.relations import metric_of
from epochwatt.figures.common.runs import Number, RunData

PLACE = ("device", "instance", "power_mode")
SHARE = "baseload_wh/energy_wh"
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
        draw_mark(axes, at, row, colour["published"], BAR, side=0)
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
