"""Average and integrate a sampled column in a time window: arrays in, numbers out.

Samples are `t_s` (n,), seconds in ascending order on any one clock (the window's bounds on the same
one), and a value at each of them. A value of NaN is "no reading" and bridged by its neighbours;
equal stamps count as one sample with their mean. Between two samples the
column is a straight line; before the first and after the last it is level. An integral
is therefore a sum of values times weights in seconds: those of adjacent windows add up, and
shifting the clock changes nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.errors import RecordError

Array = NDArray[np.float64]


def window_mean(t_s: ArrayLike, values: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the mean over time of a column within a window; NaN where there is no reading at all.

    `t_s`: float (n,), s, ascending
    `values`: float (n,), any unit; NaN: no reading
    `start_s`, `end_s`: bounds of the window, s

    Raises RecordError when stamps run backward or the window is empty.
    """
    x, weights_s = _weighted(t_s, values, start_s, end_s)
    return float(weights_s @ x / weights_s.sum()) if x.size else math.nan


def window_median(t_s: ArrayLike, values: ArrayLike, start_s: float, end_s: float) -> float:
    """Return the median over time of a column within a window; otherwise as `window_mean`.

    Each reading stands for the time that it has in the mean.
    """
    x, weights_s = _weighted(t_s, values, start_s, end_s)
    if x.size == 0:
        return math.nan
    order = np.argsort(x, kind="stable")
    share = np.cumsum(weights_s[order]) / weights_s.sum()
    # a share of just one half, as of two equal ones, is exact to rounding only
    low, high = np.minimum(np.searchsorted(share, [0.5 - 1e-12, 0.5 + 1e-12]), x.size - 1)
    return float(x[order[low]] + x[order[high]]) / 2.0


def cleaned(t_s: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Drop samples without a reading and average those of equal stamps; strictly ascending.

    Returns
    -------
    t_s, values : float (m,), m <= n; NaN and infinite readings are left out, readings of equal
        stamps are replaced by their mean

    Raises RecordError: stamps run backward or are not numbers, or are not as many as readings.
    """
    t, x = np.asarray(t_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if t.ndim != 1 or t.shape != x.shape:
        raise RecordError(f"{t.shape} stamps for {x.shape} readings: not one column each")
    if not np.isfinite(t).all():
        raise RecordError(f"stamp {int(np.argmin(np.isfinite(t)))} of the samples is not a number")
    backward = np.diff(t) < 0
    if backward.any():
        n = int(np.argmax(backward))
        raise RecordError(f"stamps of samples run backward: {t[n + 1]} s follows {t[n]} s")
    read = np.isfinite(x)
    t, x = t[read], x[read]
    if (np.diff(t) > 0).all():
        return t, x
    stamps, first, counts = np.unique(t, return_index=True, return_counts=True)
    return stamps, np.add.reduceat(x, first) / counts


def distinct(values: Array) -> Array:
    """Return the different values, ascending, (m,); np.unique would load numpy.ma: 20 ms a job."""
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=-math.inf) > 0]


def typical_step_s(t: Array) -> float:
    """Return the median step between instants, s; 0 for fewer than two. np.median is as slow."""
    if t.size < 2:
        return 0.0
    steps = np.diff(t)
    return float(np.partition(steps, steps.size // 2)[steps.size // 2])


def check_window(start_s: float, end_s: float) -> None:
    """Raise RecordError unless the window has a length."""
    if not start_s < end_s:
        raise RecordError(f"the window from {start_s} s to {end_s} s is empty")


def around(t: Array, x: Array, start_s: float, end_s: float) -> tuple[Array, Array]:
    """Return the samples inside a window and the nearest on or beyond each bound; n >= 1."""
    first = max(0, int(np.searchsorted(t, start_s, side="right")) - 1)
    last = min(t.size - 1, int(np.searchsorted(t, end_s, side="left")))
    return t[first : last + 1], x[first : last + 1]


def held_s(t: Array, start_s: float, end_s: float) -> Array:
    """Return for how long of a window the first and the last sample are held level, s, (2,)."""
    held = np.array([min(t[0], end_s) - start_s, end_s - max(t[-1], start_s)])
    return held.clip(min=0.0)


def weights_s(t: Array, start_s: float, end_s: float) -> Array:
    """Return the seconds that each sample stands for in a window's integral, (n,), n >= 1."""
    step_s = np.diff(t)
    low = (np.clip(start_s, t[:-1], t[1:]) - t[:-1]) / step_s  # part of the step before the window
    high = (np.clip(end_s, t[:-1], t[1:]) - t[:-1]) / step_s  # part before the window's end
    later_s = step_s * (high**2 - low**2) / 2
    weights = np.zeros(t.size)
    weights[1:] += later_s
    weights[:-1] += step_s * (high - low) - later_s
    before_s, after_s = held_s(t, start_s, end_s)
    weights[0] += before_s
    weights[-1] += after_s
    return weights


def _weighted(
    t_s: ArrayLike, values: ArrayLike, start_s: float, end_s: float
) -> tuple[Array, Array]:
    """Return the readings around a window, (n,), and the seconds that each stands for in it."""
    t, x = cleaned(t_s, values)
    check_window(start_s, end_s)
    if t.size == 0:
        return x, x
    t, x = around(t, x, start_s, end_s)
    return x, weights_s(t, start_s, end_s)
