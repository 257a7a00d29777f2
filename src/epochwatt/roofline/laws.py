"""Fit how the ceilings of rooflines follow the clocks, over many modes.

::

    operations/s = k f              f: GPU clock, or cores x CPU clock
    bytes/s      = min(k_emc f_emc, k_core f)
    launch       = cycles / f_cpu

Bandwidth follows whichever clock is the bottleneck: on an Orin Nano it doubles with the GPU clock
at one memory clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.roofline.model import Ceilings, Numbers


class Clocks(NamedTuple):
    """Clocks of modes, each (n,); NaN where it is not known."""

    core_mhz: Numbers  # of what computes: the GPU's clock, or the CPU's times its cores
    cpu_mhz: Numbers  # of what launches
    emc_mhz: Numbers  # of the memory


@dataclass(frozen=True)
class CeilingLaws:
    """Ceilings over clocks."""

    flops_per_cycle: float  # of what computes
    bytes_per_emc_cycle: float  # the lesser limits; infinite where it never did
    bytes_per_core_cycle: float
    launch_cycles: float  # of the CPU

    def at(self, clocks: Clocks) -> Ceilings:
        """Return the ceilings of one mode."""
        bytes_per_s = 1e6 * np.minimum(
            self.bytes_per_emc_cycle * clocks.emc_mhz, self.bytes_per_core_cycle * clocks.core_mhz
        )
        flops_per_s = 1e6 * self.flops_per_cycle * clocks.core_mhz
        launch_s = self.launch_cycles / (1e6 * clocks.cpu_mhz)
        return Ceilings(float(flops_per_s), float(bytes_per_s), float(launch_s))


def fit_ceiling_laws(clocks: Clocks, ceilings: Sequence[Ceilings]) -> CeilingLaws:
    """Fit the clock laws of ceilings, by least squares of relative deviations.

    `clocks`: (n,) each, of the modes of the ceilings; `ceilings`: of n modes

    Raises EpochwattError: fewer than two modes.
    """
    if len(ceilings) < 2:
        raise EpochwattError("clock laws need two modes or more", found=f"{len(ceilings)}")
    rates = [(row.flops_per_s, row.bytes_per_s, row.launch_s) for row in ceilings]
    flops_per_s, bytes_per_s, launch_s = np.array(rates).T
    emc, core = lesser_limit(bytes_per_s / 1e6, clocks.emc_mhz, clocks.core_mhz)
    per_cycle = flops_per_s / 1e6 / clocks.core_mhz
    cycles = launch_s * 1e6 * clocks.cpu_mhz
    # a geometric mean minimises the squares of relative deviations
    mean_cycles = float(np.exp(np.log(cycles).mean())) if (cycles > 0).all() else 0.0
    return CeilingLaws(float(np.exp(np.log(per_cycle).mean())), emc, core, mean_cycles)


def lesser_limit(rates: Numbers, first: Numbers, second: Numbers) -> tuple[float, float]:
    """Fit k1, k2 of rates = min(k1 first, k2 second), by least squares of logarithms.

    Which limit holds depends on second / first alone: below some ratio it is the second one. All
    places for that ratio are tried. A limit that never holds is infinite; of two that explain the
    rates equally well, the first holds.

    `rates`, `first`, `second`: (n,), above zero.
    """
    order = np.argsort(second / first)
    log_rates = np.log(rates[order])
    log_first, log_second = log_rates - np.log(first[order]), log_rates - np.log(second[order])
    best, limits = np.inf, (np.inf, np.inf)
    for n_second in range(len(rates) + 1):
        k1 = np.exp(log_first[n_second:].mean()) if n_second < len(rates) else np.inf
        k2 = np.exp(log_second[:n_second].mean()) if n_second else np.inf
        off = np.log(np.minimum(k1 * first, k2 * second) / rates)
        if (squares := float(off @ off)) < best - 1e-12:
            best, limits = squares, (float(k1), float(k2))
    return limits
