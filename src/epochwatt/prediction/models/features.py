"""Terms that models are sums of: plain clocks, and the shapes that physics suggests.

Time: a part that is bound by a clock takes a time that goes with 1 / clock, so each of GPU, memory
and CPU gives one term. Processes that share too few cores wait for each other: with p processes on
c < p cores the work of the CPU takes (p / c - 1) longer, again over its clock. Time that
no clock changes (disk, fixed waits) is a constant. A sum of them means that the parts do not
overlap; where they do, the fit shares the time out among them.

Power: dynamic power goes with clock x voltage^2. No table of voltages is public for these boards.
Below a floor the voltage is flat (power goes with the clock), above it rises about in step with
the clock (with its cube), so a clock and its cube, both non-negative, bracket the truth. Busy cores
count for the CPU: as many as are online, at most one for each process. The memory's voltage is
fixed, so its clock stands alone. Base load and leakage are the constant.

A part of the GPU that is gated off does nothing and draws nothing: what the GPU does, and what it
draws, goes with the share of it that is on as well.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Columns, Numbers, as_rows, logs

PLAIN = Columns._fields[:4]  # of the paper: no mode of its gates anything off
TIME = ("per_gpu_clock", "per_emc_clock", "per_cpu_clock", "core_shortage", "constant")
POWER = (
    *("gpu_clock", "gpu_clock_cubed", "cpu_clock", "cpu_clock_cubed"),
    *("emc_clock", "constant"),
)
LOGS = ("log_cores", "log_cpu", "log_gpu", "log_emc")
LIMIT = "log_power_limit"

# name -> its value in modes m with p processes; clocks in GHz, so that all values lie near one
_TERMS: dict[str, Callable[[Columns, int], Numbers]] = {
    "constant": lambda m, p: np.ones(len(m.cores)),
    **{name: lambda m, p, name=name: getattr(m, name) for name in PLAIN},  # type: ignore[misc]
    "per_gpu_clock": lambda m, p: 1e3 / (m.gpu_mhz * m.gpu_share),
    "per_emc_clock": lambda m, p: 1e3 / m.emc_mhz,
    "per_cpu_clock": lambda m, p: 1e3 / m.cpu_mhz,
    "core_shortage": lambda m, p: np.maximum(p / m.cores - 1, 0) * 1e3 / m.cpu_mhz,
    "gpu_clock": lambda m, p: m.gpu_mhz * m.gpu_share / 1e3,
    "gpu_clock_cubed": lambda m, p: m.gpu_share * (m.gpu_mhz / 1e3) ** 3,
    "cpu_clock": lambda m, p: np.minimum(m.cores, p) * m.cpu_mhz / 1e3,
    "cpu_clock_cubed": lambda m, p: np.minimum(m.cores, p) * (m.cpu_mhz / 1e3) ** 3,
    "emc_clock": lambda m, p: m.emc_mhz / 1e3,
    "log_cores": lambda m, p: np.log(m.cores),
    "log_cpu": lambda m, p: np.log(m.cpu_mhz),
    "log_gpu": lambda m, p: np.log(m.gpu_mhz * m.gpu_share),
    "log_emc": lambda m, p: np.log(m.emc_mhz),
    LIMIT: lambda m, p: logs(m.power_limit_w),
}


def plain(modes: ArrayLike) -> Numbers:
    """Return the value of `PLAIN` in each mode, shape (n, 4)."""
    return as_rows(modes)[:, : len(PLAIN)]


def design(terms: Sequence[str], modes: ArrayLike, processes: int) -> Numbers:
    """Return the value of each term in each mode, shape (n, len(terms))."""
    rows = as_rows(modes)
    parts, values = Columns(*rows.T), np.empty((len(rows), len(terms)))
    for number, term in enumerate(terms):
        values[:, number] = _TERMS[term](parts, processes)
    return values


def log_terms(trained_on: Numbers) -> tuple[str, ...]:
    """Return the logarithms that tell modes (m, 6) apart: the limit where it is not the same."""
    return (*LOGS, LIMIT) if np.ptp(trained_on[:, -1]) else LOGS


def log_rows(modes: ArrayLike, trained_on: Numbers) -> Numbers:
    """Return `log_terms` of modes (n, 6), shape (n, k)."""
    return design(log_terms(trained_on), modes, processes=0)


def short_of_cores(modes: Numbers, processes: int) -> Numbers:
    """Return a copy of modes (n, 6) with half as many cores as processes."""
    short = modes.copy()
    short[:, 0] = processes / 2
    return short


def relative(
    parts: Numbers, short: Numbers, values: Numbers, norm: float = 1.0
) -> tuple[Numbers, Numbers]:
    """Return the terms `parts` over the observed values (m, k), and the mean of each (k,).

    Both are to the power `norm`. A term that is zero in all modes, as a shortage of cores, has its
    mean from `short`, the terms in `short_of_cores`; one that is zero there too has 1.
    """
    rows = parts**norm / values[:, None] ** norm
    short_mean = (short**norm / values[:, None] ** norm).mean(0)
    return rows, np.where(rows.any(0), rows.mean(0), np.where(short_mean > 0, short_mean, 1.0))
