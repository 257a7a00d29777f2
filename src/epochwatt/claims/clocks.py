"""Clocks under governors, from telemetry: the columns `CLOCKS` that `epochs.csv` lacks.

A clock is at its top where it is above a share of what the power mode sets: 95 % for the memory,
the margin of SIGMETRICS 2023, section 4.2; 90 % for the CPU, where its section 5.5.2 draws a line.
Of the CPU the first cluster that was sampled counts: the paper does not say which one Fig. 6d has.
"""

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from epochwatt.board.records.run_folder import EpochRecord, RunFolder
from epochwatt.claims.number_sources import Row
from epochwatt.epochs.board import MET, pinned_mhz
from epochwatt.epochs.telemetry import Samples, read_all
from epochwatt.epochs.windows import window_mean

CPU_PEAK = 0.9  # of the mode's clock


def with_clocks(rows: Iterable[Row], folders: Mapping[str, str]) -> list[Row]:
    """Return the rows, those of some runs with their clocks as their records tell them.

    Raises RecordError: a record is missing or damaged.

    Parameters
    ----------
    rows : of `epochs.csv`
    folders : run -> folder of its records
    """
    return [
        {**row, **_recorded(RunFolder(*os.path.split(folders[row["run"]])).read(int(row["epoch"])))}
        if row["run"] in folders
        else row
        for row in rows
    ]


def _recorded(record: EpochRecord) -> dict[str, float]:
    board = record.meta.get("board")
    return sampled(record, read_all(record), pinned_mhz(board["power_mode"])) if board else {}


def sampled(record: EpochRecord, samples: Samples, top_mhz: Mapping[str, float]) -> dict[str, Any]:
    """Return the columns of one epoch; those that nothing was sampled for are left out.

    Parameters
    ----------
    record : says when it began and ended
    samples : source -> column -> float (n,)
    top_mhz : what the power mode sets: cpu_mhz, emc_mhz
    """
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    host, board = samples.get("host", {}), samples.get("board", {})
    cpu = next((c for c in host if c.startswith("cpu") and c.endswith("_mhz")), "")
    columns = {
        "gpu_freq_mhz": (board, "gpu_mhz", None),
        "emc_below_max_time_pct": (board, "emc_mhz", MET * top_mhz.get("emc_mhz", math.nan)),
        "cpu_below_peak_time_pct": (host, cpu, CPU_PEAK * top_mhz.get("cpu_mhz", math.nan)),
    }
    means = {
        name: window_mean(table["t_mono_s"], _values(table[column], limit), *window)
        for name, (table, column, limit) in columns.items()
        if column in table
    }
    return {name: value for name, value in means.items() if not math.isnan(value)}


def _values(mhz: np.ndarray, below_mhz: float | None) -> np.ndarray:
    """Return the clock, or 100 where it is below a limit and 0 where not; NaN: not known."""
    if below_mhz is None:
        return mhz
    is_known = np.isfinite(mhz) & math.isfinite(below_mhz)
    return np.where(is_known, np.where(mhz < below_mhz, 100.0, 0.0), math.nan)


def in_closed_form(row: Row, top_mhz: Mapping[str, float]) -> dict[str, float]:
    """Return the columns of an epoch in closed form (`twin/epoch_rows.py`)."""
    peak_mhz, fastest_pct = CPU_PEAK * top_mhz["cpu_mhz"], row["cpu_mhz_pct"]
    return {
        "gpu_freq_mhz": row["gpu_mhz"],
        "emc_below_max_time_pct": 100.0 * (row["emc_mhz"] < MET * top_mhz["emc_mhz"]),
        "cpu_below_peak_time_pct": fastest_pct * (row["cpu_mhz"] < peak_mhz)
        + (100.0 - fastest_pct) * (row["cpu_else_mhz"] < peak_mhz),
    }
