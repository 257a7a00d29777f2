"""Compute the clocks that governors choose when they are not pinned (DVFS on).

CPU: schedutil sets each cluster to 1.25 times the utilisation of its busiest core (Linux
Documentation/scheduler/schedutil.rst). A process that polls the GPU keeps its core fully busy. GPU
and memory: the lowest clock at which the load stays below a target (devfreq and actmon of L4T); and
the memory is not slower in its range than the fastest CPU in its own (ASSUME: L4T's CPU driver asks
for bandwidth by its clock).
"""

import numpy as np

from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.numbers import Array, Clocks, Values

SCHEDUTIL_MARGIN = 1.25


def governed(
    board: Board, top: Clocks, core_util: Array, gpu_util: Array, emc_util: Array, p: Values
) -> Clocks:
    """Return the clocks chosen below a power mode's.

    Parameters
    ----------
    top : the mode's own
    core_util, gpu_util, emc_util : of the busiest core, GPU and memory at those clocks, 0 to 1
    """
    fastest_mhz = cpu_mhz(board, top, core_util)
    for_gpu = emc_util / p["emc_governor_load"]
    demand = np.maximum(for_gpu, fastest_mhz / top.cpu_mhz)
    return Clocks(
        top.cores,
        fastest_mhz,
        np.clip(gpu_util / p["gpu_governor_load"] * top.gpu_mhz, board.gpu_mhz[0], top.gpu_mhz),
        np.clip(demand * top.emc_mhz, board.emc_mhz[0], top.emc_mhz),
    )


def cpu_mhz(board: Board, top: Clocks, core_util: Array) -> Array:
    """Return the clock of a cluster, MHz.

    `core_util`: of its busiest core at the mode's clock, 0 to 1.
    """
    return np.clip(SCHEDUTIL_MARGIN * core_util * top.cpu_mhz, board.cpu_mhz[0], top.cpu_mhz)
