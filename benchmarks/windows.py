"""Does the energy of `begin_window` and `end_window` lie within its bound, sensor by sensor?

Windows of 0.2 to 60 s, begun and ended by `EpochMonitor` at drawn moments, over one another, on
power signals of benchmarks/signals.py. The sampler's own `Recorder` reads them on a simulated
clock, through the sources of NVML and RAPL themselves and made-up ones of an INA3221 and of jtop;
only the process between the two is left out. `python -m benchmarks.windows [WINDOWS [SEED]]` writes
benchmarks/tables/instrument/windows.csv.
"""

import math
import sys
import tempfile
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks import signals
from benchmarks.bounds import AT_LEAST_95, NAMES, new_seed, wilson
from benchmarks.power_sensors import NOISE, TAU_S
from benchmarks.results import REPOSITORY, Result, Row
from benchmarks.signals import Numbers, Signal
from benchmarks.synthetic import make_counter
from epochwatt import EpochMonitor, Window
from epochwatt.board.telemetry.nvml import NvmlSource
from epochwatt.board.telemetry.rapl import RaplSource
from epochwatt.board.telemetry.sampler import Recorder
from epochwatt.board.telemetry.source import Service, Source, sensor_facts

N_WINDOWS, N_QUICK = 200, 4
LENGTH_S = (0.2, 60.0)  # of a window; its logarithm is drawn evenly
SIGNAL_S, AT_ONCE = 90.0, 8  # a signal, and how many windows lie in it
TABLE = REPOSITORY / "benchmarks/tables/instrument/windows.csv"
RAPL_STEP_UJ = 61


class World:
    """A simulated clock, and what a power sensor shows of a signal at its moment."""

    def __init__(self, rng: Numbers, signal: Signal) -> None:
        self.rng, self.signal = rng, signal
        self.now_s = signal.start_s
        self.phase_s = rng.random()
        self._shown: tuple[int, float] = (-1, 0.0)

    def clock(self) -> float:
        self.now_s += 1e-5  # to look at it takes some time
        return self.now_s

    def rest(self, seconds: float) -> None:
        self.now_s += seconds

    def energy_j(self, t_s: float) -> float:
        return float(self.signal.integral(np.array([t_s]))[0])

    def mean_w(self, t_s: float, length_s: float) -> float:
        """Return the mean power before a moment, with the sensor's noise."""
        energy_j = self.energy_j(t_s) - self.energy_j(t_s - length_s)
        return round(energy_j / length_s * (1 + NOISE * self.rng.standard_normal()), 3)

    def held_w(self, update_s: float, length_s: float) -> float:
        """Return the value of a register that is renewed at instants of its own."""
        k = math.floor((self.now_s + self.phase_s) / update_s)
        if k != self._shown[0]:
            self._shown = k, self.mean_w(k * update_s - self.phase_s, length_s)
        return self._shown[1]


class Ina3221(Source):
    """The register of an INA3221, read from sysfs; its settings are those of the board's source."""

    name, period_s, scope = "sysfs", 0.1, "module"
    columns, total = ("power_module_w",), "power_module_w"

    def __init__(self, world: World, cycle_s: float) -> None:
        self._world, self._cycle_s = world, cycle_s

    def read(self) -> list[float]:
        return [self._world.held_w(self._cycle_s, self._cycle_s)]

    def settings(self) -> dict[str, Any]:
        reads = "held" if self._cycle_s > self.period_s / 2 else "mean"
        step_w = dict.fromkeys(self.columns, 0.001)
        return {"sensor": sensor_facts(reads, self._cycle_s, self._cycle_s, step_w)}


class Jtop(Service):
    """jtop, which samples an INA3221 once a second."""

    name, period_s, scope = "jtop", 1.0, "module"
    columns, total = ("power_module_w",), "power_module_w"

    def __init__(self, world: World, folder: str) -> None:
        super().__init__()
        self._world = world
        self._next_s = world.now_s - world.phase_s - self.period_s

    def start(self) -> None:
        self.listen()
        self.arrivals.restart(self._world.now_s - 1.5 * self.period_s)  # the newest sample stays

    def listen(self) -> None:
        while self._next_s <= self._world.now_s:
            t_s = self._next_s + 0.001 * self._world.rng.standard_normal()
            self.arrivals.add(t_s, [self._world.mean_w(t_s, TAU_S)])
            self._next_s += self.period_s

    def settings(self) -> dict[str, Any]:
        return {"sensor": sensor_facts("mean", TAU_S, TAU_S, dict.fromkeys(self.columns, 0.001))}


def nvml(world: World, has_counter: bool) -> NvmlSource:
    """Return the source of an H100 with a counter of energy, or of a card that averages over 1 s.

    The source has looked at how often it is renewed.
    """
    answers: dict[str, Any] = {"NVMLError": RuntimeError, "nvmlShutdown": lambda: None}
    if has_counter:
        answers |= {
            "nvmlDeviceGetName": lambda handle: "NVIDIA H100",
            "nvmlDeviceGetArchitecture": lambda handle: 9,
            "nvmlDeviceGetFieldValues": lambda handle, fields: [
                # power, seen in a quarter of the time, mW
                SimpleNamespace(
                    nvmlReturn=0,
                    value=SimpleNamespace(uiVal=int(1e3 * world.held_w(0.1, 0.025))),
                )
            ],
            # counted until it was renewed, mJ
            "nvmlDeviceGetTotalEnergyConsumption": lambda handle: int(
                1e3 * world.energy_j(math.floor(world.now_s / 0.1) * 0.1)
            ),
        }
    else:
        answers["nvmlDeviceGetName"] = lambda handle: "NVIDIA GeForce RTX 3090"
        answers["nvmlDeviceGetArchitecture"] = lambda handle: 7
    answers["nvmlDeviceGetPowerUsage"] = lambda handle: int(1e3 * world.held_w(0.1, 1.0))
    source = NvmlSource(SimpleNamespace(**answers), None)
    world.now_s -= 1.0
    source.watch(world.clock, world.rest)
    return source


class Rapl(RaplSource):
    """The counter of a processor, whose file shows what was spent when it is read."""

    def __init__(self, world: World, folder: str) -> None:
        self._file, self._world = make_counter(Path(folder, "sys/class")), world
        self._show()
        super().__init__(folder, world.clock, world.rest)

    def _show(self) -> None:
        spent_uj = 1e6 * self._world.energy_j(math.floor(1e3 * self._world.now_s) / 1e3)
        self._file.write_text(f"{int(spent_uj / RAPL_STEP_UJ) * RAPL_STEP_UJ:012d}\n")

    def start(self) -> None:
        self._show()
        super().start()

    def read(self) -> list[float]:
        self._show()
        return super().read()


SENSORS: dict[str, Callable[[World, str], Source]] = {
    "INA3221 by sysfs, 54 ms (JetPack 4)": lambda world, folder: Ina3221(world, TAU_S),
    "INA3221 by sysfs, 3.3 ms (JetPack 5, 6)": lambda world, folder: Ina3221(world, 0.0033),
    "jtop, 1 Hz": Jtop,
    "NVML, counter (H100)": lambda world, folder: nvml(world, True),
    "NVML, mean over 1 s (RTX 3090)": lambda world, folder: nvml(world, False),
    "RAPL": Rapl,
}


def windows_on(
    rng: Numbers, signal: Signal, make: Callable[[World, str], Source]
) -> list[tuple[Window, float]]:
    """Return windows on a signal, and the true energy of each, J."""
    world = World(rng, signal)
    lengths_s = np.exp(rng.uniform(*np.log(LENGTH_S), AT_ONCE))
    begins_s = signal.start_s + rng.random(AT_ONCE) * (SIGNAL_S - lengths_s)
    events = [(begin_s, n, False) for n, begin_s in enumerate(begins_s)]
    heapify(events)
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch(
            "epochwatt.monitor.time", SimpleNamespace(perf_counter=world.clock, time=world.clock)
        ),
    ):
        recorder = Recorder([make(world, folder)], 0, world.clock, world.clock, world.rest)
        watch = EpochMonitor("windows", folder=folder)
        watch._observer = SimpleNamespace(sampler=recorder)
        while events:
            t_s, n, is_end = heappop(events)
            while world.now_s < t_s:
                world.now_s = min(t_s, world.now_s + recorder.step())
            if is_end:
                start_s, _ = watch._windows[f"w{n}"]
                window = watch.end_window(f"w{n}")
                truth_j = world.energy_j(start_s + window.time) - world.energy_j(start_s)
                found.append((window, truth_j))
            else:
                watch.begin_window(f"w{n}")
                heappush(events, (world.now_s + lengths_s[n], n, True))
        recorder.close()
    return found


def judged(n: int, seed: int) -> pd.DataFrame:
    """Return error and bound of `n` windows of each sensor, J; no bound is NaN."""
    rng = np.random.default_rng(seed)
    rows = []
    for sensor, make in SENSORS.items():
        for k in range(math.ceil(n / AT_ONCE)):
            signal = signals.draw(NAMES[k % len(NAMES)], rng, SIGNAL_S)
            for window, truth_j in windows_on(rng, signal, make):
                error_j = math.nan if window.total_energy is None else window.total_energy - truth_j
                bound_j = math.nan if window.energy_error is None else window.energy_error
                rows.append((sensor, window.time, truth_j, error_j, bound_j))
    return pd.DataFrame(rows, columns=["sensor", "time_s", "truth_j", "error_j", "bound_j"])


def summed_up(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each sensor: how many bounds there are and hold, and how wide they are."""
    rows = []
    for sensor, part in found.groupby("sensor", sort=False):
        bound = part[part.bound_j.notna()]
        holds = bound.error_j.abs() <= bound.bound_j + 1e-9
        low, high = wilson(int(holds.sum()), len(bound)) if len(bound) else (math.nan, math.nan)
        width_pct = 100 * bound.bound_j / bound.truth_j
        names = ["below 2 s", "to 10 s", "longer"]
        lengths = pd.cut(bound.time_s, [0, 2, 10, np.inf], labels=names)
        widths = width_pct.groupby(lengths, observed=False).median()
        row = {"sensor": sensor, "windows": len(part)}
        row |= {"no bound, %": 100 * (1 - len(bound) / len(part)), "holds, %": 100 * holds.mean()}
        row |= {"from, %": 100 * low, "to, %": 100 * high}
        rows.append(row | {f"median bound {name}, %": widths[name] for name in names})
    return pd.DataFrame(rows)


def run(quick: bool = False) -> Result:
    """Draw and judge all; `quick` only shows that it works."""
    seed = new_seed()
    cells = summed_up(judged(N_QUICK if quick else N_WINDOWS, seed))
    rows = []
    for sensor, _, void, holds in cells.iloc[:, :4].itertuples(index=False):
        if void < 100:
            what = f"windows, {sensor} ({void:.0f} % without): bound covers"
            rows.append(Row(what, [holds], "%", 1, AT_LEAST_95))
    return Result(rows, {"seed": seed, "cells": cells.to_dict("records")})


def main(words: list[str]) -> None:
    """Write the table."""
    seed = int(words[1]) if len(words) > 1 else new_seed()
    cells = summed_up(judged(int(words[0]) if words else N_WINDOWS, seed))
    print(cells.to_string())
    cells.to_csv(TABLE, index=False, float_format="%.1f", lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
