"""Compute a mini-batch on the GPU, its kernels launched one after another, and work on a CPU core.

**Work on a core** is a number of instructions, told as the cycles it would take on a Carmel core
whose memory answered at once. Its time is

    t = kcycles (1 / (ipc f_cpu) + stall / f_emc) (1 + share n / cores)

with the clocks in MHz and t in ms. The second term is the cycles of the memory's clock spent on
what the caches miss; the last factor says that each of `n` other runnable processes is on this
process's core for a part `share / cores` of the time. The number of processes counts, not
their mean load: almost idle loader workers still slow their parent (SIGMETRICS 2023, 5.6.5).

**Kernel** i of a mini-batch does `flops` operations on `bytes` of memory and takes

    exec_i = max(flops / (share rate occupancy), traffic bytes / (share bandwidth)) + gap / f_gpu

a roofline (Williams, Waterman, Patterson, CACM 52(4) 2009) of the GPU's and the memory's clock; a
dense convolution reads its tiles again (`traffic`, else 1). The CPU launches without waiting (a
queue), and the GPU's front end fetches each launch from memory, so

    launched_i = launched_(i-1) + launch_i
    ready_i    = max(ready_(i-1), launched_i) + front
    end_i      = max(end_(i-1), ready_i) + exec_i

launch by the CPU's clock and the processes beside it (a convolution's call does more: cuDNN chooses
how), front by the memory's clock. A network of small kernels follows the launches, one of large
kernels the rooflines, and most follow both in turn.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from epochwatt.counting.kernel_counts import KernelCounts
from epochwatt.twin.boards import Array, Board, Values

MAIN_OTHERS = 2  # beside the loader's workers: the monitor and autograd's own thread
EFFICIENCIES = {  # kind of kernel -> parameter: the share of the GPU's rate that it reaches
    "convolution": "dense_efficiency",
    "gemm": "dense_efficiency",
    "gemm16": "dense_efficiency",
    "depthwise": "depthwise_efficiency",
}
PARAMETERS = (  # all that the time of a mini-batch on the GPU hangs on
    *("elementwise_efficiency", "threads_per_core", "memory_efficiency", "convolution_traffic"),
    *("kernel_gap_kcycles", "launch_kcycles", "convolution_kcycles", "front_kcycles", "sync_ms"),
    *("sync_kcycles", "cpu_memory_stall", "core_share", *dict.fromkeys(EFFICIENCIES.values())),
)
FLOP_PER_CORE_CLOCK = 2.0


class Compute(NamedTuple):
    """Of one mini-batch; each a number per configuration."""

    compute_s: Array  # from the first launch until the last kernel has ended and the CPU knows
    launch_s: Array  # the CPU launches
    gpu_busy_s: Array  # kernels execute
    computing_s: Array  # of it the time that their arithmetic would take on all of the GPU's cores
    moved_bytes: Array  # what the kernels read and write in memory


def kernels_s(
    work: KernelCounts, batch_size: int, board: Board, gpu_mhz: Array, emc_mhz: Array, p: Values
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the time of each kernel, s: shape (configurations, kernels).

    And of it the time that its arithmetic would take on all cores, whatever else it waits for.

    `gpu_mhz`, `emc_mhz`: clocks, MHz, each a number or of shape (configurations,).
    """
    gpu_hz = 1e6 * np.atleast_1d(gpu_mhz)[:, None]
    emc_hz = 1e6 * np.atleast_1d(emc_mhz)[:, None]
    efficiency = _column(p["elementwise_efficiency"])
    gains = {"convolution": board.tf32_gain, "gemm16": board.half_gain}
    for kind, name in EFFICIENCIES.items():
        gain = gains.get(kind, 1.0)
        efficiency = np.where(work.kind == kind, gain * _column(p[name]), efficiency)
    threads = _column(p["threads_per_core"]) * board.cuda_cores
    occupancy = np.minimum(1.0, work.elements(batch_size) / threads)
    per_clock = FLOP_PER_CORE_CLOCK * board.cuda_cores * efficiency * occupancy
    arithmetic_s = work.flops(batch_size) / per_clock / gpu_hz
    bandwidth = _column(p["memory_efficiency"]) * board.bandwidth_gain * board.emc_bytes_per_clock
    memory_s = moved_bytes(work, batch_size, p) / bandwidth / emc_hz
    gap_s = 1e3 * _column(p["kernel_gap_kcycles"]) / gpu_hz
    # memory limits all other kernels: their operations keep the cores as busy as a product's would
    others = _column(p["elementwise_efficiency"] / p["dense_efficiency"])
    shares = occupancy * np.where(np.isin(work.kind, list(EFFICIENCIES)), 1.0, others)
    return np.asarray(np.maximum(arithmetic_s, memory_s) + gap_s), shares * arithmetic_s


def work_s(kcycles: Array, board: Board, cpu_mhz: Array, emc_mhz: Array, p: Values) -> Array:
    """Return the time of work on an undisturbed core, s.

    `kcycles`: thousands of cycles of a Carmel core; clocks of core and memory in MHz.
    """
    per_kcycle_ms = 1.0 / (board.ipc * cpu_mhz) + p["cpu_memory_stall"] / emc_mhz
    return 1e-3 * kcycles * per_kcycle_ms


def slowdown(n_others: Array, cores: Array, p: Values) -> Array:
    """Return how many times longer work takes beside `n_others` runnable processes and threads."""
    return 1.0 + p["core_share"] * n_others / cores


def compute(
    work: KernelCounts,
    batch_size: int,
    board: Board,
    clocks: tuple[Array, Array, Array],
    cores: Array,
    n_others: Array,
    p: Values,
) -> Compute:
    """Return times and bytes of one mini-batch; equal configurations are computed once.

    `clocks`: of CPU, GPU and memory, MHz; `n_others`: processes beside the one that launches
    """
    values = {name: p[name] for name in PARAMETERS}
    if not any(map(np.ndim, values.values())):
        return _compute(work, batch_size, board, (*clocks, cores, n_others), values)
    table = np.stack(np.broadcast_arrays(*clocks, cores, n_others, *values.values()))
    distinct, inverse = np.unique(table, axis=1, return_inverse=True)
    columns = dict(zip(values, distinct[5:], strict=True))
    costs = _compute(work, batch_size, board, distinct[:5], cast(Mapping[str, float], columns))
    return Compute(*(np.asarray(value)[inverse] for value in costs))


def _compute(
    work: KernelCounts, batch_size: int, board: Board, state: Iterable[Array], p: Values
) -> Compute:
    """Return what `compute` does, without merging equal configurations.

    `state`: clocks of CPU, GPU and memory, `cores`, `n_others`
    """
    cpu_mhz, gpu_mhz, emc_mhz, cores, n_others = state
    exec_s, computing_s = kernels_s(work, batch_size, board, gpu_mhz, emc_mhz, p)
    slow = slowdown(n_others, cores, p)
    is_convolution = np.isin(work.kind, ("convolution", "depthwise"))
    kcycles = _column(p["launch_kcycles"]) + _column(p["convolution_kcycles"]) * is_convolution
    unit_s = np.atleast_1d(work_s(1.0, board, cpu_mhz, emc_mhz, p) * slow)
    launch_s = unit_s[:, None] * kcycles
    front_s = np.atleast_1d(1e-3 * p["front_kcycles"] / np.asarray(emc_mhz, dtype=float))
    end_s = last_end_s(exec_s, launch_s, front_s)
    sync_s = 1e-3 * p["sync_ms"] + work_s(p["sync_kcycles"], board, cpu_mhz, emc_mhz, p) * slow
    return Compute(
        compute_s=end_s + sync_s,
        launch_s=launch_s.sum(axis=1),
        gpu_busy_s=exec_s.sum(axis=1),
        computing_s=computing_s.sum(axis=1),
        # one number where all move the same
        moved_bytes=moved_bytes(work, batch_size, p).sum(axis=-1),
    )


def moved_bytes(work: KernelCounts, batch_size: int, p: Values) -> NDArray[np.floating]:
    """Return what each kernel reads and writes, bytes; tiles of a convolution are read again."""
    traffic = np.where(work.kind == "convolution", _column(p["convolution_traffic"]), 1.0)
    return np.asarray(traffic * work.bytes(batch_size))


def _column(value: Array) -> Array:
    """Return one value per configuration as a column, beside the kernels; a number as it is."""
    return np.asarray(value)[:, None] if np.ndim(value) else value


def last_end_s(
    exec_s: NDArray[np.floating], launch_s: NDArray[np.floating], front_s: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Return when the last kernel ends, s after the first launch began: shape (configurations,).

    Two queues in a row, unrolled: the last end is the longest way through launches, then the front
    end, then executions, over all kernels at which the way may change over.

    `exec_s`, `launch_s`: of each kernel, shape (configurations, kernels); `front_s`: of each
    launch, shape (configurations,)
    """
    number = np.arange(exec_s.shape[1])
    fronts_s = front_s[:, None] * number
    launched_s = np.cumsum(launch_s, axis=1)
    ready_s = np.maximum.accumulate(launched_s - fronts_s, axis=1) + fronts_s + front_s[:, None]
    done_s = np.cumsum(exec_s, axis=1)
    return np.asarray(done_s[:, -1] + (ready_s - (done_s - exec_s)).max(axis=1))
