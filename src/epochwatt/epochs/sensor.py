"""Find the instants that power readings stand for: from the record, else from the readings.

A reading is the power of an instant, a mean over the time that ends at its stamp, or a value that
the sensor renews now and then and repeats in between. `telemetry.json` says which
(`settings.sensor`); older records do not, and then only what the readings show is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.board.records.shapes import Document
from epochwatt.epochs.windows import Array, cleaned, distinct, typical_step_s
from epochwatt.errors import RecordError

INSTANT, MEAN, HELD = "instant", "mean", "held"
AGE = "sample_age_s"  # of records before the stamps were those of the samples
SAME_SAMPLE_S = 0.2  # ASSUME: a service's samples are further apart than their ages are uncertain
Z = 2.15  # of all that is random (energy_error)
DISTINCT_SHARE = 0.5  # of runs with another value than those before: the values are not levels
REPEATED_SHARE = 0.3  # of readings that repeat the one before: the sensor is slower than we are
MIN_DISTINCT = 8  # values; fewer say little about a sensor's resolution
FINEST_W = 1e-6  # a step that does not matter
JITTER_SHARE = 0.002  # of power: a voltage that moves by its own step blurs a level by less


@dataclass(frozen=True)
class Sensor:
    """The way in which a sensor reads.

    `reads`: INSTANT, MEAN or HELD; None: not known
    `averaging_s`: length of its own averaging, or twice the mean age of what a filter gives, s;
    None: not known
    `update_s`: time between two new values, s; None: not known, or one at each reading
    `rounding_w`: how far the mean of many readings may be off by their steps, W; None: not known
    `calibrated_w`: part of that which its maker counts as offset: a matter of calibration
    `estimated`: whether `update_s` was taken from the readings
    """

    reads: str | None = None
    averaging_s: float | None = None
    update_s: float | None = None
    rounding_w: float | None = None
    calibrated_w: float = 0.0
    estimated: bool = False

    @property
    def steps_off_w(self) -> float:
        """Return how far the steps take the mean of many readings off, calibration apart, W."""
        return (self.rounding_w or 0.0) - self.calibrated_w

    @property
    def mean_s(self) -> float:
        """Time over which a value is a mean, s; 0 where that is not known."""
        return self.averaging_s or 0.0

    @property
    def hold_s(self) -> float:
        """Time for which a value is repeated, s."""
        return self.update_s or 0.0 if self.reads in (HELD, MEAN) else 0.0

    @property
    def known_reach_s(self) -> float | None:
        """Return how far a reading reaches back from its stamp, s; None where that is not known.

        A filter of first order, tau / 2 old on average, has 2 % of its weight beyond 2 tau.
        """
        if self.reads == INSTANT:
            return 2 * self.mean_s
        if self.averaging_s is None or (self.reads == HELD and self.update_s is None):
            return None
        return 2 * self.mean_s + self.hold_s if self.reads is not None else None


def sensor_in(
    source: Document, table: Mapping[str, Array], window_s: tuple[float, float]
) -> Sensor:
    """Return the `Sensor` of a source, as far as its record and its samples tell.

    `table`: its samples by column, float (n,); `window_s`: only the readings inside say whether a
    rail's power moves by more than its step
    """
    sensor = recorded_sensor(source)
    steps = {name: step for name, step in (sensor.get("step_w") or {}).items() if name in table}
    inside = (table["t_mono_s"] >= window_s[0]) & (table["t_mono_s"] <= window_s[1])
    rounding_w, calibrated_w = None, 0.0
    if steps and None not in steps.values():
        rails = [table[name][inside] for name in steps]
        steps_w = [float(step) for step in steps.values()]
        rounding_w = rounding_of_sum_w(rails, steps_w)
        calibrated_w = sum(steps_w) / 2 if sensor.get("is_centred") else 0.0
    return Sensor(
        sensor.get("reads"),
        sensor.get("averaging_s"),
        sensor.get("update_s"),
        rounding_w=rounding_w,
        calibrated_w=calibrated_w,
    )


def recorded_sensor(source: Document) -> Document:
    """Return what a record says of a source's sensor; nothing where it is older than that."""
    return (source.get("settings") or {}).get("sensor") or {}


def rounding_of_sum_w(rails: Sequence[Array], steps_w: Sequence[float]) -> float:
    """Return how far the mean of a sum of rails may be off by the rails' resolution, W.

    Whether a sensor rounds or cuts off is not known: to cut off takes half a step from each rail,
    whatever its noise. Beside that, readings of one step are all off by the same, up to half of
    one, evenly spread: so is the mean where a rail keeps to a step, less where it is on many.

    `rails`: float (n,) each, W; NaN: no reading
    """
    variance_w2 = 0.0
    for power, step_w in zip(rails, steps_w):
        codes = np.sort(np.round(power[np.isfinite(power)] / step_w))
        bounds = np.flatnonzero(np.diff(codes, prepend=-math.inf, append=math.inf))
        shares = np.diff(bounds) / max(codes.size, 1)
        variance_w2 += step_w**2 / 12 * (float(shares @ shares) or 1.0)
    half_w = sum(steps_w) / 2
    return half_w + min(half_w, Z * math.sqrt(variance_w2))


def rounding_seen_w(power: Array) -> float | None:
    """Return the same for one rail of unknown step, judged by its values, W; None: too few of them.

    The step is at most the smallest between two values, except those that the step of a voltage
    makes. Of few values that is a wide limit; where all of them may be of one step, there is none.
    """
    levels = distinct(power)
    gaps = np.diff(levels)
    steps = gaps[gaps > JITTER_SHARE * levels[1:]]  # without those of a voltage
    if levels.size < MIN_DISTINCT and not steps.size:
        return None
    use_steps = steps.size > 1 or levels.size < MIN_DISTINCT
    step_w = max(float(steps.min() if use_steps else gaps.min()), FINEST_W)
    return rounding_of_sum_w([power], [step_w])


def sampled(
    t_s: ArrayLike, power_w: ArrayLike, age_s: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the instant and power of each reading that was tried; power below zero becomes NaN.

    With `age_s`, how old a service's sample was, each sample is returned once, when it was taken.

    Raises RecordError: stamps and readings differ in number.
    """
    t, power = np.asarray(t_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
    if t.shape != power.shape:
        raise RecordError(f"{t.shape} stamps for {power.shape} readings: not one column each")
    power = np.where(power < 0, math.nan, power)
    if age_s is None:
        return t, power
    age = np.asarray(age_s, dtype=np.float64)
    t = t - np.where(np.isfinite(age), age, 0.0)
    # the stamp of a reading without age is that of the try; it may lie before a sample's
    order = np.argsort(t, kind="stable")
    t, power = t[order], power[order]
    new = np.diff(t, prepend=-math.inf) > SAME_SAMPLE_S
    return t[new], power[new]


def readings(
    t_s: ArrayLike, power_w: ArrayLike, sensor: Sensor, age_s: ArrayLike | None = None
) -> tuple[Array, Array, Array, Sensor]:
    """Return the sensor's readings, each value once and at the middle of the time that it covers.

    `t_s`: float (n,), s, ascending
    `power_w`: float (n,), W; NaN or below zero: no reading
    `age_s`: float (n,), s, or None; how old a reading of a service was at its stamp

    Returns
    -------
    t_s, power_w : float (m,), strictly ascending
    tried_s : float (k,), the instants at which it was tried, those without a reading included
    sensor : with what the readings show where it was not known

    Raises RecordError: stamps run backward, or stamps and readings differ in number.
    """
    t, power = sampled(t_s, power_w, age_s)
    tried = distinct(t)
    t, power = cleaned(t, power)
    sensor = recognised(tried, power, sensor)
    if sensor.estimated:
        return t, power, tried, sensor  # not well enough to move or leave out a reading
    if sensor.hold_s > 1.5 * typical_step_s(tried) > 0 and t.size:
        # one reading and one try of each value: more would count it twice
        is_first = np.diff(np.floor((t - t[0]) / sensor.hold_s), prepend=-1.0) > 0
        t, power = t[is_first], power[is_first]
        update = np.floor((tried - tried[0]) / sensor.hold_s)
        tried = tried[np.diff(update, prepend=-1.0) > 0]
    back_s = (sensor.mean_s + sensor.hold_s) / 2
    return t - back_s, power, tried - back_s, sensor


def recognised(tried: Array, power: Array, sensor: Sensor) -> Sensor:
    """Return the sensor, with `update_s` estimated from repeated readings where it is not known."""
    unknown = sensor.reads is None or (sensor.reads == HELD and sensor.update_s is None)
    if not unknown or power.size < MIN_DISTINCT or tried.size < 2:
        return sensor
    is_new = np.append(True, np.diff(power) != 0)
    n_runs = int(is_new.sum())
    repeated_share = 1.0 - n_runs / power.size
    if n_runs < MIN_DISTINCT or repeated_share < REPEATED_SHARE:
        return sensor
    if distinct(power[is_new]).size < DISTINCT_SHARE * n_runs:  # levels of the load
        return sensor
    update_s = float(tried[-1] - tried[0]) / n_runs
    return replace(sensor, reads=HELD, update_s=update_s, estimated=True)
