"""Sensors of a power signal, and every way in which they fail: what the sampler would write.

Each takes a signal of benchmarks/signals.py and gives stamps, readings and what `telemetry.json`
says of the sensor, drawn anew: phases, conversion times, noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.signals import Array, Numbers, Signal

LEAD_S = 0.05  # ASSUME: the sampler begins up to that long before an epoch, and ends after it
PERIOD_S = 0.1
NOISE = 0.004  # of a reading


@dataclass(frozen=True)
class Samples:
    """What stands in the file of samples, and what the record says of the sensor."""

    t_s: Array  # (n,) stamps
    columns: dict[str, Array]  # rails, and the total last
    # `settings.sensor`; empty where an old record says nothing
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def power_w(self) -> Array:
        """The total."""
        return self.columns["power_module_w"]


Sensor = Callable[[Numbers, Signal], Samples]


def dithered(rng: Numbers, signal: Signal, period_s: float = PERIOD_S) -> Array:
    """Return the sampler's instants: one somewhere in each period, and both bounds."""
    start_s, end_s = np.array([signal.start_s, signal.end_s]) + LEAD_S * rng.random(2) * [-1, 1]
    k = np.arange(int((end_s - start_s) / period_s) + 1)
    inside = start_s + (k + rng.random(k.size)) * period_s
    return np.concatenate([[start_s], inside[inside < end_s], [end_s]])


def regular(rng: Numbers, signal: Signal, period_s: float = 1.0) -> Array:
    """Return a service's instants: exactly a period apart but for a millisecond."""
    n = int((signal.end_s - signal.start_s) / period_s) + 3
    t = signal.start_s + (np.arange(n) - rng.random() - 1) * period_s
    t = t + 0.001 * rng.standard_normal(n)
    return t[(t > signal.start_s - 1.1) & (t < signal.end_s + LEAD_S)]


def noise(rng: Numbers, n: int) -> Array:
    """Return factors on n readings."""
    return 1 + NOISE * rng.standard_normal(n)


def total(t: Array, watts: Array, **told: Any) -> Samples:
    """Return samples of one column."""
    step = {"step_w": {"power_module_w": 0.001}} if told else {}
    return Samples(t, {"power_module_w": np.round(watts, 3)}, {**told, **step})


def simple(
    mean_s: float = 0.0, when: Callable[..., Array] = dithered, is_told: bool = True
) -> Sensor:
    """Return a sensor of instants, or of means up to their stamps; the record may say nothing."""
    about = {"reads": "mean" if mean_s else "instant", "averaging_s": mean_s, "update_s": None}

    def read(rng: Numbers, signal: Signal) -> Samples:
        t = when(rng, signal)
        watts = signal.mean(t, mean_s) if mean_s else signal.at(t)
        return total(t, watts * noise(rng, t.size), **(about if is_told else {}))

    return read


instants = simple()


def filtered(cycle_s: float, samples: int) -> Sensor:
    """Return an INA3221 as its data sheet has it: a filter of first order, one step a cycle."""
    age_s = np.append(0.0, -(samples * cycle_s) * np.log1p(-np.linspace(0, 0.9998, 80)[1:]))
    weights = np.diff(np.linspace(0, 1, 80))

    def read(rng: Numbers, signal: Signal) -> Samples:
        t = dithered(rng, signal)
        at = t - rng.uniform(0, cycle_s, t.size)
        energy_j = signal.integral((at[:, None] - age_s).ravel()).reshape(t.size, -1)
        watts = -np.diff(energy_j) / np.diff(age_s) @ weights
        mean_s = (2 * samples - 1) * cycle_s
        reads = "held" if cycle_s > PERIOD_S / 2 else "mean"
        told = {"reads": reads, "averaging_s": mean_s, "update_s": cycle_s}
        return total(t, watts * noise(rng, t.size), **told)

    return read


def register(update_s: float, mean_s: float = 0.0, known: bool = True) -> Sensor:
    """Return a sensor that renews its value at instants of its own; 0: the power of an instant."""

    def read(rng: Numbers, signal: Signal) -> Samples:
        t = dithered(rng, signal)
        phase_s = rng.uniform(0, update_s)
        k = np.floor((t - signal.start_s + phase_s) / update_s)
        at = signal.start_s - phase_s + k * update_s
        ks, place = np.unique(k, return_inverse=True)
        watts = (signal.mean(at, mean_s) if mean_s else signal.at(at)) * noise(rng, ks.size)[place]
        told = {"reads": "held", "averaging_s": mean_s, "update_s": update_s}
        return total(t, watts, **(told if known else {}))

    return read


def copied(rng: Numbers, signal: Signal) -> Samples:
    """jtop as old records have it: its newest sample at random instants, with its age."""
    taken = regular(rng, signal)
    watts = np.round(signal.at(taken) * noise(rng, taken.size), 3)
    t = dithered(rng, signal, 1.0)
    newest = (np.searchsorted(taken, t) - 1).clip(min=0)
    columns = {"sample_age_s": t - taken[newest], "power_module_w": watts[newest]}
    return Samples(t, columns)


def stepped(n_rails: int, volt: float, noise_w: float, cut: bool, step_a: float = 0.008) -> Sensor:
    """Return a board's rails as INA3221 tell them: current in steps, voltage in steps of 8 mV."""

    def read(rng: Numbers, signal: Signal) -> Samples:
        t = dithered(rng, signal)
        share = rng.dirichlet(np.full(n_rails, 2.0))
        columns = {}
        volts = volt + rng.uniform(0, 0.008) + 0.008 * rng.integers(0, 2, t.size)
        for n in range(n_rails):
            watts = (share[n] * signal.at(t) + noise_w * rng.standard_normal(t.size)).clip(0)
            steps = watts / volts / step_a
            amps = step_a * (np.floor(steps) if cut else np.round(steps))
            milli = np.round(1e3 * volts), np.round(1e3 * amps)
            columns[f"power_rail{n}_w"] = milli[0] * milli[1] / 1e6
        rails = list(columns)
        columns["power_module_w"] = np.sum([columns[name] for name in rails], axis=0)
        told = {"reads": "instant", "averaging_s": 0.0, "update_s": None, "is_centred": not cut}
        return Samples(t, columns, {**told, "step_w": dict.fromkeys(rails, volt * step_a)})

    return read


def faulty(
    spoil: Callable[[Numbers, Signal, Array, Array], Array], base: Sensor = instants
) -> Sensor:
    """Return a sensor whose readings are spoilt: (random numbers, signal, t, watts) -> watts."""

    def read(rng: Numbers, signal: Signal) -> Samples:
        good = base(rng, signal)
        watts = spoil(rng, signal, good.t_s, good.power_w.copy())
        return Samples(good.t_s, {"power_module_w": watts}, good.told)

    return read


def lost(share: float) -> Callable[..., Array]:
    """Return a fault that loses a share of the readings at random."""
    return lambda rng, signal, t, watts: np.where(rng.random(t.size) < share, math.nan, watts)


def lost_above(share: float) -> Callable[..., Array]:
    """Return a fault that loses a share of the readings above the middle of the power."""

    def spoil(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
        level_w = (watts.min() + watts.max()) / 2
        return np.where((watts > level_w) & (rng.random(t.size) < share), math.nan, watts)

    return spoil


def vanished(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
    """Lose all readings after 60 % of the window."""
    at_s = signal.start_s + 0.6 * (signal.end_s - signal.start_s)
    return np.where(t > at_s, math.nan, watts)


def stuck(first: float, last: float) -> Callable[..., Array]:
    """Return a fault that repeats a value in a part of the window."""

    def spoil(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
        length_s = signal.end_s - signal.start_s
        since, until = np.searchsorted(t, signal.start_s + length_s * np.array([first, last]))
        watts[since:until] = watts[min(since, t.size - 1)]
        return watts

    return spoil


def freezes(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
    """Repeat a value three to seven times now and then."""
    share = rng.uniform(0.01, 0.05)
    for start in np.flatnonzero(rng.random(t.size) < share):
        watts[start : start + rng.integers(3, 8)] = watts[start]
    return watts


def outliers(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
    """Tell full scale now and then."""
    return np.where(rng.random(t.size) < 0.005, 4 * watts.max(), watts)


def negative(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
    """Tell one negative power."""
    watts[rng.integers(t.size)] = -0.04
    return watts


def dropout(rng: Numbers, signal: Signal, t: Array, watts: Array) -> Array:
    """Lose all readings for up to 3 s."""
    at_s, length_s = rng.uniform(signal.start_s, signal.end_s), rng.uniform(0.3, 3)
    return np.where((t > at_s) & (t < at_s + length_s), math.nan, watts)


TAU_S = 64 * 0.00084  # JetPack 4's setting, one channel
SENSORS: dict[str, Sensor] = {
    "instants, 10 Hz": instants,
    "instants, 10 Hz, nothing told": simple(is_told=False),
    "INA3221, 54 ms mean": simple(TAU_S),
    "INA3221, 54 ms register": register(TAU_S, TAU_S),
    "INA3221, 161 ms register (3 channels)": register(3 * TAU_S, 3 * TAU_S),
    "INA3221, 1 x 3.3 ms register": register(0.0033, 0.0033),
    "INA3221, 64 x 6.6 ms": simple(64 * 0.0066),
    "INA3221, 512 x 6.6 ms register": register(512 * 0.0066, 512 * 0.0066),
    "INA3221, filter, 16 x 0.84 ms": filtered(0.00084, 16),
    "INA3221, filter, 64 x 6.6 ms": filtered(0.0066, 64),
    "INA3221, filter, 1024 x 3.5 ms": filtered(0.0035, 1024),
    "register mean, 100 ms": register(0.1, 0.1),
    "held instants, 50 ms": register(0.05),
    "held instants, 75 ms": register(0.075),
    "held instants, 100 ms": register(0.1),
    "held instants, 1 s": register(1.0),
    "held instants, 1 s, nothing told": register(1.0, known=False),
    "mean over 1 s (NVML)": simple(1.0),
    "NVML, 25 of 100 ms": register(0.1, 0.025),
    "NVML, 20 ms": register(0.02, 0.02),
    "jtop, 1 Hz, instants": simple(0.0, regular),
    "jtop, 1 Hz, 54 ms": simple(TAU_S, regular),
    "tegrastats, 1 Hz, 161 ms": simple(3 * TAU_S, regular),
    "jtop, old record": copied,
    "AGX Xavier, six rails, no noise": stepped(6, 19.4, 0.0, False),
    "AGX Xavier, six rails, 30 mW": stepped(6, 19.4, 0.03, False),
    "AGX Xavier, six rails, cut off": stepped(6, 19.4, 0.03, True),
    "Nano, one rail at 5 V, cut off": stepped(1, 5.0, 0.01, True),
}
FAULTS: dict[str, Sensor] = {
    "5 % lost at random": faulty(lost(0.05)),
    "30 % lost at random": faulty(lost(0.3)),
    "40 % lost under load": faulty(lost_above(0.4)),
    "10 % lost under load": faulty(lost_above(0.1)),
    "all lost under load": faulty(lost_above(1.0)),
    "vanishes at 60 %": faulty(vanished),
    "3 s dropout": faulty(dropout),
    "stuck from 30 to 70 %": faulty(stuck(0.3, 0.7)),
    "stuck throughout": faulty(stuck(-0.1, 1.1)),
    "jtop stuck from 30 to 70 %": faulty(stuck(0.3, 0.7), simple(0.0, regular)),
    "short freezes": faulty(freezes),
    "full-scale outliers": faulty(outliers),
    "one negative reading": faulty(negative),
    "1 Hz, vanishes at 60 %": faulty(vanished, simple(0.0, regular)),
}
