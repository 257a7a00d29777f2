"""Choose the best modes for latency and for energy: one row per workload and aim.

A mode is chosen by what was observed in it, among all modes of a table: nothing is predicted. The
yardstick is the mode in which every part is at its highest (MAXN), or the fastest mode of a table
that lacks it. Kernels are no workloads: tables of them are left out.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from epochwatt.columns import CLOCKS, MODE_PARTS
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.tables import write_frame

MAXN = "maxn"
FASTEST = "fastest"
LITTLE_PCT = (0.0, 2.0, 5.0, 10.0)  # slower than MAXN, at most: "at little latency cost"
LEAST = "least_energy"
TUNED_COLUMNS = (  # of results/pagoda/tuning.csv
    *("provenance", "sweep", "device", "workload", "task", "batch_size", "power_scope"),
    # maxn, fastest, least_energy, or least_energy_within_N: at most N % slower than `against`,
    # which is maxn or fastest, the yardstick
    *("aim", "against", *CLOCKS),
    # time of its mini-batch, or of the work that the table is about; time and energy against it
    *("time_s", "power_w", "energy_j", "slower_pct", "saved_pct"),
    "n_modes",  # that were chosen from
)
BALANCE_COLUMNS = (  # of results/pagoda/balances.csv
    *("provenance", "device", "instance", *CLOCKS),
    # 1: time-efficient implies energy-efficient, as the balance is not beyond the ridge; 0: not so
    *("ridge_flop_per_byte", "balance_flop_per_byte", "is_efficient_where_fast"),
)


def tune(table: ModeTable) -> pd.DataFrame:
    """Return a row per aim with the best mode of a workload; empty: a kernel, or without power."""
    key, rows = table.key, table.valid()
    names = (*MODE_PARTS, "time_s", "power_w")
    runs = pd.DataFrame({name: rows.column(name) for name in names})
    runs = runs[runs["power_w"].notna()]
    if runs.empty or key.work == "kernel":
        return pd.DataFrame(columns=TUNED_COLUMNS)
    modes = runs.groupby(list(MODE_PARTS), sort=False, dropna=False).median().reset_index()
    clocks = modes[list(CLOCKS)].fillna(0)
    top = np.flatnonzero((clocks == clocks.max()).all(axis=1))
    fastest = int(modes["time_s"].argmin())
    base = int(top[0]) if len(top) else fastest
    modes["energy_j"] = modes["time_s"] * modes["power_w"]
    modes["slower_pct"] = 100 * (modes["time_s"] / modes["time_s"][base] - 1)
    modes["saved_pct"] = 100 * (1 - modes["energy_j"] / modes["energy_j"][base])
    aims = {MAXN: base} if len(top) else {}
    aims |= {FASTEST: fastest, LEAST: int(modes["energy_j"].argmin())}
    for limit in LITTLE_PCT:
        allowed = modes["energy_j"].where(modes["slower_pct"] <= limit, np.inf)
        aims[f"{LEAST}_within_{limit:g}"] = int(allowed.argmin())
    key_names = ("provenance", "sweep", "device", "workload", "task", "batch_size")
    return modes.iloc[[*aims.values()]].assign(
        **{name: getattr(key, name) for name in key_names},
        power_scope=rows.power_scope,
        aim=[*aims],
        against=MAXN if len(top) else FASTEST,
        n_modes=len(modes),
    )[list(TUNED_COLUMNS)]


def balances(fits: Iterable[FitRow]) -> pd.DataFrame:
    """Return ridge and balance of each mode whose energy was measured."""
    measured = (row for row in fits if row.balance_flop_per_byte is not None)
    rows = [[getattr(row, name) for name in BALANCE_COLUMNS[:-1]] for row in measured]
    frame = pd.DataFrame(rows, columns=BALANCE_COLUMNS[:-1])
    is_efficient = frame["balance_flop_per_byte"] <= frame["ridge_flop_per_byte"]
    return frame.assign(is_efficient_where_fast=is_efficient.astype(int))


def write_tuning(sweeps: Iterable[str], fits: Iterable[str], tuning: str, balance: str) -> None:
    """Write the best modes of tables of modes, and the balances of fits: rule tune_modes.

    Raises ConfigError: a table cannot be read; RecordWriteError: one cannot be written.
    """
    tuned = [tune(table) for path in sweeps for table in read_mode_tables(Path(path))]
    frames = [frame for frame in tuned if len(frame)] or [pd.DataFrame(columns=TUNED_COLUMNS)]
    write_frame(tuning, "tuned modes", pd.concat(frames), "%.6g")
    rows = [row for path in fits for row in read_fits(path)]
    write_frame(balance, "balances of energy", balances(rows), "%.6g")
