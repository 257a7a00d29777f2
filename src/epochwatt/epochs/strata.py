"""Find where in the loop's mini-batches readings lie, and what follows if that is uneven.

A reading each second meets few places of a mini-batch, and not as often as each of them lasts. How
long the loop stalled and computed is recorded, so readings taken in a stall, or in a fifth of the
compute, can be given the time that these really took (post-stratification: Holt, Smith, J. R.
Stat. Soc. A 142 (1979) 33-46). What that moves an energy by, and what it leaves, say how far it may
be off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.epochs.windows import Array

N_COMPUTE_STRATA = 5  # of compute, equally long; the stall is one stratum, whatever its length
PRIOR = 1.0  # readings of the overall mean that each stratum's mean holds besides its own
# Places of n readings are no less even than random ones where Kuiper's statistic is below these
# 95 % / sqrt(n), or no gap is twice as long as the longest is on average, log(n) / n.
KUIPER, GAPS = 1.75, 2.0


class Strata(NamedTuple):
    """The bounds of the loop's mini-batches and stalls."""

    stratum: NDArray[
        np.int64
    ]  # int (n,), of each reading: 0 in a stall, 1 to `N_COMPUTE_STRATA` in compute
    lasted_s: Array  # float (1 + N_COMPUTE_STRATA,), how long each lasted


class Stratified(NamedTuple):
    """An energy as its strata give it."""

    correction_j: float  # from the energy to the one with each stratum's true time
    variance_j2: float  # of that, as the strata's means are uncertain
    residual_w: Array  # (n,), of each reading about its stratum's mean
    unmet_s: float  # time of strata without a reading


def of_loop(
    t: Array, starts_s: Array, stall_ends_s: Array, window_s: tuple[float, float]
) -> Strata:
    """Return which stratum of the loop each instant lies in, and how long each stratum lasted.

    Time between mini-batches and after the last is compute.

    `t`: float (n,), s
    `starts_s`, `stall_ends_s`: float (m,), of mini-batches; empty where no loop ran
    `window_s`: its start and end, s
    """
    start_s, end_s = window_s
    if starts_s.size == 0:
        no_compute_s = [0.0] * N_COMPUTE_STRATA
        return Strata(np.zeros(t.size, np.int64), np.array([end_s - start_s, *no_compute_s]))
    k, bounds = _minibatch(t, starts_s, end_s)
    compute_s = np.maximum(bounds[k + 1] - stall_ends_s[k], 1e-9)
    part = np.floor(N_COMPUTE_STRATA * (t - stall_ends_s[k]) / compute_s).clip(
        0, N_COMPUTE_STRATA - 1
    )
    stratum = np.where(t < stall_ends_s[k], 0, 1 + part).astype(np.int64)
    stall_s = float((stall_ends_s - starts_s).sum() + starts_s[0] - start_s)
    each_s = max(end_s - start_s - stall_s, 0.0) / N_COMPUTE_STRATA
    return Strata(stratum, np.array([stall_s, *[each_s] * N_COMPUTE_STRATA]))


def stratified(power: Array, weights: Array, strata: Strata) -> Stratified:
    """Correct an energy, the sum of power times weights, by how long its strata really lasted.

    A stratum's mean is drawn towards that of all readings, the more the fewer there are in it.

    `power`: float (n,), W; `weights`: float (n,), s
    """
    used, size = weights > 0, strata.lasted_s.size
    n = np.bincount(strata.stratum, used, size)
    weighed_s = np.bincount(strata.stratum, weights, size)
    prior_s = PRIOR * float(weights.sum()) / max(int(used.sum()), 1)
    mean_w = float(weights @ power / weights.sum())
    sums_j = np.bincount(strata.stratum, weights * power, size)
    means_w = (sums_j + prior_s * mean_w) / (weighed_s + prior_s)
    residual_w = power - means_w[strata.stratum]
    n_used, n_means = int(used.sum()), int((n > 0).sum())
    variance_w2 = n_used / max(n_used - n_means, 1) * float(weights @ residual_w**2 / weights.sum())
    lacking_s = strata.lasted_s - weighed_s
    return Stratified(
        correction_j=float(lacking_s @ means_w),
        variance_j2=variance_w2 * float(lacking_s**2 @ (1 / (n + PRIOR))),
        residual_w=residual_w,
        unmet_s=float(strata.lasted_s[n == 0].sum()),
    )


def positions(t: Array, starts_s: Array, end_s: float) -> Array:
    """Return where in its mini-batch each instant lies, 0 to 1, (n,)."""
    k, bounds = _minibatch(t, starts_s, end_s)
    length_s = np.maximum(bounds[k + 1] - bounds[k], 1e-9)
    return np.asarray(((t - bounds[k]) / length_s).clip(0.0, 1.0))


def _minibatch(t: Array, starts_s: Array, end_s: float) -> tuple[NDArray[np.int64], Array]:
    """Return which mini-batch each instant is in, (n,), and the bounds of all, (m + 1,), s."""
    bounds = np.append(starts_s, end_s)
    return np.clip(np.searchsorted(bounds, t, side="right") - 1, 0, bounds.size - 2), bounds


def discrepancy(position: Array, weights: Array) -> float:
    """Return Kuiper's statistic: how far the weight in an interval of [0, 1] exceeds its length.

    Source: Kuiper, Proc. KNAW A 63 (1960) 38-47.
    """
    order = np.argsort(position, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    above, below = share - position[order], np.append(0.0, share[:-1]) - position[order]
    return float(above.max() - below.min())


def longest_unmet(position: Array) -> float:
    """Return the longest part of a mini-batch, of 1, in which no reading was ever taken."""
    ordered = np.sort(position)
    return float(max(np.diff(ordered).max(initial=0.0), 1.0 + ordered[0] - ordered[-1]))
