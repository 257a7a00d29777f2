"""The energy of an epoch and of its stalls, from samples of power: arrays in, numbers out.

`windows` says what samples are and what lies between them, `energy_error` how far that may be from
the truth. Power must be that of an instant: where a sensor counts energy itself (RAPL, NVML), its
counter is exact and `counter_energy_j` the way. Nothing here gives power back, so a reading below
zero is a failed one: no reading, and flagged. (Meters say -2 W for "no answer".)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.epochs import energy_error
from epochwatt.epochs.windows import (
    Array,
    around,
    check_window,
    cleaned,
    distinct,
    integral_to,
    weights_s,
)
from epochwatt.errors import RecordError

J_PER_WH = 3600.0
TICK_S = 1.0  # period of the papers' logger
OVERLAP_S = 1e-6  # durations are kept as float32


@dataclass(frozen=True)
class Energy:
    """Energy inside a window.

    Parameters
    ----------
    energy_j : by trapezoid, J; NaN where there is no reading at all
    error_pct : half width of an interval that holds the true integral in at least 95 of 100 cases,
        % of `energy_j`; NaN where fewer than five readings say too little
    n_samples : readings inside the window
    mean_period_s : mean step between these; NaN for fewer than two
    longest_gap_s : longest time without a reading that touches the window, s
    flags : `power_missing`: no reading at all; `power_negative`: readings below zero, left out;
        `power_gap`: none for more than three periods; `power_end_held`: none on or beyond a bound,
        the nearest is held; `power_sampling_regular`: not sampled at random instants, aliasing may
        add a bias that `error_pct` does not hold; `power_resolution_unknown`: too few different
        values to see the sensor's resolution, `error_pct` does not hold it
    """

    energy_j: float
    error_pct: float
    n_samples: int
    mean_period_s: float
    longest_gap_s: float
    flags: frozenset[str]


def trapezoid(
    t_s: ArrayLike,
    power_w: ArrayLike,
    start_s: float,
    end_s: float,
    resolution_w: float | None = None,
) -> Energy:
    """Integrate power over a window by trapezoid, with both ends interpolated to its bounds.

    The samples beyond the bounds are needed for that and used; where there is none the nearest
    reading is held level.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    power_w : float (n,), W; NaN or below zero: no reading
    start_s, end_s : bounds of the window, s
    resolution_w : step of the sensor's values, W; None: the smallest step seen between two of them

    Raises
    ------
    RecordError
        When stamps run backward or the window is empty.
    """
    t, power = _readings(t_s, power_w)
    check_window(start_s, end_s)
    flags = _negative(t_s, power_w, start_s, end_s)
    if t.size == 0:
        flags |= {"power_missing"}
        return Energy(math.nan, math.nan, 0, math.nan, end_s - start_s, flags)
    if resolution_w is None:
        resolution_w = energy_error.smallest_step_w(power)
    period_s = _period_s(t_s)
    t, power = around(t, power, start_s, end_s)
    energy_j = float(weights_s(t, start_s, end_s) @ power)
    window_s = (start_s, end_s)
    bound_j = energy_error.bound_j(t, power, window_s, period_s, resolution_w or 0.0)
    inside = t[(t >= start_s) & (t <= end_s)]
    unread_s = np.append(np.diff(t), [t[0] - start_s, end_s - t[-1]])
    return Energy(
        energy_j=energy_j,
        error_pct=100.0 * bound_j / abs(energy_j) if energy_j else math.nan,
        n_samples=inside.size,
        mean_period_s=float(np.ptp(inside)) / (inside.size - 1) if inside.size > 1 else math.nan,
        longest_gap_s=float(unread_s.max()),
        flags=flags | _flags(unread_s, period_s, resolution_w),
    )


def _readings(t_s: ArrayLike, power_w: ArrayLike) -> tuple[Array, Array]:
    """Return the samples with a reading of power."""
    power = np.asarray(power_w, dtype=np.float64)
    return cleaned(t_s, np.where(power < 0, math.nan, power))


def _negative(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> frozenset[str]:
    """Return the flag of readings below zero inside the window, or nothing."""
    t, power = np.asarray(t_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
    found = (power < 0) & (t >= start_s) & (t <= end_s)
    return frozenset({"power_negative"} if found.any() else ())


def _period_s(t_s: ArrayLike) -> float:
    """Return the typical step of the sampling, rows without a reading included; 0 for one row."""
    stamps = distinct(np.asarray(t_s, dtype=np.float64))
    return float(np.median(np.diff(stamps))) if stamps.size > 1 else 0.0


def _flags(unread_s: Array, period_s: float, resolution_w: float | None) -> frozenset[str]:
    """Return what is so; `unread_s`: steps between readings, then from and to the bounds."""
    gap = energy_error.is_gap(unread_s, period_s)
    seen = {
        "power_gap": gap.any(),
        "power_end_held": (unread_s[-2:] > 0).any(),
        "power_sampling_regular": energy_error.is_regular(unread_s[:-2][~gap[:-2]]),
        "power_resolution_unknown": resolution_w is None,
    }
    return frozenset(name for name, is_so in seen.items() if is_so)


def paper_energy_wh(t_s: ArrayLike, power_w: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the papers' energy, the sum of p_i (t_i - t_(i-1)) at 1 Hz, from faster samples.

    What a 1 Hz logger would have written is picked out: for each whole second of the clock from
    `start_s` to `end_s` the reading nearest to it, inside the window and at most half a second
    away. A second without one is skipped, as a late logger would, and no reading counts twice. The
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

    Raises
    ------
    RecordError
        When stamps run backward or the window is empty.

    Source: SIGMETRICS 2023, section 4.5.
    """
    t, power = _readings(t_s, power_w)
    check_window(start_s, end_s)
    inside = (t >= start_s) & (t <= end_s)
    t, power = t[inside], power[inside]
    if t.size < 2:
        return math.nan
    tick_s = np.arange(math.ceil(start_s / TICK_S), math.floor(end_s / TICK_S) + 1) * TICK_S
    later = np.clip(np.searchsorted(t, tick_s), 1, t.size - 1)
    nearest = np.where(tick_s - t[later - 1] <= t[later] - tick_s, later - 1, later)
    close = nearest[np.abs(t[nearest] - tick_s) <= TICK_S / 2]  # ascending
    picked = close[np.diff(close, prepend=-1) > 0]
    if picked.size < 2:
        return math.nan
    return float(power[picked[1:]] @ np.diff(t[picked])) / J_PER_WH


def counter_energy_j(t_s: ArrayLike, counter_j: ArrayLike, start_s: float, end_s: float) -> float:
    """Return by how much an energy counter went up within a window, J.

    Nothing is lost between readings; only the ends are interpolated.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    counter_j : float (n,), J; NaN: no reading
    start_s, end_s : bounds of the window, s

    Returns
    -------
    float : J; NaN where readings do not reach from one bound to the other, or the counter fell

    Raises
    ------
    RecordError
        When stamps run backward or the window is empty.
    """
    t, counter = cleaned(t_s, counter_j)
    check_window(start_s, end_s)
    if t.size == 0 or t[0] > start_s or t[-1] < end_s:
        return math.nan
    t, counter = around(t, counter, start_s, end_s)
    if (np.diff(counter) < 0).any():
        return math.nan
    first_j, last_j = np.interp([start_s, end_s], t, counter)
    return float(last_j - first_j)


def mean_power_w(energy_j: float, e2e_s: float) -> float:
    """Return energy / E2E, W."""
    return energy_j / e2e_s


# -- intervals inside the epoch ------------------------------------------------------------------


def interval_energy_j(
    t_s: ArrayLike, power_w: ArrayLike, starts_s: ArrayLike, ends_s: ArrayLike
) -> Array:
    """Return the energy inside each of many intervals, by trapezoid, in O((n + m) log n).

    Lines between samples smear what is shorter than a period of the sampling: an interval gets the
    mean of what is around it. For the stalls of mini-batches take `stall_energy_j`.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    power_w : float (n,), W; NaN or below zero: no reading
    starts_s, ends_s : float (m,), s, in any order

    Returns
    -------
    float (m,) : J; NaN where there is no reading at all

    Raises
    ------
    RecordError
        When stamps run backward, or an interval ends before it begins.
    """
    t, power = _readings(t_s, power_w)
    starts, ends = _intervals(starts_s, ends_s)
    if t.size == 0:
        return np.full(starts.shape, math.nan)
    return integral_to(t, power, ends) - integral_to(t, power, starts)


def stall_intervals(
    minibatch_s: ArrayLike, start_s: float, e2e_s: float, tail_s: float = 0.0
) -> tuple[Array, Array]:
    """Rebuild when an epoch stalled from the durations kept of its mini-batches.

    ASSUME: overhead lies behind each mini-batch in equal parts; only its sum is kept. Worker
    shut-down, one piece behind the last mini-batch, belongs into `tail_s`: spread evenly it would
    shift all mini-batches against the samples.

    Parameters
    ----------
    minibatch_s : float (n, 3), s: wait, copy, compute
    start_s : when the epoch began, s
    e2e_s : its length, s
    tail_s : part of it after the last mini-batch, s

    Returns
    -------
    starts, ends : float (n,), s: wait + copy of each mini-batch, in order

    Raises
    ------
    RecordError
        When the durations are not of shape (n, 3), or not finite.
    """
    durations_s = np.asarray(minibatch_s, dtype=np.float64)
    if durations_s.ndim != 2 or durations_s.shape[1] != 3 or not np.isfinite(durations_s).all():
        raise RecordError(f"mini-batch times {durations_s.shape} are not finite seconds (n, 3)")
    n = len(durations_s)
    busy_s = durations_s.sum(axis=1)
    overhead_s = (e2e_s - tail_s - busy_s.sum()) / max(n, 1)
    starts = start_s + np.append(0.0, np.cumsum(busy_s + overhead_s))[:n]
    return starts, starts + durations_s[:, :2].sum(axis=1)


def stall_energy_j(
    t_s: ArrayLike,
    power_w: ArrayLike,
    window_s: tuple[float, float],
    starts_s: ArrayLike,
    ends_s: ArrayLike,
) -> float:
    """Return the part of a window's energy (`trapezoid`) that was spent in stalls, J.

    A reading tells of stall or of rest by its instant. The mean power of the readings in stalls
    and that of the others, each times its time, say how the energy is shared out; so stall + rest
    is the total, and with random instants there is no bias however short a stall is, as long as the
    sensor tells the power of an instant. (Stalls of 120 ms in mini-batches of 350 ms, sampled at
    10 Hz: 0 ± 1 % in 40 s, where lines between samples give 56 % too much.) Where all readings are
    of one kind the energy is shared out by time.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    power_w : float (n,), W; NaN or below zero: no reading
    window_s : its start and end, s
    starts_s, ends_s : float (m,), s: the stalls, in order and without overlap

    Returns
    -------
    float : J; NaN where there is no reading at all

    Raises
    ------
    RecordError
        When stamps run backward, the window is empty, or stalls are out of order.
    """
    start_s, end_s = window_s
    t, power = _readings(t_s, power_w)
    check_window(start_s, end_s)
    starts, ends = _intervals(starts_s, ends_s)
    if (starts[1:] < ends[:-1] - OVERLAP_S).any():
        raise RecordError("stalls overlap or are out of order")
    if t.size == 0:
        return math.nan
    t, power = around(t, power, start_s, end_s)
    weights = weights_s(t, start_s, end_s)
    stall_s = float((np.minimum(ends, end_s) - np.maximum(starts, start_s)).clip(min=0.0).sum())
    share = stall_s / (end_s - start_s)
    # readings beyond a bound count as taken at it
    stalled = _inside_any(t.clip(start_s, np.nextafter(end_s, start_s)), starts, ends)
    return float(weights @ power) * _energy_share(power, weights, stalled, share)


def _energy_share(power: Array, weights: Array, stalled: np.ndarray, share: float) -> float:
    """Return the stalls' share of energy, from their share of time and whose each reading is."""
    if not (weights[stalled].any() and weights[~stalled].any()):
        return share
    stall_w = share * float(np.average(power[stalled], weights=weights[stalled]))
    rest_w = (1.0 - share) * float(np.average(power[~stalled], weights=weights[~stalled]))
    return stall_w / (stall_w + rest_w) if stall_w + rest_w else 0.0


def _intervals(starts_s: ArrayLike, ends_s: ArrayLike) -> tuple[Array, Array]:
    starts, ends = np.asarray(starts_s, dtype=np.float64), np.asarray(ends_s, dtype=np.float64)
    if starts.ndim != 1 or starts.shape != ends.shape or not (starts <= ends).all():
        raise RecordError(f"{starts.shape} starts and {ends.shape} ends are not intervals")
    return starts, ends


def _inside_any(t: Array, starts: Array, ends: Array) -> np.ndarray:
    """Say of each moment whether it lies in one of the intervals, which are in order; bool (n,)."""
    if starts.size == 0:
        return np.zeros(t.shape, dtype=bool)
    latest = np.searchsorted(starts, t, side="right") - 1
    return (latest >= 0) & (t < ends[latest.clip(min=0)])
