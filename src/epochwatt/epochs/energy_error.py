"""How far an energy by trapezoid may be from the true integral.

Between random instants the power is not known, and this is what an interval of 95 % has to allow
for. Where instants are not random the error may be a bias that no statistic of the samples shows;
what a sensor's gain, offset or own averaging do is not in here either.

Tried on the signals of benchmarks/energy.py, each widened until 95 % of all were covered in 40 s;
mean bound / rms error on the training's signal: squared steps times gap^2 / 2: 4.4; half squared
differences of neighbours (collapsed strata): 4.0; the same of neighbours less than a period apart,
the closer the more: 3.1; residuals about the line through both neighbours, all alike: 3.9; the
closer the more, which is what stands here: 3.0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from epochwatt.epochs.windows import Array, distinct, held_s

GAP_PERIODS = 3.0  # a dithered schedule leaves up to two periods between samples
REGULAR = 0.35  # sd / mean of the steps; full dither has 0.41, 86 % of it 0.35
MIN_DISTINCT = 8  # values; fewer say nothing about a sensor's resolution
MIN_SAMPLES = 5  # fewer say nothing about the error

# The variance is an estimate, and from skewed data: 1.96 covers 93 % of the worst signal tried,
# 2.15 is the first in steps of 0.05 to cover 95 % of all (benchmarks/energy.py).
Z = 2.15


def bound_j(
    t: Array,
    power: Array,
    window_s: tuple[float, float],
    period_s: float,
    resolution_w: float,
) -> float:
    """Return the half width of an interval that holds the true energy in 95 of 100 cases, J.

    The variances of four errors add up:

    * sampling, between samples (`sampling_variance_j2`);
    * gaps: over more than `GAP_PERIODS` periods the power may have been any that was seen, and the
      mean of two readings stands for g s: g^2 var(p) / 2;
    * held ends: one reading stands for h s that it does not reach: 2 h^2 var(p);
    * quantisation: at worst the power keeps to a few levels and each is rounded alike in the whole
      window: (resolution x duration)^2 / 12.

    Parameters
    ----------
    t : float (n,), s, strictly ascending: the samples of the window and one beyond each bound
    power : float (n,), W
    window_s : its bounds, s
    period_s : typical step of the sampling
    resolution_w : step of the sensor's values, W

    Returns
    -------
    float : J; NaN for fewer than `MIN_SAMPLES`
    """
    if t.size < MIN_SAMPLES:
        return math.nan
    start_s, end_s = window_s
    inside_s = np.clip(t[1:], start_s, end_s) - np.clip(t[:-1], start_s, end_s)
    gap = is_gap(np.diff(t), period_s)
    sampling_j2, n = sampling_variance_j2(t, power, np.where(gap, 0.0, inside_s), period_s)
    unread_s2 = (inside_s[gap] ** 2).sum() / 2 + 2 * (held_s(t, start_s, end_s) ** 2).sum()
    quantum_j2 = (resolution_w * (end_s - start_s)) ** 2 / 12
    return student(n) * math.sqrt(sampling_j2 + unread_s2 * power.var() + quantum_j2)


def sampling_variance_j2(
    t: Array, power: Array, inside_s: Array, period_s: float
) -> tuple[float, float]:
    """Return the variance of the trapezoid's sampling error, J^2, and how many samples say so.

    Two estimates; the greater counts:

    * Power that moves much between samples is noise to them: the variance of the power times the
      sum of squared weights. It is that of each sample about the line through its neighbours (so
      a smooth power has none), and the closer these are the more it counts, down to nothing at two
      periods: then little gets in of what is slower than the sampling.
    * Few jumps: one of d W somewhere in a step of g s is an error of up to ± d g / 2, evenly
      spread: (d g)^2 / 12.

    Both are right on average over the phase of the signal against the strata of the schedule. A
    square wave of exactly two or three strata can stay in a phase where this covers 86 to 93 %; so
    can bursts of which a window holds only a few samples.

    Source of the first: Gasser, Sroka, Jennen-Steinmetz, Biometrika 73 (1986) 625-633.

    Parameters
    ----------
    t, power : float (n,), n >= 3
    inside_s : float (n - 1,), part of each step inside the window; 0 for gaps
    period_s : typical step
    """
    jumps_j2 = float(((np.diff(power) * inside_s) ** 2).sum()) / 12
    weights_s = (np.append(inside_s, 0.0) + np.append(0.0, inside_s)) / 2
    span_s = t[2:] - t[:-2]
    before, after = (t[2:] - t[1:-1]) / span_s, (t[1:-1] - t[:-2]) / span_s
    residual_w = power[1:-1] - before * power[:-2] - after * power[2:]
    variance_w2 = residual_w**2 / (1 + before**2 + after**2)
    closeness = np.maximum(2 * period_s - span_s, 0.0)
    if not closeness.any():  # all steps are equal
        closeness = np.ones(span_s.size)
    noise_w2 = float(closeness @ variance_w2 / closeness.sum())
    n = float(closeness.sum() ** 2 / (closeness @ closeness))
    return max(jumps_j2, noise_w2 * float(weights_s @ weights_s)), n


def student(n: float) -> float:
    """Return Student's quantile at n degrees of freedom where the normal one is `Z`.

    Source: Abramowitz and Stegun, 26.7.5, its first two terms.
    """
    return Z + (Z**3 + Z) / (4 * n) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * n**2)


def smallest_step_w(power: Array) -> float | None:
    """Return the smallest step between different values; None where too few say nothing."""
    levels = distinct(power)
    return float(np.diff(levels).min()) if levels.size >= MIN_DISTINCT else None


def is_gap(step_s: Array, period_s: float) -> NDArray[np.bool_]:
    """Say of each step whether readings are missing in it."""
    return step_s > GAP_PERIODS * period_s


def is_regular(step_s: Array) -> bool:
    """Say whether the instants are too regular to be random; of few steps only clear cases."""
    if step_s.size < 2:
        return False
    return bool(step_s.std() / step_s.mean() + 0.3 / math.sqrt(step_s.size) < REGULAR)
