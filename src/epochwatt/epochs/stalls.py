"""Compute the energy of an epoch's stalls, where the sensor can tell stall from rest.

A reading covers the time from its stamp back to `Sensor.known_reach_s`. One that reaches over the
bound of a stall says nothing about either side and is left out; the others give the power of a
stall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.epochs import energy_error
from epochwatt.epochs.energy_error import Readings
from epochwatt.epochs.sensor import Sensor, rounding_seen_w, sampled
from epochwatt.epochs.windows import Array, check_window, cleaned, distinct, typical_step_s
from epochwatt.errors import RecordError

OVERLAP_S = 1e-6  # durations are kept as float32
MIN_READINGS = 8  # in stalls; fewer say nothing of their spread
ROOM = 1.25  # times the reach; a shorter stall has too few instants that are all its own
BEYOND = 0.02  # of a filter's weight lies further back than the reach
MOST_PCT = 50.0  # a bound beyond it resolves nothing


@dataclass(frozen=True)
class StallEnergy:
    """Energy inside the stalls of a window.

    `energy_j`: J; NaN where the sensor cannot tell, see `reason`
    `error_pct`: half width of an interval that holds the true energy in at least 95 of 100 cases, %
    of `energy_j`
    `reason`: why there is none; empty where there is one
    """

    energy_j: float
    error_pct: float
    reason: str = ""


def stall_energy(
    t_s: ArrayLike,
    power_w: ArrayLike,
    window_s: tuple[float, float],
    stalls_s: tuple[ArrayLike, ArrayLike],
    sensor: Sensor,
    age_s: ArrayLike | None = None,
    slack_s: float = 0.0,
) -> StallEnergy:
    """Return the energy that was spent in stalls: their time at the mean power of their readings.

    With random instants there is no bias however short a stall is, as long as a reading tells of
    less. A stall of d s has d - reach seconds of instants that are all its own, so a reading in it
    counts d / (d - reach) times; those too short for that are bounded by the power's swing.

    `t_s`: float (n,), s, ascending
    `power_w`: float (n,), W; NaN or below zero: no reading
    `window_s`: its start and end, s
    `stalls_s`: starts and ends, float (m,), s, in order and without overlap
    `age_s`: float (n,), s; how old a reading of a service was at its stamp
    `slack_s`: how far the bounds of the stalls may be off against the readings, s

    Raises RecordError when stamps run backward, the window is empty, or stalls are out of order.
    """
    check_window(*window_s)
    starts, ends = _clipped(*stalls_s, window_s)
    t, power = sampled(t_s, power_w, age_s)
    tried = distinct(t)
    n_tried = int(((tried >= window_s[0]) & (tried <= window_s[1])).sum())
    t, power = cleaned(t, power)
    inside = (t >= window_s[0]) & (t <= window_s[1])
    failed_share = 1.0 - float(inside.sum()) / max(n_tried, 1)
    reach_s = sensor.known_reach_s
    if reach_s is None:
        return _unresolved("how far back a reading reaches is not known")
    if not inside.any() or failed_share > energy_error.LOST or energy_error.is_stuck(power[inside]):
        return _unresolved("the sensor failed")
    if not (ends > starts).any():
        return StallEnergy(0.0, math.nan)
    if sensor.rounding_w is None:
        sensor = replace(sensor, rounding_w=rounding_seen_w(power))
    period_s = typical_step_s(tried)
    readings = Readings(t[inside], power[inside], *window_s, period_s, 0.0, sensor, starts)
    weights = _stall_weights(readings.t_s, starts, ends, reach_s + slack_s, slack_s)
    length_s = ends - starts
    short_s = float(length_s[length_s < ROOM * (reach_s + 2 * slack_s)].sum())
    return _stall_mean(readings, weights, failed_share, float(length_s.sum()), short_s)


def _stall_mean(
    readings: Readings, weights: Array, failed_share: float, stall_s: float, short_s: float
) -> StallEnergy:
    """Return the stalls' energy and its bound from weighted readings; NaN and `reason`: unresolved.

    The bound has, as that of all energy, the spread of what was read and what no reading met, in
    squares, and possible biases: rounding, lost readings, stalls too short, regular instants, what
    a filter keeps from before its reach.
    """
    if readings.sensor.rounding_w is None:
        return _unresolved("the sensor's resolution is not known")
    has_weight = weights > 0
    t, step_s = readings.t_s[has_weight], max(readings.period_s, readings.sensor.hold_s)
    n = t.size  # that do not repeat the value before
    if n and step_s > 0:
        n = int(1 + (np.diff(np.floor((t - t[0]) / step_s)) > 0).sum())
    if n < MIN_READINGS:
        return _unresolved("too few readings are of stalls alone")
    power, weights = readings.power_w[has_weight], weights[has_weight]
    mean_w = float(weights @ power / weights.sum())
    variance_w2 = float(weights**2 @ (power - mean_w) ** 2) / float(weights.sum()) ** 2
    sd_w = math.sqrt(variance_w2 * power.size / (n - 1))
    unseen_w = energy_error.UNSEEN / n * readings.swing_w
    share = short_s / stall_s + energy_error.regular_share(readings) * readings.length_s / stall_s
    share += BEYOND if readings.sensor.mean_s else 0.0
    bias_w = readings.sensor.steps_off_w + share * readings.swing_w
    bias_w += failed_share * energy_error.lost_w(readings.power_w, mean_w)
    bound_w = math.hypot(energy_error.student(n) * sd_w, unseen_w) + bias_w
    if not 0 < bound_w <= MOST_PCT / 100.0 * mean_w:
        return _unresolved("the bound is beyond half of the energy")
    return StallEnergy(stall_s * mean_w, 100.0 * bound_w / mean_w)


def _unresolved(reason: str) -> StallEnergy:
    return StallEnergy(math.nan, math.nan, reason)


def _clipped(
    starts_s: ArrayLike, ends_s: ArrayLike, window_s: tuple[float, float]
) -> tuple[Array, Array]:
    """Return starts and ends of stalls, cut to the window; RecordError: they are out of order."""
    starts, ends = np.asarray(starts_s, dtype=np.float64), np.asarray(ends_s, dtype=np.float64)
    if starts.ndim != 1 or starts.shape != ends.shape or not (starts <= ends).all():
        raise RecordError(f"{starts.shape} starts and {ends.shape} ends are not intervals")
    if (starts[1:] < ends[:-1] - OVERLAP_S).any():
        raise RecordError("stalls overlap or are out of order")
    return starts.clip(*window_s), ends.clip(*window_s)


def _stall_weights(t: Array, starts: Array, ends: Array, reach_s: float, slack_s: float) -> Array:
    """Return the weight of each reading in the stalls' mean, 0 where it reaches out of a stall."""
    stall = (np.searchsorted(starts, t, side="right") - 1).clip(min=0)
    length_s = ends[stall] - starts[stall]
    own_s = length_s - reach_s - slack_s
    is_own = (t >= starts[stall] + reach_s) & (t < ends[stall] - slack_s)
    is_own &= length_s >= ROOM * (reach_s + slack_s)
    return np.where(is_own, length_s / np.maximum(own_s, 1e-9), 0.0)
