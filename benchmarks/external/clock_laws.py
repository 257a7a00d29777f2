"""Laws of clocks, fitted to a few settings and judged on all the others.

Time: T = a + b / f_core + c / f_memory. Its terms are what no clock moves, work by the core's clock
and work by the memory's, one after the other. Fitted to the four corners where both clocks vary, to
the two ends where one does.

Power: P = p0 + a f + b f^3 of the core's clock. Its terms are what no clock moves, switching at one
voltage, and switching at a voltage that rises with the clock. Fitted to both ends and two clocks
between, where only the core's clock varies.

Both by non-negative least squares of relative errors.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.external import Finding, Inputs, show
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import counted

Numbers = NDArray[np.float64]

CLOCKS = ("gpu_mhz", "emc_mhz")
N_POWER_CLOCKS = 4  # that the law of power is fitted to
LEAST_BETWEEN = 3  # settings besides those it is fitted to
HOLDS_PCT = 5.0  # limit of the median error: above it the law is said to fail


def power_findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield, device by device, how well the law of power says what was not fitted."""
    yield from _judged(name, inputs, "power", power_errors_pct)


def findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield, device by device, how well the law of time says what was not fitted."""
    yield from _judged(name, inputs, "time", errors_pct)


def _judged(
    name: str, inputs: Inputs, target: str, errors_of: Callable[[ModeTable], Numbers]
) -> Iterator[Finding]:
    tables = [table for table in inputs.tables(name) if table.varied()]
    for device in dict.fromkeys(table.key.device for table in tables):
        of_device = [table for table in tables if table.key.device == device]
        judged = [some for some in map(errors_of, of_device) if some.size]
        if not judged:
            continue
        pooled = np.concatenate(judged)
        median = float(np.median(pooled))
        yield Finding(
            f"{device}: median error of {target}",
            "%",
            f"at most {show(HOLDS_PCT)}",
            show(median),
            median <= HOLDS_PCT,
            f"{counted(len(of_device[0].varied()), 'clocks')}; "
            f"{counted(len(judged), 'workloads')}, {pooled.size} settings; 90 % of them within "
            f"{np.percentile(pooled, 90):.1f} %",
        )


def errors_pct(table: ModeTable) -> Numbers:
    """Return the errors of the law of time where it was not fitted, %; empty: too few settings."""
    varied = table.varied()
    if not varied or not set(varied) <= set(CLOCKS):
        return np.empty(0)
    clocks = np.column_stack([table.column(name) for name in varied])
    times = table.column("time_s")
    ends = end_rows(clocks)
    is_end = (clocks[:, None, :] == clocks[ends]).all(axis=2).any(axis=1)
    if (~is_end).sum() < LEAST_BETWEEN:
        return np.empty(0)
    terms = np.column_stack([np.ones(len(clocks)), 1.0 / clocks])
    weights, _ = nnls(terms[ends] / times[ends, None], np.ones(len(ends)))
    return np.asarray(100.0 * np.abs(terms[~is_end] @ weights / times[~is_end] - 1.0))


def power_errors_pct(table: ModeTable) -> Numbers:
    """Return the errors of the law of power where it was not fitted, %; empty: too few clocks."""
    if table.varied() != ("gpu_mhz",) or not table.power_scope:
        return np.empty(0)
    clocks, watts = table.column("gpu_mhz"), table.column("power_w")
    measured = np.isfinite(watts)
    clocks, watts = clocks[measured], watts[measured]
    if len(np.unique(clocks)) < N_POWER_CLOCKS + LEAST_BETWEEN:
        return np.empty(0)
    places = np.linspace(clocks.min(), clocks.max(), N_POWER_CLOCKS)
    chosen = sorted({int(np.abs(clocks - mhz).argmin()) for mhz in places})
    left = ~np.isin(clocks, clocks[chosen])
    shares = clocks / clocks.max()
    terms = np.column_stack([np.ones(len(clocks)), shares, shares**3])
    weights, _ = nnls(terms[chosen] / watts[chosen, None], np.ones(len(chosen)))
    return np.asarray(100.0 * np.abs(terms[left] @ weights / watts[left] - 1.0))


def end_rows(clocks: Numbers) -> list[int]:
    """Return the rows nearest to the corners, by the logarithm of the clocks.

    Parameters
    ----------
    clocks : shape (rows, clocks), MHz
    """
    logs = np.log(clocks)
    logs = (logs - logs.min(axis=0)) / np.ptp(logs, axis=0)
    corners: Sequence[tuple[int, ...]] = list(product((0, 1), repeat=clocks.shape[1]))
    return sorted({int(((logs - corner) ** 2).sum(axis=1).argmin()) for corner in corners})
