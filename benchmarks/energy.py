"""The energy of power signals with a known integral, sampled on a simulated clock.

How far the energy is off by the way of sampling, on the periodic signal of a training and over many
phases; and how often the stated bound holds the truth, for signals of many kinds. The dithered
instants are those of the sampler's own schedule.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import Budget, Result, Row, at_most
from benchmarks.synthetic import TRAINING
from epochwatt.board.telemetry.channel import Schedule
from epochwatt.epochs.energy import J_PER_WH, paper_energy_wh, trapezoid
from epochwatt.epochs.sensor import INSTANT, Sensor

Array = NDArray[np.float64]
Span = tuple[float, float]  # start and end of a window, s

# window, s: (phases, budget of the rms error, %)
WINDOWS: dict[float, tuple[int, float | None]] = {
    10.0: (2000, None),
    40.0: (2000, 1.2),
    600.0: (400, 0.35),
}
COVERED = Budget(95.0, 100.0, ">= 95")
COVERAGE_S, N_TRIALS = 40.0, 2000  # of the signals other than the training

LEAD_S = 0.05  # ASSUME: the sampler begins up to that long before an epoch, and ends after it


@dataclass(frozen=True)
class Signal:
    """Power as a function of time, and its integral from 0."""

    power_w: Callable[[Array], Array]
    energy_j: Callable[[float], float]


MakeSignal = Callable[[random.Random, Span], Signal]  # (random numbers, window)
Instants = Callable[[random.Random, Span], Array]  # the same -> stamps s, ascending


def square(period_s: float, low_share: float = 0.12 / 0.35) -> MakeSignal:
    """Return a maker of the training's two levels at another period, each time at another phase."""

    def make(rng: random.Random, window: Span) -> Signal:
        low_w, high_w = TRAINING[0][1], TRAINING[1][1]
        low_s, phase_s = low_share * period_s, rng.uniform(0, period_s)

        def energy_j(t: float) -> float:
            n, rest_s = divmod(t + phase_s, period_s)
            return high_w * (t + phase_s) - (high_w - low_w) * (n * low_s + min(rest_s, low_s))

        return Signal(lambda t: np.where((t + phase_s) % period_s < low_s, low_w, high_w), energy_j)

    return make


def sine(period_s: float) -> MakeSignal:
    """Return a maker of 15 W with a sine of 7 W on top."""

    def make(rng: random.Random, window: Span) -> Signal:
        phase, omega = rng.uniform(0, 2 * math.pi), 2 * math.pi / period_s
        return Signal(
            lambda t: 15 + 7 * np.sin(omega * t + phase),
            lambda t: 15 * t - 7 / omega * math.cos(omega * t + phase),
        )

    return make


def step(rng: random.Random, window: Span) -> Signal:
    """Return 10 W that become 20 W at some moment; 10 mW of noise."""
    at_s, numbers = rng.uniform(*window), np.random.default_rng(rng.getrandbits(64))
    return Signal(
        lambda t: np.where(t < at_s, 10.0, 20.0) + 0.01 * numbers.standard_normal(t.size),
        lambda t: 10 * t + 10 * max(t - at_s, 0),
    )


def ramp(rng: random.Random, window: Span) -> Signal:
    """Return 10 W that rise by 10 W over the window's length."""
    slope = 10 / (window[1] - window[0])
    return Signal(lambda t: 10 + slope * t, lambda t: 10 * t + slope * t * t / 2)


def noise(spread_w: float) -> MakeSignal:
    """Return a maker of 15 W on average, normally distributed from look to look."""

    def make(rng: random.Random, window: Span) -> Signal:
        numbers = np.random.default_rng(rng.getrandbits(64))
        return Signal(lambda t: 15 + spread_w * numbers.standard_normal(t.size), lambda t: 15 * t)

    return make


def late_training(rng: random.Random, window: Span) -> Signal:
    """Return 9 W for half of the window, then the training; 1 W of noise throughout."""
    training, numbers = square(0.35)(rng, window), np.random.default_rng(rng.getrandbits(64))
    half_s = sum(window) / 2

    def power_w(t: Array) -> Array:
        level = np.where(t < half_s, 9.0, training.power_w(t))
        return np.asarray(level + numbers.standard_normal(t.size))

    def energy_j(t: float) -> float:
        return 9 * min(t, half_s) + training.energy_j(max(t, half_s)) - training.energy_j(half_s)

    return Signal(power_w, energy_j)


IDEAL = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)
DESIGN = "training, 350 ms"  # the signal of the design's budget
SIGNALS: dict[str, MakeSignal] = {
    DESIGN: square(0.35),
    "constant": noise(0.01),  # a sensor that tells the very same for 40 s is stuck
    "step": step,
    "ramp": ramp,
    "white noise": noise(3.0),
    "half idle, half training, noise": late_training,
    **{
        f"square of {1000 * period_s:g} ms": square(period_s)
        for period_s in (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0, 2.0, 5.0)
    },
    "even square of 100 ms": square(0.1, 0.5),
    "even square of 200 ms": square(0.2, 0.5),
    "bursts of 5 ms each 100 ms": square(0.1, 0.95),
    "bursts of 10 ms each 200 ms": square(0.2, 0.95),
    "sine of 100 ms": sine(0.1),
    "sine of 200 ms": sine(0.2),
}


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


def trapezoid_j(t: Array, power: Array, window: Span) -> float:
    """Return the energy by trapezoid, J."""
    return trapezoid(t, power, *window).energy_j


def paper_j(t: Array, power: Array, window: Span) -> float:
    """Return the papers' sum, J."""
    return J_PER_WH * paper_energy_wh(t, power, *window)


OURS = "dithered 100 ms"
WAYS: dict[str, tuple[Instants, Callable[[Array, Array, Span], float]]] = {
    OURS: (dithered, trapezoid_j),
    "exact 100 ms": (exact(0.1), trapezoid_j),
    "exact 1 s": (exact(1.0), trapezoid_j),
    "papers' 1 Hz sum": (dithered, paper_j),
}


def a_window(rng: random.Random, duration_s: float) -> Span:
    """Return a window of that length that begins at any part of a second."""
    start_s = rng.random()
    return start_s, start_s + duration_s


def errors_pct(way: str, duration_s: float, n: int) -> Array:
    """Return the errors of n energies of the training, %, each at another phase."""
    instants, energy_j = WAYS[way]
    rng = random.Random(f"{way} {duration_s}")
    errors = []
    for _ in range(n):
        window = a_window(rng, duration_s)
        signal, t = SIGNALS[DESIGN](rng, window), instants(rng, window)
        truth_j = signal.energy_j(window[1]) - signal.energy_j(window[0])
        errors.append(energy_j(t, signal.power_w(t), window) / truth_j - 1)
    return 100 * np.array(errors)


def coverage(name: str, duration_s: float, n: int) -> dict[str, float]:
    """Return of n energies of a signal: how often the bound holds the truth, how great both are.

    Returns
    -------
    dict : `covered_pct`; `rms_error_pct` and `mean_bound_pct`, % of the energy
    """
    rng = random.Random(f"{name} {duration_s}")
    errors, bounds = [], []
    for _ in range(n):
        window = a_window(rng, duration_s)
        signal, t = SIGNALS[name](rng, window), dithered(rng, window)
        found = trapezoid(t, signal.power_w(t), *window, IDEAL)
        truth_j = signal.energy_j(window[1]) - signal.energy_j(window[0])
        errors.append(100 * (found.energy_j / truth_j - 1))
        bounds.append(found.error_pct)
    return {
        "covered_pct": 100 * float(np.mean(np.abs(errors) <= np.array(bounds) + 1e-9)),
        "rms_error_pct": float(np.sqrt(np.mean(np.square(errors)))),
        "mean_bound_pct": float(np.mean(bounds)),
    }


def error_rows(quick: bool) -> list[Row]:
    """Return rms and mean error of each way of sampling, by window."""
    rows = []
    for duration_s, (n_phases, limit_pct) in WINDOWS.items():
        n = 3 if quick else n_phases
        for way in WAYS:
            errors = errors_pct(way, duration_s, n)
            rms_pct, mean_pct = float(np.sqrt(np.mean(errors**2))), float(errors.mean())
            what = f"{duration_s:g} s of training, {way}, {n} phases"
            budget = at_most(limit_pct) if way == OURS and limit_pct else None
            rows.append(Row(f"{what}: rms error", [rms_pct], "%", 2, budget))
            rows.append(Row(f"{what}: mean error", [mean_pct], "%", 2))
    return rows


def run(quick: bool = False) -> Result:
    """Simulate all (one minute); `quick` only shows that it works."""
    rows = error_rows(quick)
    training = {
        f"{duration_s:g} s": coverage(DESIGN, duration_s, 3 if quick else n)
        for duration_s, (n, _) in WINDOWS.items()
    }
    for duration, found in training.items():
        rows.append(_covered(f"{duration} of training: bound covers", found))
        ratio = found["mean_bound_pct"] / found["rms_error_pct"]
        rows.append(Row(f"{duration} of training: mean bound / rms error", [ratio], "", 2))
    signals = {name: coverage(name, COVERAGE_S, 3 if quick else N_TRIALS) for name in SIGNALS}
    worst = min(signals, key=lambda name: signals[name]["covered_pct"])
    what = f"{COVERAGE_S:g} s, worst of {len(signals)} signals ({worst}): bound covers"
    rows.append(_covered(what, signals[worst]))
    return Result(rows, {"training": training, f"{COVERAGE_S:g} s": signals})


def _covered(what: str, found: dict[str, float]) -> Row:
    return Row(what, [found["covered_pct"]], "%", 1, COVERED)
