"""How often the bounds of energies hold: signals drawn anew, every sensor, every fault.

Each window is of 20 to 60 s. A bound that is empty (void) is none that fails; how often that
happens stands beside. The random numbers come from the machine, and the seed is said, so that a run
can be repeated: `python -m benchmarks.bounds [WINDOWS [SEED]]` writes benchmarks/bounds.csv.
"""

import csv
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import power_sensors, signals
from benchmarks.measured import FOLDER
from benchmarks.power_sensors import Samples
from benchmarks.results import REPOSITORY, Budget, Result, Row
from benchmarks.signals import Numbers, Signal
from epochwatt.epochs.energy import Energy, trapezoid
from epochwatt.epochs.sensor import AGE, sensor_in
from epochwatt.epochs.stalls import stall_energy

N_WINDOWS, N_QUICK = 200, 1
LENGTH_S = (20.0, 60.0)
STALL_LENGTH_S = (20.0, 120.0)
SIGNALS = (*signals.LOOPS, signals.IDLE_TRAIN_TAIL, *signals.OTHERS)
TABLE = REPOSITORY / "benchmarks/bounds.csv"
Z = 1.96


class Cell(NamedTuple):
    """What was found of one sensor with one signal."""

    what: str
    sensor: str
    signal: str
    n: int
    void_pct: float  # of the windows, without a bound
    covered_pct: float  # of the others; `low_pct` and `high_pct`: its 95 % interval
    low_pct: float
    high_pct: float
    rms_error_pct: float  # of the others, % of the true energy
    mean_bound_pct: float


Judged = tuple[float, float]  # error and bound, % of the truth; NaN: there is no bound
Judge = Callable[[Samples, Signal], Judged]


def energy_judged(samples: Samples, signal: Signal) -> Judged:
    """Return error and bound of the energy of a window."""
    found = energy_of(samples, signal)
    share = found.energy_j / signal.truth_j
    # an energy whose sensor is stuck is not published
    return 100 * (share - 1), math.nan if "power_stuck" in found.flags else found.error_pct * share


def energy_of(samples: Samples, signal: Signal) -> Energy:
    """Return the energy as an epoch's row would have it."""
    window, table = (signal.start_s, signal.end_s), {"t_mono_s": samples.t_s, **samples.columns}
    sensor = sensor_in({"settings": {"sensor": samples.told}}, table, window)
    return trapezoid(samples.t_s, samples.power_w, *window, sensor, table.get(AGE), *signal.stalls)


def stall_judged(samples: Samples, signal: Signal) -> Judged:
    """Return error and bound of the energy of a window's stalls."""
    window, table = (signal.start_s, signal.end_s), {"t_mono_s": samples.t_s, **samples.columns}
    sensor = sensor_in({"settings": {"sensor": samples.told}}, table, window)
    found = stall_energy(
        samples.t_s, samples.power_w, window, signal.stalls, sensor, table.get(AGE)
    )
    share = found.energy_j / signal.stall_j
    return 100 * (share - 1), found.error_pct * share


def windows(rng: Numbers, n: int) -> Iterator[tuple[str, Signal]]:
    """Give `n` windows of each family of signals, and of each series that others measured."""
    for name in SIGNALS:
        for _ in range(n):
            yield name, signals.draw(name, rng, rng.uniform(*LENGTH_S))
    recorded: dict[str, list] = {}
    for name, t_s, power_w in signals.recorded(Path(FOLDER).parent):
        if np.ptp(t_s) > 2 * LENGTH_S[1]:
            recorded.setdefault(name, []).append((t_s, power_w))
    for name, series in recorded.items():
        for _ in range(n):
            t_s, power_w = series[rng.integers(len(series))]
            yield name, signals.replayed(rng, t_s, power_w, rng.uniform(*LENGTH_S))


def stall_windows(rng: Numbers, n: int) -> Iterator[tuple[str, Signal]]:
    """Give `n` windows of each kind of stalls."""
    for name in signals.STALLS:
        for _ in range(n):
            yield name, signals.stalling(name, rng, rng.uniform(*STALL_LENGTH_S))


def cells(
    what: str,
    sensors: dict[str, power_sensors.Sensor],
    drawn: Iterator[tuple[str, Signal]],
    judge: Judge,
    rng: Numbers,
) -> list[Cell]:
    """Return the cells of a table, each signal seen by each sensor."""
    seen: dict[tuple[str, str], list[Judged]] = {}
    for name, signal in drawn:
        for sensor, read in sensors.items():
            seen.setdefault((sensor, name), []).append(judge(read(rng, signal), signal))
    return [cell(what, *key, judged) for key, judged in seen.items()]


def cell(what: str, sensor: str, signal: str, judged: list[Judged]) -> Cell:
    """Return a cell out of errors and bounds."""
    told = np.array(judged)
    error, bound = told[np.isfinite(told[:, 1])].T
    void_pct, n = 100.0 * (1 - error.size / len(told)), len(told)
    if not error.size:
        return Cell(what, sensor, signal, n, void_pct, *[math.nan] * 5)
    covered = int((np.abs(error) <= bound + 1e-9).sum())
    low, high = wilson(covered, error.size)
    rms, mean = float(np.sqrt(np.mean(error**2))), float(bound.mean())
    share = 100.0 * covered / error.size
    return Cell(what, sensor, signal, n, void_pct, share, 100 * low, 100 * high, rms, mean)


def wilson(k: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, k of n (Wilson, JASA 22 (1927) 209-212)."""
    centre, half = k + Z**2 / 2, Z * math.sqrt(k * (n - k) / n + Z**2 / 4)
    return (centre - half) / (n + Z**2), (centre + half) / (n + Z**2)


def pooled(found: list[Cell]) -> dict[str, Cell]:
    """Return one cell per sensor, over all signals."""
    together = {}
    for sensor in dict.fromkeys(each.sensor for each in found):
        own = [each for each in found if each.sensor == sensor]
        counts = np.array([each.n * (1 - each.void_pct / 100) for each in own]).round()
        n, covered = sum(each.n for each in own), 0.0
        rms, mean = math.nan, math.nan
        if counts.sum():
            values = np.nan_to_num([each[5:10] for each in own])
            covered = float(counts @ values[:, 0]) / 100
            rms = math.sqrt(float(counts @ values[:, 3] ** 2) / counts.sum())
            mean = float(counts @ values[:, 4]) / counts.sum()
        low, high = wilson(round(covered), int(counts.sum())) if counts.sum() else (math.nan,) * 2
        share = 100 * covered / counts.sum() if counts.sum() else math.nan
        void = 100 * (1 - counts.sum() / n)
        shares = (void, share, 100 * low, 100 * high)
        together[sensor] = Cell(own[0].what, sensor, "all", n, *shares, rms, mean)
    return together


def all_cells(n: int, seed: int) -> list[Cell]:
    """Return all cells of energies and of stalls."""
    rng = np.random.default_rng(seed)
    every = {**power_sensors.SENSORS, **power_sensors.FAULTS}
    found = cells("energy", every, windows(rng, n), energy_judged, rng)
    return found + cells(
        "stall energy", power_sensors.SENSORS, stall_windows(rng, n), stall_judged, rng
    )


def rows_of(found: list[Cell]) -> list[Row]:
    """Return the lines of the table: each sensor over all signals, and the worst cell."""
    rows = []
    budget = Budget(95.0, 100.0, ">= 95")
    for what in dict.fromkeys(each.what for each in found):
        ours = [each for each in found if each.what == what]
        for sensor, each in pooled(ours).items():
            name = f"{what}, {sensor} ({each.void_pct:.0f} % void): bound covers"
            if each.void_pct < 100:
                rows.append(Row(name, [each.covered_pct], "%", 1, budget))
        known = [each for each in ours if not math.isnan(each.covered_pct)]
        worst = min(known, key=lambda each: (each.high_pct, each.covered_pct))
        name = f"{what}, worst of {len(known)}: {worst.sensor}, {worst.signal}: upper limit"
        rows.append(Row(name, [worst.high_pct], "%", 1, budget))
    return rows


def run(quick: bool = False) -> Result:
    """Draw and judge all (ten minutes); `quick` only shows that it works."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"bounds: seed {seed}", file=sys.stderr)
    found = all_cells(N_QUICK if quick else N_WINDOWS, seed)
    return Result(rows_of(found), {"seed": seed, "cells": [each._asdict() for each in found]})


def main(n: int, seed: int) -> None:
    """Write benchmarks/bounds.csv."""
    found = all_cells(n, seed)
    with open(TABLE, "w", newline="", encoding="utf-8") as handle:
        handle.write(f"# seed {seed}; {n} windows a cell\n")
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(Cell._fields)
        for each in found:
            writer.writerow([f"{v:.2f}" if isinstance(v, float) else v for v in each])
    for row in rows_of(found):
        print(row.what, f"{row.median:.1f} %", "" if row.met else "NOT MET")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else N_WINDOWS,
        int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "big"),
    )
