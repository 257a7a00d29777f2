"""Choose the best modes for latency and for energy: one row per workload and aim.

A mode is chosen by what was observed in it, among all modes of a table: nothing is predicted. The
yardstick is the mode in which every part is at its highest (MAXN), or the fastest mode of a table
that lacks it. Kernels are no workloads: tables of them are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochwatt import columns
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.sweeps.mode_table import ModeTable, Numbers, SweepRow, read_mode_tables
from epochwatt.tables import write_entries

MAXN = "maxn"
FASTEST = "fastest"
LITTLE_PCT = (0.0, 2.0, 5.0, 10.0)  # slower than MAXN, at most: "at little latency cost"
LEAST = "least_energy"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """One choice: a row of results/pagoda/tuning.csv."""

    provenance: str
    sweep: str
    device: str
    workload: str
    task: str
    batch_size: int | None
    power_scope: str
    # maxn, fastest, least_energy, or least_energy_within_N: at most N % slower than `against`
    aim: str
    against: str  # maxn or fastest, the yardstick
    cores: int | None
    cpu_mhz: float | None
    gpu_mhz: float | None
    emc_mhz: float | None
    time_s: float  # of its mini-batch, or of the work that the table is about
    power_w: float
    energy_j: float
    slower_pct: float  # time and energy against it
    saved_pct: float
    n_modes: int  # that were chosen from


def tune(table: ModeTable) -> Iterator[Tuned]:
    """Yield the best modes of a workload; none of a kernel, or where power was not measured."""
    rows = [row for row in table.valid().rows if row.power_w is not None]
    if not rows or table.key.work == "kernel":
        return
    of_mode = _by_mode(rows)
    time_s, power_w = (np.array(column) for column in zip(*of_mode.values(), strict=True))
    energy_j = time_s * power_w
    parts = np.nan_to_num(np.array([mode[:4] for mode in of_mode], float))
    top = np.flatnonzero((parts == parts.max(0)).all(1))
    base = int(top[0]) if len(top) else int(time_s.argmin())
    slower = 100 * (time_s / time_s[base] - 1)
    aims = {MAXN: base} if len(top) else {}
    aims |= {FASTEST: int(time_s.argmin()), LEAST: int(energy_j.argmin())}
    for limit in LITTLE_PCT:
        allowed = np.where(slower <= limit, energy_j, np.inf)
        aims[f"{LEAST}_within_{limit:g}"] = int(allowed.argmin())
    for aim, place in aims.items():
        mode = list(of_mode)[place]
        yield Tuned(
            **{name: getattr(table.key, name) for name in ("provenance", "sweep", "device")},
            **{name: getattr(table.key, name) for name in ("workload", "task", "batch_size")},
            power_scope=rows[0].power_scope,
            aim=aim,
            against=MAXN if len(top) else FASTEST,
            **dict(zip(columns.MODE_PARTS[:4], mode, strict=False)),  # type: ignore[arg-type]
            time_s=float(time_s[place]),
            power_w=float(power_w[place]),
            energy_j=float(energy_j[place]),
            slower_pct=float(slower[place]),
            saved_pct=float(100 * (1 - energy_j[place] / energy_j[base])),
            n_modes=len(of_mode),
        )


def _by_mode(rows: Sequence[SweepRow]) -> dict[tuple[float | None, ...], tuple[float, float]]:
    """Return time and power of each mode, the medians of its repeats."""
    repeats: dict[tuple[float | None, ...], list[tuple[float, float]]] = {}
    for row in rows:
        mode = tuple(getattr(row, name) for name in columns.MODE_PARTS)
        repeats.setdefault(mode, []).append((row.time_s, row.power_w or 0.0))
    middles: dict[tuple[float | None, ...], Numbers] = {
        mode: np.median(some, axis=0) for mode, some in repeats.items()
    }
    return {mode: (float(two[0]), float(two[1])) for mode, two in middles.items()}


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Ridge and balance of a mode: a row of results/pagoda/balances.csv."""

    provenance: str
    device: str
    instance: str
    cores: int | None
    cpu_mhz: float | None
    gpu_mhz: float | None
    emc_mhz: float | None
    ridge_flop_per_byte: float
    balance_flop_per_byte: float
    is_efficient_where_fast: int  # 1: time-efficient implies energy-efficient; 0: it does not


def balance_of(row: FitRow) -> Balance | None:
    """Return the balance of a fit; None where its energy was not measured."""
    if row.balance_flop_per_byte is None:
        return None
    names = ("provenance", "device", "instance", "cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    return Balance(
        **{name: getattr(row, name) for name in names},
        ridge_flop_per_byte=row.ridge_flop_per_byte,
        balance_flop_per_byte=row.balance_flop_per_byte,
        is_efficient_where_fast=int(row.balance_flop_per_byte <= row.ridge_flop_per_byte),
    )


def write_tuning(sweeps: Iterable[str], fits: Iterable[str], tuning: str, balances: str) -> None:
    """Write the best modes of tables of modes, and the balances of fits: rule tune_modes.

    Raises ConfigError: a table cannot be read; RecordWriteError: one cannot be written.
    """
    tables = [table for path in sweeps for table in read_mode_tables(Path(path))]
    chosen = [row for table in tables for row in tune(table)]
    write_entries(Path(tuning), "tuned modes", Tuned, chosen, ".6g")
    rows = [balance for path in fits for row in read_fits(path) if (balance := balance_of(row))]
    write_entries(Path(balances), "balances of energy", Balance, rows, ".6g")
