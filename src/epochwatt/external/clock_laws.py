"""The law T = a + b / f_core + c / f_memory, fitted at the ends of the clocks and judged between.

Its terms are what no clock moves, work by the core's clock and work by the memory's, one after the
other. Fitted by non-negative least squares of relative errors: where both clocks vary to the four
corners, where one does to its two ends. All other settings are predicted.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from epochwatt.external.check import Finding, at_most
from epochwatt.external.inputs import Inputs
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import counted

Numbers = NDArray[np.float64]

CLOCKS = ("gpu_mhz", "emc_mhz")
LEAST_BETWEEN = 3  # settings besides those it is fitted to
HOLDS_PCT = 5.0  # limit of the median error: above it the law is said to fail


def findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield, device by device, how well the law says the times between the ends."""
    tables = [table for table in inputs.tables(name) if table.varied()]
    for device in dict.fromkeys(table.of.device for table in tables):
        errors = [errors_pct(table) for table in tables if table.of.device == device]
        judged = [some for some in errors if some.size]
        if not judged:
            continue
        pooled = np.concatenate(judged)
        clocks = len(next(table for table in tables if table.of.device == device).varied())
        finding = at_most(
            f"{device}: median error of time", "%", HOLDS_PCT, float(np.median(pooled))
        )
        yield finding._replace(
            note=f"{counted(clocks, 'clocks')}; {counted(len(judged), 'workloads')}, "
            f"{pooled.size} settings; 90 % of them within {np.percentile(pooled, 90):.1f} %"
        )


def errors_pct(table: ModeTable) -> Numbers:
    """Return the errors of the law at settings that it was not fitted to, %; empty: too few."""
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
