"""Compute an epoch's energy from samples of power: arrays in, numbers out.

`windows` says what samples are and what lies between them, `sensor` of which instants a reading
tells, `energy_error` how far the energy may be from the truth, `counter` takes it from a sensor
that counts, `stalls` takes the stalls' part. Nothing here gives power back, so a reading below zero
is a failed one: no reading, and flagged. (Meters say -2 W for "no answer".)
"""

import math
from dataclasses import dataclass, replace

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

    Parameters
    ----------
    energy_j : by trapezoid, J; NaN where there is no reading at all
    error_pct : half width of an interval that holds the true integral in at least 95 of 100 cases,
        % of `energy_j`; NaN where nothing can be said (`energy_error.bound_j`)
    flags : `power_missing`: no reading at all; `power_negative`: readings below zero, left out;
        `power_gap`: none for more than three periods; `power_lost`: none in over a tenth of the
        window; `power_end_held`: none on or beyond a bound, the nearest is held;
        `power_sampling_regular`: not sampled at random instants; `power_stuck`: one value for so
        long that the sensor cannot have read it; `power_still`: the same of a sensor whose steps
        are coarse, so that the load may have rested; `power_resolution_unknown`: too few different
        values to see the sensor's resolution, no `error_pct`
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
    """Integrate power over a window by trapezoid, with both ends interpolated to its bounds.

    The samples beyond the bounds are needed for that and used; where there is none the nearest
    reading is held level.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    power_w : float (n,), W; NaN or below zero: no reading
    start_s, end_s : bounds of the window, s
    sensor : how it reads; what is not known of it is taken from the readings
    age_s : float (n,), s; how old a reading of a service was at its stamp
    minibatch_starts_s : float (m,), s; when a training loop's mini-batches began: (0,) where none
        ran; None: not known, and then there is no bound for regular instants
    stall_ends_s : float (m,), s; when their stalls ended; None: as if there were none

    Raises RecordError when stamps run backward or the window is empty.
    """
    check_window(start_s, end_s)
    flags = _negative(t_s, power_w, start_s, end_s)
    t, power, tried, sensor = readings(t_s, power_w, sensor, age_s)
    if t.size == 0:
        flags |= {"power_missing"}
        return Energy(math.nan, math.nan, flags)
    read = _around(t, power, tried, (start_s, end_s), sensor)
    if minibatch_starts_s is not None:
        starts = np.asarray(minibatch_starts_s, dtype=np.float64)
        ends = starts if stall_ends_s is None else np.asarray(stall_ends_s, dtype=np.float64)
        read = replace(read, minibatch_starts_s=starts, stall_ends_s=ends)
    return _integrated(read, flags)


def _around(
    t: Array,
    power: Array,
    tried: Array,
    window_s: tuple[float, float],
    sensor: Sensor,
) -> energy_error.Readings:
    """Return the readings in a window and one beyond each bound, with what is missing of them."""
    if sensor.rounding_w is None:
        sensor = replace(sensor, rounding_w=rounding_seen_w(power))
    period_s = typical_step_s(tried)
    t, power = around(t, power, *window_s)
    lost_s = energy_error.lost_s(t, tried, *window_s, period_s)
    return energy_error.Readings(t, power, *window_s, period_s, lost_s, sensor)


def _integrated(read: energy_error.Readings, flags: frozenset[str]) -> Energy:
    """Return the energy of readings around a window, with the flags that there are already."""
    energy_j = float(weights_s(read.t_s, read.start_s, read.end_s) @ read.power_w)
    flags |= _flags(read)
    still = flags & {"power_stuck", "power_still"}
    bound_j = math.nan if still else energy_error.bound_j(read)
    error_pct = 100.0 * bound_j / abs(energy_j) if energy_j else math.nan
    return Energy(energy_j, error_pct, flags)


def _negative(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> frozenset[str]:
    """Return the flag of readings below zero inside the window, or nothing."""
    t, power = np.asarray(t_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
    is_negative = t.shape == power.shape and ((power < 0) & (t >= start_s) & (t <= end_s)).any()
    return frozenset({"power_negative"} if is_negative else ())


def _flags(read: energy_error.Readings) -> frozenset[str]:
    """Return what speaks for caution with these readings."""
    t = read.t_s
    unread_s = np.append(np.diff(t), [t[0] - read.start_s, read.end_s - t[-1]])  # bounds last
    gap = energy_error.is_gap(unread_s, read.period_s)
    inside_w = read.inside_w
    stuck = bool(inside_w.size) and energy_error.is_stuck(inside_w)
    coarse = stuck and energy_error.is_coarse(inside_w, read.sensor.rounding_w)
    seen = {
        "power_gap": gap.any(),
        "power_lost": read.lost_s > energy_error.LOST * read.length_s,
        # of a mean, or of a value that is repeated, the middle lies before the stamp
        "power_end_held": (unread_s[-2:] > (read.sensor.mean_s + read.sensor.hold_s) / 2).any(),
        "power_sampling_regular": energy_error.is_regular(unread_s[:-2], read.period_s),
        "power_stuck": stuck and not coarse,
        "power_still": stuck and coarse,
        "power_resolution_unknown": read.sensor.rounding_w is None,
    }
    return frozenset(name for name, is_so in seen.items() if is_so)


def paper_energy_wh(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the papers' energy, the sum of p_i (t_i - t_(i-1)) at 1 Hz, from faster samples.

    What a 1 Hz logger would have written is picked out: for each whole second of the clock from
    `start_s` to `end_s` the reading nearest to it, inside the window and at most half a second
    away. A second without one is skipped, as a late logger would, and no reading counts twice.
    Readings that come no faster than a logger's are those of a logger: all of them are taken. The
    first one picked has no predecessor in the window, so the time up to it is lost, and so is the
    time after the last: a second per window on average.

    Parameters
    ----------
    t_s : float (n,), s, ascending; its clock says when a second is whole
    power_w : float (n,), W; NaN or below zero: no reading
    start_s, end_s : bounds of the window, s

    Returns
    -------
    float : Wh; NaN where fewer than two readings were picked

    Raises RecordError when stamps run backward or the window is empty.

    Source: SIGMETRICS 2023, section 4.5.
    """
    t, power = _picked(t_s, power_w, start_s, end_s)
    return float(power[1:] @ np.diff(t)) / J_PER_WH if t.size > 1 else math.nan


def paper_missing_pct(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the share of a window that the papers' sum has no reading for, %.

    What lies before the first reading picked or after the last, and of a longer step all but two
    seconds, or two steps of a slower sensor: samples are thinned out where an epoch takes hours.
    Arguments as for `paper_energy_wh`.
    """
    t, _ = _picked(t_s, power_w, start_s, end_s)
    step_s = max(TICK_S, typical_step_s(distinct(np.asarray(t_s, dtype=np.float64))))
    covered_s = float(np.diff(t).clip(max=2 * step_s).sum()) if t.size > 1 else 0.0
    return 100.0 * (1.0 - covered_s / (end_s - start_s))


def _picked(
    t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float
) -> tuple[Array, Array]:
    """Return the readings that a 1 Hz logger would have written."""
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
