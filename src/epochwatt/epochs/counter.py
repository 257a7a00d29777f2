"""Compute a window's energy from a sensor that counts energy itself: arrays in, numbers out."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.epochs.windows import Array, around, check_window, cleaned


class Counted(NamedTuple):
    """Energy, J, and how far it may be off, %."""

    energy_j: float
    error_pct: float


NOTHING = Counted(math.nan, math.nan)


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

    Parameters
    ----------
    t_s : float (n,), s, ascending
    counter_j : float (n,), J; NaN: no reading
    start_s, end_s : bounds of the window, s
    update_s : time between two values of the counter, s; None: as the readings show it

    Returns
    -------
    energy_j : J; NaN where readings do not reach from one bound to the other, or the counter fell
    error_pct : %; NaN where the counter did not move

    Raises RecordError when stamps run backward or the window is empty.
    """
    t, counter = cleaned(t_s, counter_j)
    check_window(start_s, end_s)
    if t.size == 0 or t[0] > start_s or t[-1] < end_s:
        return NOTHING
    t, counter = around(t, counter, start_s, end_s)
    if (np.diff(counter) < 0).any():
        return NOTHING
    first_j, last_j = np.interp([start_s, end_s], t, counter)
    energy_j = float(last_j - first_j)
    if not energy_j > 0:
        return Counted(energy_j, math.nan)
    return Counted(energy_j, 100.0 * _bound_j(t, counter, update_s) / energy_j)


def _bound_j(t: Array, counter: Array, update_s: float | None) -> float:
    """Return how far the ends may be off, J."""
    moved = np.append(True, np.diff(counter) > 0)
    seen_t, seen_j = t[moved], counter[moved]
    steps_s, rises_j = np.diff(seen_t), np.diff(seen_j)
    if update_s is None:  # as often as it moved, or more often than it was read
        update_s = float(steps_s.max())
    # over less than an update the rise is that of all of it
    highest_w = float((rises_j / np.maximum(steps_s, update_s)).max())
    ends_s = float(t[1] - t[0] + t[-1] - t[-2])
    return highest_w * (update_s + ends_s / 4) + float(rises_j.min())
