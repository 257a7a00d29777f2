"""How far off is the energy of a training by the way of sampling; how often does its bound hold?

The training's two levels on a simulated clock, with a known integral and over many phases. The
dithered instants are those of the sampler's own schedule. How often bounds hold for signals of many
kinds, sensors and faults: benchmarks/bounds.py.
"""

import math
import random
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.results import Budget, Result, Row, at_most
from benchmarks.synthetic import TRAINING
from epochwatt.board.telemetry.channel import Schedule
from epochwatt.epochs.energy import J_PER_WH, paper_energy_wh, trapezoid
from epochwatt.epochs.sensor import INSTANT, Sensor

Array = NDArray[np.float64]
Span = tuple[float, float]  # start and end of a window, s
Instants = Callable[[random.Random, Span], Array]  # stamps, s, ascending

WINDOWS = {10.0: (2000, None), 40.0: (2000, 1.2), 600.0: (400, 0.35)}  # s: phases, budget of rms, %
LEAD_S = 0.05  # ASSUME: the sampler begins up to that long before an epoch, and ends after it
IDEAL = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)
(LOW_S, LOW_W), (HIGH_S, HIGH_W) = TRAINING
PERIOD_S = LOW_S + HIGH_S


def power_w(t: Array, phase_s: float) -> Array:
    """Return the power of the training, W, shape (n,)."""
    return np.where((t + phase_s) % PERIOD_S < LOW_S, LOW_W, HIGH_W)


def energy_j(t: float, phase_s: float) -> float:
    """Return the integral of the power up to a moment, J."""
    n, rest_s = divmod(t + phase_s, PERIOD_S)
    return HIGH_W * (t + phase_s) - (HIGH_W - LOW_W) * (n * LOW_S + min(rest_s, LOW_S))


def dithered(rng: random.Random, window: Span) -> Array:
    """Return the instants of the sampler: one somewhere in each 100 ms, and two bounds."""
    start_s, end_s = window[0] - rng.uniform(0, LEAD_S), window[1] + rng.uniform(0, LEAD_S)
    schedule = Schedule(0.1, rng.random(), start_s)
    stamps = [start_s]
    while schedule.instant_s < end_s:
        stamps.append(schedule.take(schedule.instant_s))
    return np.array([*stamps, end_s])


def exact(period_s: float) -> Instants:
    """Return instants exactly a period apart, as other samplers have them, at any phase."""

    def instants(rng: random.Random, window: Span) -> Array:
        n = math.ceil((window[1] - window[0]) / period_s) + 2
        steps = np.arange(n, dtype=np.float64) - rng.random()
        return np.asarray(window[0] + steps * period_s, dtype=np.float64)

    return instants


OURS, PAPERS = "dithered 100 ms", "papers' 1 Hz sum"
WAYS = {OURS: dithered, "exact 100 ms": exact(0.1), "exact 1 s": exact(1.0), PAPERS: dithered}


def tried(way: str, duration_s: float, n: int) -> pd.DataFrame:
    """Return `error_pct` and `bound_pct` of n energies of the training, each at another phase."""
    rng, rows = random.Random(f"{way} {duration_s}"), []
    for _ in range(n):
        start_s = rng.random()
        window, phase_s = (start_s, start_s + duration_s), rng.uniform(0, PERIOD_S)
        t = WAYS[way](rng, window)
        truth_j = energy_j(window[1], phase_s) - energy_j(window[0], phase_s)
        found = trapezoid(t, power_w(t, phase_s), *window, IDEAL)
        found_j = found.energy_j
        if way == PAPERS:
            found_j = J_PER_WH * paper_energy_wh(t, power_w(t, phase_s), *window)
        rows.append((100 * (found_j / truth_j - 1), found.error_pct))
    return pd.DataFrame(rows, columns=["error_pct", "bound_pct"])


def run(quick: bool = False) -> Result:
    """Simulate all (half a minute); `quick` only shows that it works."""
    rows, bounds = [], []
    for duration_s, (n_phases, limit_pct) in WINDOWS.items():
        n, training = 3 if quick else n_phases, f"{duration_s:g} s of training"
        for way in WAYS:
            found = tried(way, duration_s, n)
            rms_pct = math.sqrt((found.error_pct**2).mean())
            what = f"{training}, {way}, {n} phases"
            budget = at_most(limit_pct) if way == OURS and limit_pct else None
            rows.append(Row(f"{what}: rms error", [rms_pct], "%", 2, budget))
            rows.append(Row(f"{what}: mean error", [float(found.error_pct.mean())], "%", 2))
            if way == OURS:
                covered = 100 * (found.error_pct.abs() <= found.bound_pct + 1e-9).mean()
                at_least_95 = Budget(95.0, 100.0, ">= 95")
                ratio = float(found.bound_pct.mean() / rms_pct)
                bounds.append(Row(f"{training}: bound covers", [covered], "%", 1, at_least_95))
                bounds.append(Row(f"{training}: mean bound / rms error", [ratio], "", 2))
    return Result(rows + bounds)
