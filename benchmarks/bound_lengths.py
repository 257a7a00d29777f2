"""Coverage and width of energy bounds by the length of an epoch, for the sensors that people have.

`python -m benchmarks.bound_lengths [SEED]` prints a row for each sensor and length as the code is;
benchmarks/tables/instrument/energy-bounds-by-length.csv has those of two versions, of one seed. The
signals are those of benchmarks/bounds, drawn anew, with loops beside other loads, with a compute of
many levels, with a drift. One sensor more counts energy.
"""

import csv
import math
import os
import sys

import numpy as np

from benchmarks import power_sensors, signals
from benchmarks.bounds import Judged, cell, energy_judged
from benchmarks.power_sensors import Samples
from benchmarks.signals import Numbers, Signal
from epochwatt.epochs.energy import counted

SENSORS = {
    "sysfs, 10 Hz (JetPack 4)": power_sensors.SENSORS["INA3221, 54 ms register"],
    "sysfs, 10 Hz (JetPack 5, 6)": power_sensors.SENSORS["INA3221, 1 x 3.3 ms register"],
    "sysfs, six rails of AGX Xavier": power_sensors.SENSORS["AGX Xavier, six rails, 30 mW"],
    "jtop, 1 Hz": power_sensors.SENSORS["jtop, 1 Hz, 54 ms"],
    "jtop, 1 Hz, instants": power_sensors.SENSORS["jtop, 1 Hz, instants"],
    "tegrastats, 1 Hz": power_sensors.SENSORS["tegrastats, 1 Hz, 161 ms"],
    "NVML, 25 of 100 ms": power_sensors.SENSORS["NVML, 25 of 100 ms"],
    "NVML, mean over 1 s": power_sensors.SENSORS["mean over 1 s (NVML)"],
}
RAPL, RAPL_STEP_J, RAPL_UPDATE_S = "RAPL, counter", 61e-6, 0.001
NAMES = (*signals.LOOPS, *signals.LOOPS_AND_MORE, signals.IDLE_TRAIN_TAIL, *signals.OTHERS)
LENGTHS_S = {  # s: windows of each signal
    **{10.0: 40, 40.0: 40, 120.0: 16, 300.0: 8},
    **{1200.0: 3, 3600.0: 2},
}


def rapl_judged(rng: Numbers, signal: Signal) -> Judged:
    """Return error and bound of the energy out of a processor's counter."""
    t = power_sensors.dithered(rng, signal)
    renewed = RAPL_UPDATE_S * np.floor(t / RAPL_UPDATE_S)
    counter = RAPL_STEP_J * np.floor(signal.integral(renewed) / RAPL_STEP_J)
    energy = counted(t, counter, signal.start_s, signal.end_s, RAPL_UPDATE_S)
    share = energy.energy_j / signal.truth_j
    return 100 * (share - 1), energy.error_pct * share


def judged(rng: Numbers, length_s: float, n: int) -> dict[str, list[Judged]]:
    """Return errors and bounds of each sensor, over all signals."""
    seen: dict[str, list[Judged]] = {name: [] for name in (*SENSORS, RAPL)}
    for name in NAMES:
        for _ in range(n):
            signal = signals.draw(name, rng, length_s * math.exp(rng.uniform(-0.1, 0.1)))
            for sensor, read in SENSORS.items():
                samples: Samples = read(rng, signal)
                seen[sensor].append(energy_judged(samples, signal))
            seen[RAPL].append(rapl_judged(rng, signal))
    return seen


def main(seed: int) -> None:
    """Print the rows."""
    rng = np.random.default_rng(seed)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("sensor", "length s", "windows", "void %", "covered %", "median bound %"))
    print(f"seed {seed}", file=sys.stderr)
    for length_s, n in LENGTHS_S.items():
        for sensor, pairs in judged(rng, length_s, n).items():
            pooled = cell("energy", sensor, "all", pairs)
            bound = float(np.nanmedian([bound for _, bound in pairs]))
            shares = (f"{pooled.void_pct:.1f}", f"{pooled.covered_pct:.1f}", f"{bound:.2f}")
            writer.writerow((sensor, f"{length_s:g}", pooled.n, *shares))
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else int.from_bytes(os.urandom(4), "big"))
