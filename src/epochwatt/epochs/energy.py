"""Compute an epoch's energy from samples of power, or of a counter: arrays in, numbers out.

`windows` says what samples are and what lies between them, `sensor` of which instants a reading
tells, `energy_error` how far the energy may be from the truth, `stalls` takes the stalls' part.
Nothing here gives power back, so a reading below zero is a failed one: no reading, and flagged.
(Meters say -2 W for "no answer".)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.epochs import energy_error
from epochwatt.epochs.sensor import Sensor, readings, rounding_seen_w
from epochwatt.epochs.windows import (
    Array,
    around,
    check_window,
    cleaned,
    distinct,
    typical_step_s,
    weights_s,
)

J_PER_WH = 3600.0
TICK_S = 1.0  # period of the papers' logger
LOGGER_SHARE = 0.75  # of that: the steps of samples that are a logger's themselves
UNKNOWN = Sensor()


@dataclass(frozen=True)
class Energy:
    """Energy inside a window.

    `energy_j`: by trapezoid, J; NaN where there is no reading at all
    `error_pct`: half width of an interval that holds the true integral in at least 95 of 100 cases,
    % of `energy_j`; NaN where nothing can be said (`energy_error.bound_j`)
    `flags`: `power_missing`: no reading at all; `power_negative`: readings below zero, left out;
    `power_gap`: none for more than three periods; `power_lost`: none in over a tenth of the window;
    `power_end_held`: none on or beyond a bound, the nearest is held; `power_sampling_regular`: not
    sampled at random instants; `power_stuck`: one value for so long that the sensor cannot have
    read it; `power_still`: the same of a sensor whose steps are coarse, so that the load may have
    rested; `power_resolution_unknown`: too few different values to see the sensor's resolution, no
    `error_pct`
    """

    energy_j: float
    error_pct: float
    flags: frozenset[str]


def trapezoid(
    t_s: ArrayLike,
    power_w: ArrayLike,
    start_s: float,
    end_s: float,
    sensor: Sensor = UNKNOWN,
    age_s: ArrayLike | None = None,
    minibatch_starts_s: ArrayLike | None = None,
    stall_ends_s: ArrayLike | None = None,
) -> Energy:
    """Integrate power over a window by trapezoid, and bound the error; interpolates at its bounds.

    The samples beyond the bounds are needed for that and used; where there is none the nearest
    reading is held level.

    `t_s`: float (n,), s, ascending
    `power_w`: float (n,), W; NaN or below zero: no reading
    `start_s`, `end_s`: bounds of the window, s
    `sensor`: how it reads; what is not known of it is taken from the readings
    `age_s`: float (n,), s; how old a reading of a service was at its stamp
    `minibatch_starts_s`: float (m,), s; when a training loop's mini-batches began: (0,) where none
    ran; None: not known, and then there is no bound for regular instants
    `stall_ends_s`: float (m,), s; when their stalls ended; None: as if there were none

    Raises RecordError when stamps run backward or the window is empty.
    """
    check_window(start_s, end_s)
    t, power, tried, sensor = readings(t_s, power_w, sensor, age_s)
    stamps, reported_w = np.asarray(t_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
    flags = {
        "power_negative": ((reported_w < 0) & (stamps >= start_s) & (stamps <= end_s)).any(),
        "power_missing": t.size == 0,
    }
    if t.size == 0:
        return Energy(math.nan, math.nan, _true_flags(flags))
    if sensor.rounding_w is None:
        sensor = replace(sensor, rounding_w=rounding_seen_w(power))
    period_s = typical_step_s(tried)
    t, power = around(t, power, start_s, end_s)
    lost_s = energy_error.lost_s(t, tried, start_s, end_s, period_s)
    around_window = energy_error.Readings(t, power, start_s, end_s, period_s, lost_s, sensor)
    if minibatch_starts_s is not None:
        starts = np.asarray(minibatch_starts_s, dtype=np.float64)
        ends = starts if stall_ends_s is None else np.asarray(stall_ends_s, dtype=np.float64)
        around_window = replace(around_window, minibatch_starts_s=starts, stall_ends_s=ends)
    unread_s = np.append(np.diff(t), [t[0] - start_s, end_s - t[-1]])  # bounds last
    inside_w = around_window.inside_w
    stuck = bool(inside_w.size) and energy_error.is_stuck(inside_w)
    coarse = stuck and energy_error.is_coarse(inside_w, sensor.rounding_w)
    flags.update(
        {
            "power_gap": energy_error.is_gap(unread_s, period_s).any(),
            "power_lost": lost_s > energy_error.LOST * around_window.length_s,
            # of a mean, or of a value that is repeated, the middle lies before the stamp
            "power_end_held": (unread_s[-2:] > (sensor.mean_s + sensor.hold_s) / 2).any(),
            "power_sampling_regular": energy_error.is_regular(unread_s[:-2], period_s),
            "power_stuck": stuck and not coarse,
            "power_still": stuck and coarse,
            "power_resolution_unknown": sensor.rounding_w is None,
        }
    )
    energy_j = float(weights_s(t, start_s, end_s) @ power)
    bound_j = math.nan if stuck else energy_error.bound_j(around_window)
    return Energy(
        energy_j, 100.0 * bound_j / abs(energy_j) if energy_j else math.nan, _true_flags(flags)
    )


def _true_flags(flags: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the flags that hold."""
    return frozenset(name for name, is_so in flags.items() if is_so)


class Counted(NamedTuple):
    """Energy, J, and how far it may be off, %."""

    energy_j: float
    error_pct: float


def counted(
    t_s: ArrayLike,
    counter_j: ArrayLike,
    start_s: float,
    end_s: float,
    update_s: float | None = None,
) -> Counted:
    """Return by how much an energy counter went up within a window, and how far that may be off.

    Nothing is lost between readings; only the ends are uncertain. A counter that is renewed each
    `update_s` tells the energy up to a moment that may be so long ago: as much at either end, in
    opposite senses, so at most the highest power seen for one such time. Between the readings
    around a bound the line is taken: of a step of g s at most the swing of the power times g / 4
    is on the wrong side. And each of the two values has its own step.

    `t_s`: float (n,), s, ascending
    `counter_j`: float (n,), J; NaN: no reading
    `start_s`, `end_s`: bounds of the window, s
    `update_s`: time between two values of the counter, s; None: as the readings show it

    Returns
    -------
    energy_j : J; NaN where readings do not reach from one bound to the other, or the counter fell
    error_pct : %; NaN where the counter did not move

    Raises RecordError when stamps run backward or the window is empty.
    """
    t, counter = cleaned(t_s, counter_j)
    check_window(start_s, end_s)
    if t.size == 0 or t[0] > start_s or t[-1] < end_s:
        return Counted(math.nan, math.nan)
    t, counter = around(t, counter, start_s, end_s)
    if (np.diff(counter) < 0).any():
        return Counted(math.nan, math.nan)
    first_j, last_j = np.interp([start_s, end_s], t, counter)
    energy_j = float(last_j - first_j)
    if not energy_j > 0:
        return Counted(energy_j, math.nan)
    moved = np.append(True, np.diff(counter) > 0)
    steps_s, rises_j = np.diff(t[moved]), np.diff(counter[moved])
    if update_s is None:  # as often as it moved, or more often than it was read
        update_s = float(steps_s.max())
    # over less than an update the rise is that of all of it
    highest_w = float((rises_j / np.maximum(steps_s, update_s)).max())
    ends_s = float(t[1] - t[0] + t[-1] - t[-2])
    bound_j = highest_w * (update_s + ends_s / 4) + float(rises_j.min())
    return Counted(energy_j, 100.0 * bound_j / energy_j)


def paper_energy_wh(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the papers' energy, Wh: the sum of p_i (t_i - t_(i-1)) at 1 Hz, from faster samples.

    What a 1 Hz logger would have written is picked out: for each whole second of the clock from
    `start_s` to `end_s` the reading nearest to it, inside the window and at most half a second
    away. A second without one is skipped, as a late logger would, and no reading counts twice.
    Readings that come no faster than a logger's are those of a logger: all of them are taken. The
    first one picked has no predecessor in the window, so the time up to it is lost, and so is the
    time after the last: a second per window on average.

    Arguments and errors as of `trapezoid`; the clock of `t_s` says when a second is whole. NaN
    where fewer than two readings were picked.

    Source: SIGMETRICS 2023, section 4.5.
    """
    t, power = _logger_readings(t_s, power_w, start_s, end_s)
    return float(power[1:] @ np.diff(t)) / J_PER_WH if t.size > 1 else math.nan


def paper_missing_pct(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the share of a window that the papers' sum has no reading for, %.

    What lies before the first reading picked or after the last, and of a longer step all but two
    seconds, or two steps of a slower sensor: samples are thinned out where an epoch takes hours.
    Arguments as for `paper_energy_wh`.
    """
    t, _ = _logger_readings(t_s, power_w, start_s, end_s)
    step_s = max(TICK_S, typical_step_s(distinct(np.asarray(t_s, dtype=np.float64))))
    covered_s = float(np.diff(t).clip(max=2 * step_s).sum()) if t.size > 1 else 0.0
    return 100.0 * (1.0 - covered_s / (end_s - start_s))


def _logger_readings(
    t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float
) -> tuple[Array, Array]:
    """Return stamps and power of the readings that a 1 Hz logger would have written."""
    power = np.asarray(power_w, dtype=np.float64)
    t, power = cleaned(t_s, np.where(power < 0, math.nan, power))
    check_window(start_s, end_s)
    inside = (t >= start_s) & (t <= end_s)
    t, power = t[inside], power[inside]
    if t.size < 2 or typical_step_s(t) > LOGGER_SHARE * TICK_S:
        return t, power
    tick_s = np.arange(math.ceil(start_s / TICK_S), math.floor(end_s / TICK_S) + 1) * TICK_S
    later = np.clip(np.searchsorted(t, tick_s), 1, t.size - 1)
    nearest = np.where(tick_s - t[later - 1] <= t[later] - tick_s, later - 1, later)
    close = nearest[np.abs(t[nearest] - tick_s) <= TICK_S / 2]  # ascending
    picked = close[np.diff(close, prepend=-1) > 0]
    return t[picked], power[picked]
