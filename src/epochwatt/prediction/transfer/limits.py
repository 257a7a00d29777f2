"""The fastest mode within a power limit, and what choosing it by prediction costs.

A choice is judged by what was observed in the chosen mode. Its time penalty is that over the
fastest mode that keeps the limit. It is below zero where the limit was broken, so it says nothing
without the shares of broken limits. SOURCE: PowerTrain (FGCS 2024), its optimisation under power
limits; how it normalises the excess area is not printed, so ours is one reading.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Numbers, PredictionError

Places = NDArray[np.intp]

NONE = -1  # in place of a place: no mode keeps the limit
OVER_W = 1.0  # a limit that is broken by more than that; A/L+1 of the paper
ROUNDING_W = 1e-9  # a mode whose power is the limit keeps it


class Judgement(NamedTuple):
    """Choices of one method under several limits, by what was observed."""

    # n_limits, n_answered: limits, and those with a choice
    n_limits: int
    n_answered: int
    # median time penalty of the answered limits that some mode keeps; NaN: there is none. Never to
    # be shown without the two shares
    penalty_pct: float
    # over_pct, over_1w_pct: share of the answered limits that are broken, and broken by more than 1
    # W; NaN: none is answered
    over_pct: float
    over_1w_pct: float
    # area between the observed power and the limit where it is above, of the area below the limits;
    # limits without an answer count and add nothing
    excess_area_pct: float


def fastest_within(time_s: Numbers, power_w: Numbers, limits_w: Numbers) -> Places:
    """Return the place of the fastest mode (n,) within each limit (k,), `NONE` where there is none.

    Of equally fast modes the one of least power counts.
    """
    order = np.lexsort((time_s, power_w))
    fastest = np.minimum.accumulate(time_s[order])
    is_faster = np.append(True, fastest[1:] < fastest[:-1])
    best = np.maximum.accumulate(np.where(is_faster, np.arange(len(order)), 0))
    n_within = np.searchsorted(power_w[order], np.asarray(limits_w) + ROUNDING_W, side="right")
    return np.where(n_within > 0, order[best[np.maximum(n_within, 1) - 1]], NONE)


def penalties_pct(time_s: Numbers, best_s: Numbers) -> Numbers:
    """Return how much slower chosen modes are than the best ones, %; NaN where either is."""
    return np.asarray(100 * (time_s / best_s - 1))


def judge(limits_w: Numbers, time_s: Numbers, power_w: Numbers, best_s: Numbers) -> Judgement:
    """Judge the choices under limits (k,), ascending.

    Raises PredictionError: fewer than two limits, or they do not ascend.

    Parameters
    ----------
    time_s, power_w : (k,), observed in the chosen mode; NaN: no answer
    best_s : (k,), observed time of the fastest mode that keeps the limit; NaN: none does
    """
    if len(limits_w) < 2 or not (np.diff(limits_w) > 0).all():
        raise PredictionError("limits that do not ascend", allowed="two or more, ascending")
    answered = ~np.isnan(power_w)
    over_w = np.where(answered, power_w - limits_w, 0.0)
    penalties = penalties_pct(time_s, best_s)
    usable = penalties[~np.isnan(penalties)]
    n_answered = int(answered.sum())
    return Judgement(
        n_limits=len(limits_w),
        n_answered=n_answered,
        penalty_pct=float(np.median(usable)) if len(usable) else np.nan,
        over_pct=_share_pct(over_w > ROUNDING_W, n_answered),
        over_1w_pct=_share_pct(over_w > OVER_W + ROUNDING_W, n_answered),
        excess_area_pct=float(
            100 * np.trapezoid(np.maximum(over_w, 0), limits_w) / np.trapezoid(limits_w, limits_w)
        ),
    )


def _share_pct(is_so: NDArray[np.bool_], n: int) -> float:
    return 100 * int(is_so.sum()) / n if n else np.nan
