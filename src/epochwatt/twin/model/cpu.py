"""Compute the cost of work on a CPU core: clocks, memory and the processes beside it.

Equations. A piece of work is a number of instructions, told as the cycles it would take on a Carmel
core whose memory answered at once. Its time is

    t = kcycles (1 / (ipc f_cpu) + stall / f_emc) (1 + share n / cores)

with the clocks in MHz and t in ms. The second term is the cycles of the memory's clock spent on
what the caches miss; the last factor says that each of `n` other runnable processes is on this
process's core for a part `share / cores` of the time. The number of processes counts, not
their mean load: almost idle loader workers still slow their parent (SIGMETRICS 2023, 5.6.5).
"""

from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.numbers import Array, Values

MAIN_OTHERS = 2  # beside the loader's workers: the monitor and autograd's own thread


def work_s(kcycles: Array, board: Board, cpu_mhz: Array, emc_mhz: Array, p: Values) -> Array:
    """Return the time of work on an undisturbed core, s.

    Parameters
    ----------
    kcycles : thousands of cycles of a Carmel core
    cpu_mhz, emc_mhz : clocks of core and memory, MHz
    """
    per_kcycle_ms = 1.0 / (board.ipc * cpu_mhz) + p["cpu_memory_stall"] / emc_mhz
    return 1e-3 * kcycles * per_kcycle_ms


def slowdown(n_others: Array, cores: Array, p: Values) -> Array:
    """Return how many times longer work takes beside other runnable processes.

    `n_others`: runnable processes and threads beside this one.
    """
    return 1.0 + p["core_share"] * n_others / cores
