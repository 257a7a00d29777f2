"""Predict what one knob of a mode, turned one step up, would change in a run's epoch.

The time of computing shrinks as its least time does, so what lies below the roof stays the same
share of it. The loader's transforms go with the CPU's clock, its reading does not. With workers the
loader works ahead, so a mini-batch takes what is longer of its loading and its computing: where the
loader holds a run back, faster computing only lengthens the wait.

The rooflines of the new mode are those that were fitted to it. Where there are none, clock laws
over all fitted modes give its ceilings (`roofline.laws`), and no energy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochwatt.columns import CLOCKS
from epochwatt.counting.kernel_counts import KernelCounts
from epochwatt.roofline.explain import (
    REST,
    Observed,
    Roof,
    explain,
    least_compute_s,
)
from epochwatt.roofline.fits import FitRow
from epochwatt.roofline.laws import Clocks, fit_ceiling_laws
from epochwatt.roofline.model import Ceilings

FITTED, LAWS = "fitted mode", "clock laws"
KEEPS_UP = 0.8  # of an epoch without overhead; a loader that needs less keeps up with training


@dataclass(frozen=True)
class Step:
    """One knob turned one step up."""

    knob: str  # of `CLOCKS`
    old: float  # its values
    new: float
    basis: str  # where the new rooflines come from: `FITTED` or `LAWS`
    e2e_s: float  # predicted epoch
    energy_j: float | None  # predicted energy; None: not known


def roof_of(row: FitRow) -> Roof:
    """Return the rooflines of a fitted mode."""
    return Roof(row.processor, row.ceilings, row.costs)


def next_steps(
    work: KernelCounts, seen: Observed, here: FitRow, fitted: Sequence[FitRow]
) -> list[Step]:
    """Return what each knob would change that has a higher value among the fitted modes.

    `fitted`: those of all modes of the same device, processor and precision.
    """
    steps = []
    for knob in CLOCKS:
        old = getattr(here, knob)
        values = {getattr(row, knob) for row in fitted} - {None}
        higher = sorted(value for value in values if old is not None and value > old)
        if higher and (step := _step(work, seen, here, fitted, knob, higher[0])):
            steps.append(step)
    return steps


def _step(
    work: KernelCounts,
    seen: Observed,
    here: FitRow,
    fitted: Sequence[FitRow],
    knob: str,
    new: float,
) -> Step | None:
    """Return what a knob would change; None where nothing tells."""
    basis, mode = FITTED, {name: getattr(here, name) for name in CLOCKS} | {knob: new}
    there = next((row for row in fitted if row.mode == tuple(mode.values())), None)
    if there is not None:
        roof = roof_of(there)
    else:
        basis, ceilings = LAWS, _by_laws(here, fitted, mode)
        if ceilings is None:
            return None
        roof = Roof(here.processor, ceilings)
    old = getattr(here, knob)
    cpu_factor = old / new if knob == "cpu_mhz" else 1.0
    e2e_s = epoch_s(work, seen, roof_of(here), roof, cpu_factor)
    return Step(knob, old, new, basis, e2e_s, energy_j(work, seen, roof_of(here), roof, e2e_s))


def _by_laws(
    here: FitRow, fitted: Sequence[FitRow], mode: dict[str, float | None]
) -> Ceilings | None:
    """Return the ceilings of this mode, changed as the clock laws of all say; None: no laws."""
    old, new = (Clocks(*(part[0] for part in _clocks([one]))) for one in (here, mode))
    clocks = _clocks(fitted)
    parts = (clocks.core_mhz, clocks.cpu_mhz, clocks.emc_mhz)
    if len(fitted) < 2 or not all(np.isfinite(part).all() for part in parts):
        return None
    laws = fit_ceiling_laws(clocks, [row.ceilings for row in fitted])
    before, after, now = laws.at(old), laws.at(new), here.ceilings
    return Ceilings(
        now.flops_per_s * after.flops_per_s / before.flops_per_s,
        now.bytes_per_s * after.bytes_per_s / before.bytes_per_s,
        now.launch_s * (after.launch_s / before.launch_s if before.launch_s > 0 else 1.0),
        now.cache_bytes,
        now.cached_bytes_per_s * after.flops_per_s / before.flops_per_s,
    )


def _clocks(modes: Sequence[FitRow | dict[str, float | None]]) -> Clocks:
    """Return the clocks of modes; NaN where one is not now."""
    table = np.array(
        [
            [mode[knob] if isinstance(mode, dict) else getattr(mode, knob) for knob in CLOCKS]
            for mode in modes
        ],
        float,
    )
    cores, cpu_mhz, gpu_mhz, emc_mhz = table.T
    computes = np.where(np.isfinite(gpu_mhz), gpu_mhz, cores * cpu_mhz)
    return Clocks(computes, cores, cpu_mhz, emc_mhz)


def epoch_s(
    work: KernelCounts, seen: Observed, old: Roof, new: Roof, cpu_factor: float = 1.0
) -> float:
    """Return the epoch's time under other rooflines, s.

    Parameters
    ----------
    old, new : rooflines of its mode and of the other
    cpu_factor : time of the loader's transforms there over here
    """
    before = least_compute_s(work, seen.batch_size, old)
    ratio = least_compute_s(work, seen.batch_size, new) / before if before > 0 else 1.0
    compute_s = seen.compute_s * ratio
    wait_s = _wait_s(seen, compute_s, cpu_factor)
    return wait_s + compute_s + seen.copy_s + seen.overhead_s


def _wait_s(seen: Observed, compute_s: float, cpu_factor: float) -> float:
    """Return how long an epoch waits for the loader where computing takes `compute_s`, s."""
    fetch_s, transform_s = seen.fetch_s or 0.0, seen.preprocess_s or 0.0
    loading_s = fetch_s + transform_s
    factor = (fetch_s + cpu_factor * transform_s) / loading_s if loading_s > 0 else 1.0
    if seen.num_workers == 0:
        return factor * seen.wait_s
    period_s, loader_s = seen.wait_s + seen.copy_s + seen.compute_s, loading_s / seen.num_workers
    work_s = seen.copy_s + compute_s
    if loader_s < KEEPS_UP * period_s:  # the wait is not for loading: handing over, a late start
        return max(seen.wait_s, factor * loader_s - work_s)
    return max(0.0, factor * period_s - work_s)


def energy_j(
    work: KernelCounts, seen: Observed, old: Roof, new: Roof, e2e_s: float
) -> float | None:
    """Return the epoch's energy under other rooflines, J; None where a part of it is not now.

    What work and constant power do not explain goes on as long as the epoch, at the same power.
    """
    if seen.energy_j is None or old.costs is None or new.costs is None:
        return None
    here = explain(work, seen, old)
    size, n = seen.batch_size, seen.n_minibatches
    flops, moved = n * float(work.flops(size).sum()), n * float(work.bytes(size).sum())
    rest_j = here.energy_j[REST] / seen.e2e_s * e2e_s
    return here.energy_scale * float(new.costs.energy_j(flops, moved, e2e_s)) + rest_j
