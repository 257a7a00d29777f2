"""How often the bounds of energies hold: signals drawn anew, every sensor, every fault.

Each window is of 20 to 60 s. A bound that is empty (void) is none that fails; how often that
happens stands beside. The random numbers come from the machine, and the seed is said, so that a run
can be repeated: `python -m benchmarks.bounds [WINDOWS [SEED]]` writes benchmarks/bounds.csv.

`python -m benchmarks.bounds lengths [SEED]` prints coverage and width by the length of an epoch
for the sensors that people have, as the code is; of two versions, of one seed, they stand in
benchmarks/tables/instrument/energy-bounds-by-length.csv. One sensor more counts energy.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import power_sensors, signals
from benchmarks.measured import FOLDER
from benchmarks.power_sensors import Samples
from benchmarks.results import REPOSITORY, Budget, Result, Row
from benchmarks.signals import Array, Numbers, Signal
from epochwatt.epochs.energy import counted, trapezoid
from epochwatt.epochs.sensor import AGE, Sensor, sensor_in
from epochwatt.epochs.stalls import stall_energy

N_WINDOWS, N_QUICK = 200, 1
LENGTH_S = (20.0, 60.0)
STALL_LENGTH_S = (20.0, 120.0)
SIGNALS = (*signals.LOOPS, signals.IDLE_TRAIN_TAIL, *signals.OTHERS)
TABLE = REPOSITORY / "benchmarks/bounds.csv"
Z = 1.96
SENSORS = {  # of `lengths`
    "sysfs, 10 Hz (JetPack 4)": "INA3221, 54 ms register",
    "sysfs, 10 Hz (JetPack 5, 6)": "INA3221, 1 x 3.3 ms register",
    "sysfs, six rails of AGX Xavier": "AGX Xavier, six rails, 30 mW",
    "jtop, 1 Hz": "jtop, 1 Hz, 54 ms",
    "jtop, 1 Hz, instants": "jtop, 1 Hz, instants",
    "tegrastats, 1 Hz": "tegrastats, 1 Hz, 161 ms",
    "NVML, 25 of 100 ms": "NVML, 25 of 100 ms",
    "NVML, mean over 1 s": "mean over 1 s (NVML)",
}
RAPL, RAPL_STEP_J, RAPL_UPDATE_S = "RAPL, counter", 61e-6, 0.001
NAMES = (*signals.LOOPS, *signals.LOOPS_AND_MORE, signals.IDLE_TRAIN_TAIL, *signals.OTHERS)
# windows of each signal
LENGTHS_S = {10.0: 40, 40.0: 40, 120.0: 16, 300.0: 8, 1200.0: 3, 3600.0: 2}
Span = tuple[float, float]

Judged = tuple[float, float]  # error and bound, % of the truth; NaN: there is no bound
Judge = Callable[[Samples, Signal], Judged]
AT_LEAST_95 = Budget(95.0, 100.0, ">= 95")


def seen(samples: Samples, signal: Signal) -> tuple[Span, Sensor, Array | None]:
    """Return the window, what the record says of the sensor, and the age of its readings."""
    window, table = (signal.start_s, signal.end_s), {"t_mono_s": samples.t_s, **samples.columns}
    sensor = sensor_in({"settings": {"sensor": samples.told}}, table, window)
    return window, sensor, table.get(AGE)


def energy_judged(samples: Samples, signal: Signal) -> Judged:
    """Return error and bound of the energy of a window, as an epoch's row would have it."""
    window, sensor, age_s = seen(samples, signal)
    found = trapezoid(samples.t_s, samples.power_w, *window, sensor, age_s, *signal.stalls)
    share = found.energy_j / signal.truth_j
    # an energy whose sensor is stuck is not published
    return 100 * (share - 1), math.nan if "power_stuck" in found.flags else found.error_pct * share


def stall_judged(samples: Samples, signal: Signal) -> Judged:
    """Return error and bound of the energy of a window's stalls."""
    window, sensor, age_s = seen(samples, signal)
    found = stall_energy(samples.t_s, samples.power_w, window, signal.stalls, sensor, age_s)
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


def judge_all(
    what: str,
    sensors: dict[str, power_sensors.Sensor],
    drawn: Iterator[tuple[str, Signal]],
    judge: Judge,
    rng: Numbers,
) -> pd.DataFrame:
    """Return error and bound of each signal as each sensor sees it: `error_pct`, `bound_pct`."""
    rows = [
        (what, sensor, name, *judge(read(rng, signal), signal))
        for name, signal in drawn
        for sensor, read in sensors.items()
    ]
    return pd.DataFrame(rows, columns=["what", "sensor", "signal", "error_pct", "bound_pct"])


def summed_up(judged: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a row per group: how often the bound holds, how great error and bound are.

    `void_pct` of the n windows have no bound. Of the others: `covered_pct` by their bounds, its
    95 % interval, `low_pct` to `high_pct`. `rms_error_pct` and `mean_bound_pct` of the true energy.
    """
    bound = judged[np.isfinite(judged.bound_pct)]
    bound = bound.assign(
        covered=bound.error_pct.abs().le(bound.bound_pct + 1e-9), square=bound.error_pct**2
    ).groupby(keys, sort=False)
    n = judged.groupby(keys, sort=False).size()
    n_bound = bound.size().reindex(n.index, fill_value=0)
    covered = bound.covered.sum().reindex(n.index)
    low, high = wilson(covered, n_bound)
    found = {
        "n": n,
        "void_pct": 100.0 * (1 - n_bound / n),
        "covered_pct": 100.0 * covered / n_bound,
        "low_pct": 100 * low,
        "high_pct": 100 * high,
        "rms_error_pct": np.sqrt(bound.square.mean()),
        "mean_bound_pct": bound.bound_pct.mean(),
    }
    return pd.DataFrame(found).reindex(n.index).reset_index()


def wilson(k: Any, n: Any) -> tuple[Any, Any]:
    """Return the 95 % interval of a share, k of n (Wilson, JASA 22 (1927) 209-212)."""
    centre, half = k + Z**2 / 2, Z * np.sqrt(k * (n - k) / n + Z**2 / 4)
    return (centre - half) / (n + Z**2), (centre + half) / (n + Z**2)


def pooled(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per sensor, over all signals; NaN where no window has a bound."""
    n_bound = (cells.n * (1 - cells.void_pct / 100)).round()
    sums = cells[["sensor", "n"]].assign(
        n_bound=n_bound,
        covered=n_bound * cells.covered_pct,
        square=n_bound * cells.rms_error_pct**2,
        bound=n_bound * cells.mean_bound_pct,
    )
    sums = sums.groupby("sensor", sort=False).sum().reset_index()
    n_bound = sums.n_bound.where(sums.n_bound > 0)
    return pd.DataFrame(
        {
            "sensor": sums.sensor,
            "void_pct": 100 * (1 - sums.n_bound / sums.n),
            "covered_pct": sums.covered / n_bound,
            "rms_error_pct": np.sqrt(sums.square / n_bound),
            "mean_bound_pct": sums.bound / n_bound,
        }
    )


def all_cells(n: int, seed: int) -> pd.DataFrame:
    """Return all cells of energies and of stalls."""
    rng = np.random.default_rng(seed)
    every = {**power_sensors.SENSORS, **power_sensors.FAULTS}
    energies = judge_all("energy", every, windows(rng, n), energy_judged, rng)
    of_stalls = ("stall energy", power_sensors.SENSORS, stall_windows(rng, n), stall_judged, rng)
    judged = pd.concat([energies, judge_all(*of_stalls)])
    return summed_up(judged, ["what", "sensor", "signal"])


def rows_of(cells: pd.DataFrame) -> list[Row]:
    """Return the lines of the table: each sensor over all signals, and the worst cell."""
    rows = []
    for what, ours in cells.groupby("what", sort=False):
        for each in pooled(ours).dropna(subset="covered_pct").itertuples():
            name = f"{what}, {each.sensor} ({each.void_pct:.0f} % void): bound covers"
            rows.append(Row(name, [each.covered_pct], "%", 1, AT_LEAST_95))
        known = ours.dropna(subset="covered_pct").sort_values(["high_pct", "covered_pct"])
        worst = known.iloc[0]
        name = f"{what}, worst of {len(known)}: {worst.sensor}, {worst.signal}: upper limit"
        rows.append(Row(name, [worst.high_pct], "%", 1, AT_LEAST_95))
    return rows


def new_seed() -> int:
    """Return a seed, which is said."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}", file=sys.stderr)
    return seed


def run(quick: bool = False) -> Result:
    """Draw and judge all (ten minutes); `quick` only shows that it works."""
    seed = new_seed()
    cells = all_cells(N_QUICK if quick else N_WINDOWS, seed)
    return Result(rows_of(cells), {"seed": seed, "cells": cells.to_dict("records")})


def print_lengths(seed: int) -> None:
    """Print a row for each sensor and length."""
    rng = np.random.default_rng(seed)
    print("sensor,length s,windows,void %,covered %,median bound %")
    for length_s, n in LENGTHS_S.items():
        rows: list[tuple[str, float, float]] = []
        for name in NAMES:
            for _ in range(n):
                signal = signals.draw(name, rng, length_s * math.exp(rng.uniform(-0.1, 0.1)))
                for title, sensor in SENSORS.items():
                    samples = power_sensors.SENSORS[sensor](rng, signal)
                    rows.append((title, *energy_judged(samples, signal)))
                rows.append((RAPL, *rapl_judged(rng, signal)))
        judged = pd.DataFrame(rows, columns=["sensor", "error_pct", "bound_pct"])
        medians = judged.groupby("sensor").bound_pct.median()
        for row in summed_up(judged, ["sensor"]).itertuples():
            shares = f"{row.void_pct:.1f},{row.covered_pct:.1f},{medians[row.sensor]:.2f}"
            print(f'"{row.sensor}",{length_s:g},{row.n:.0f},{shares}', flush=True)


def rapl_judged(rng: Numbers, signal: Signal) -> Judged:
    """Return error and bound of the energy out of a processor's counter."""
    t = power_sensors.dithered(rng, signal)
    renewed = RAPL_UPDATE_S * np.floor(t / RAPL_UPDATE_S)
    counter = RAPL_STEP_J * np.floor(signal.integral(renewed) / RAPL_STEP_J)
    energy = counted(t, counter, signal.start_s, signal.end_s, RAPL_UPDATE_S)
    share = energy.energy_j / signal.truth_j
    return 100 * (share - 1), energy.error_pct * share


def main(words: list[str]) -> None:
    """Write benchmarks/bounds.csv, or print coverage by length."""
    seed = int(words[1]) if len(words) > 1 else new_seed()
    if words[:1] == ["lengths"]:
        print_lengths(seed)
        return
    n = int(words[0]) if words else N_WINDOWS
    cells = all_cells(n, seed)
    text = cells.to_csv(index=False, float_format="%.2f", lineterminator="\n")
    TABLE.write_text(f"# seed {seed}; {n} windows a cell\n{text}", "utf-8")
    for row in rows_of(cells):
        print(row.what, f"{row.median:.1f} %", "" if row.met else "NOT MET")


if __name__ == "__main__":
    main(sys.argv[1:])
