"""Bound the error of an energy by trapezoid.

Random parts add in squares; parts that may be a bias add as they are. A sensor's gain and offset
(a calibration) are not included, nor is any averaging that it does not report.

Tried on the signals of benchmarks/energy.py of commit 9d1ed71f, each widened until 95 % of all were
covered in 40 s;
mean bound / rms error on the training's signal: squared steps times gap^2 / 2: 4.4; half squared
differences of neighbours (collapsed strata): 4.0; the same of neighbours less than a period apart,
the closer the more: 3.1; residuals about the line through both neighbours, all alike: 3.9; the
closer the more, which is what stands here: 3.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.epochs import strata
from epochwatt.epochs.sensor import MIN_DISTINCT, Sensor
from epochwatt.epochs.windows import Array, distinct, held_s, weights_s

GAP_PERIODS = 3.0  # a dithered schedule leaves up to two periods between samples
REGULAR = 0.35  # sd / mean of the steps; full dither has 0.41, 86 % of it 0.35
MIN_SAMPLES = 5  # fewer say nothing about the error
LOST = 0.1  # of a window without a reading: no bound holds what may have been there
LATTICE = 0.15  # rms of what steps differ by from multiples of a typical one; random ones: 0.29
# Regular instants keep to the mini-batches where they never meet a quarter of them, or where their
# discrepancy is beyond that of random ones (Kuiper's 99.9 %: 2.3 / sqrt n): levels may be unseen.
LOCKED, LOCKED_BY_CHANCE = 0.25, 2.3
OUTLIER_SHARE, OUTLIER_RATIO = 0.02, 2.0  # so few readings, so far above all others: outliers
FULL_LOAD = 5.0  # ASSUME: the most that a board takes is no more than so many times its least
GAPLESS = 0.9  # of the step: a mean that long leaves nothing out that repeats
# 95 % of all events that take 3 / n of the time are seen by n readings at random instants (1 -
# exp(-3)): the "rule of three" (Hanley, Lippman-Hand, JAMA 249 (1983) 1743).
UNSEEN = 3.0
# So many readings alike, and so many times the next longest run of such: the sensor is stuck. One
# of coarse steps repeats itself: 38 times after runs of 3 is the most in an hour of an AGX Orin.
STUCK_READINGS, STUCK_RATIO = 8, 5.0
FINE_RUN, STUCK_RATIO_COARSE = 2, 20.0
COARSE = 0.004  # of the least power: a step that the noise of a load that rests need not cross
ONE_STEP_SHARE = 0.25  # of moves by one step: the power moves no faster, and rests in between
LEVELS_SHARE = 0.1  # so few different values are levels of a load without any noise
FREEZE_LAG = 16  # readings, by which a short freeze is over; a long one is of a stuck sensor
ALL_STUCK_READINGS = 150  # where nothing else was read, an idle board is the other explanation

# The variance is an estimate, and from skewed data: 1.96 covers 93 % of the worst signal tried,
# 2.15 is the first in steps of 0.05 to cover 95 % of all (there).
Z = 2.15


@dataclass(frozen=True)
class Readings:
    """Readings around a window, and how they were taken.

    `t_s`, `power_w`: float (n,), s and W, strictly ascending: in the window, and one beyond each
    bound
    `start_s`, `end_s`: its bounds, s
    `period_s`: typical step of the tries
    `lost_s`: time that lies between readings more than a typical step apart because tries in
    between gave nothing, or further apart than tries ever are
    `sensor`: how it reads
    `minibatch_starts_s`: float (m,), when the loop's mini-batches began; none for a machine without
    a loop; None where that is not known
    `stall_ends_s`: float (m,), when their stalls ended
    """

    t_s: Array
    power_w: Array
    start_s: float
    end_s: float
    period_s: float
    lost_s: float
    sensor: Sensor
    minibatch_starts_s: Array | None = None
    stall_ends_s: Array | None = None

    @property
    def length_s(self) -> float:
        """Length of the window, s."""
        return self.end_s - self.start_s

    @property
    def has_regular(self) -> bool:
        """Whether the readings are at regular instants, and each is of its own."""
        is_own = self.sensor.hold_s < GAPLESS * self.period_s
        return is_own and is_regular(np.diff(self.t_s), self.period_s)

    @property
    def minibatch_s(self) -> float:
        """Mean length of a mini-batch, s; there must be one."""
        starts = self.minibatch_starts_s
        assert starts is not None
        return (self.end_s - float(starts[0])) / starts.size

    @property
    def inside_w(self) -> Array:
        """Readings inside the window, W."""
        return self.power_w[(self.t_s >= self.start_s) & (self.t_s <= self.end_s)]

    @property
    def swing_w(self) -> float:
        """Return how far the power may move that a sensor saw part of, W.

        ASSUME: at least by half of the most that it read: means hide what they are made of, and
        regular instants may meet one level only.
        """
        return max(float(np.ptp(self.power_w)), float(self.power_w.max()) / 2)


def bound_j(readings: Readings) -> float:
    """Return the half width of an interval that holds the true energy in 95 of 100 cases, J.

    Errors due to the instants are added in squares:

    * sampling, between samples (`sampling_variance_j2`);
    * what no reading met: 3 / n of the time at a power up to the largest read (rule of three);
    * regular instants, which may be in step with the loop: `regular_share` of the swing. That alone
      bounds the error of a power that repeats, the first two that of one that does not.

    Where the times of the stalls are known, `_stratified_j` gives a tighter bound.

    Possible biases are added as they are (`bias_j`): rounding, lost readings, the sensor's time.

    Returns
    -------
    float : J; NaN where nothing can be said: fewer than `MIN_SAMPLES`, more than `LOST` of the
        window without a reading, readings that may all be of one unknown step, or instants that
        are or may be locked to the mini-batches (`regular_share` is NaN)
    """
    if readings.t_s.size < MIN_SAMPLES or readings.lost_s > LOST * readings.length_s:
        return math.nan
    if readings.sensor.rounding_w is None:
        return math.nan
    inside_s = np.diff(readings.t_s.clip(readings.start_s, readings.end_s))
    inside_s = np.where(is_gap(np.diff(readings.t_s), readings.period_s), 0.0, inside_s)
    step_s = max(readings.period_s, readings.sensor.hold_s)
    frozen = NOT_FROZEN
    # a sensor that freezes shows only where it renews its values faster than they are read
    if readings.sensor.hold_s < readings.period_s / 2 and not readings.sensor.estimated:
        frozen = frozen_readings(readings.t_s, readings.power_w, readings.sensor.rounding_w)
    step_s *= frozen.fewer
    unseen_s = min(UNSEEN * max(step_s - readings.sensor.mean_s, 0.0), readings.length_s)
    share = regular_share(readings)
    if readings.has_regular and readings.stall_ends_s is not None and not readings.sensor.estimated:
        return _stratified_j(readings, inside_s, unseen_s, share, frozen) + bias_j(readings)
    sampling_j2, n = sampling_variance_j2(
        readings.t_s, readings.power_w, inside_s, readings.period_s
    )
    sampling_j2, n = sampling_j2 * frozen.fewer + frozen.variance_j2, n / frozen.fewer
    unseen_j = unseen_s * float(readings.power_w.max())
    regular_j = share * readings.length_s * readings.swing_w
    return math.hypot(student(n) * math.sqrt(sampling_j2), unseen_j, regular_j) + bias_j(readings)


def _stratified_j(
    readings: Readings, inside_s: Array, unseen_s: float, share: float, frozen: "Frozen"
) -> float:
    """Bound the error of an energy that was read at regular instants, by strata of the loop, J.

    How long each stratum lasted is known. Where readings are spread otherwise, the energy is off by
    the correction that follows from it. The other errors add in squares:

    * sampling: the spread within strata, and of their means;
    * time that no reading met: 3 / n of the epoch, or a stratum. ASSUME: there the power differs
      from the mean by no more than the mean, or than the largest reading does;
    * regular instants: where readings lie less evenly in the mini-batch than random ones, `share`
      of the swing within strata; where they leave out a part of it that random ones would have met,
      `share` of half of the largest reading if that is more. Where they lie as evenly as random
      ones, sampling covers it.

    `inside_s`: float (n - 1,), part of each step inside the window; 0 for gaps
    `unseen_s`: the time that readings at random instants may have missed
    `share`: `regular_share`
    """
    weights = weights_s(readings.t_s, readings.start_s, readings.end_s)
    starts, stall_ends = readings.minibatch_starts_s, readings.stall_ends_s
    assert starts is not None
    assert stall_ends is not None
    window_s = (readings.start_s, readings.end_s)
    loop_strata = strata.of_loop(readings.t_s, starts, stall_ends, window_s)
    part = strata.stratified(readings.power_w, weights, loop_strata)
    swing_w = 0.0
    if starts.size:
        position, n_positions = (
            strata.positions(readings.t_s, starts, readings.end_s),
            readings.t_s.size,
        )
        unmet = strata.longest_unmet(position) - readings.sensor.mean_s / readings.minibatch_s
        has_gap = unmet > strata.GAPS * math.log(n_positions) / n_positions
        if has_gap or share > strata.KUIPER / math.sqrt(n_positions):
            swing_w = float(np.ptp(part.residual_w))
        if has_gap:
            swing_w = max(swing_w, float(readings.power_w.max()) / 2)
    sampling_j2, n = sampling_variance_j2(
        readings.t_s, part.residual_w, inside_s, readings.period_s
    )
    variance_j2 = (sampling_j2 + part.variance_j2) * frozen.fewer + frozen.variance_j2
    sampling_j = student(n / frozen.fewer) * math.sqrt(variance_j2)
    mean_w = float(weights @ readings.power_w) / readings.length_s
    off_w = max(float(readings.power_w.max()) - mean_w, mean_w)
    unseen_j = max(unseen_s, part.unmet_s) * off_w
    regular_j = share * readings.length_s * swing_w
    return abs(part.correction_j) + math.hypot(sampling_j, unseen_j, regular_j)


def bias_j(readings: Readings) -> float:
    """Return how far the energy may be off to one side, J.

    * Rounding: `Sensor.steps_off_w` for the whole window.
    * Lost readings are not lost at random (a bus fails under load): there the board may have taken
      the most that it can, `FULL_LOAD` times the least read.
    * The sensor's time. A mean over tau s smears a jump of d W at a bound: of one right there up
      to d tau / 8 is on the wrong side; of a filter of first order, which is tau / 2 old on
      average, d tau / (2 e). A value that is repeated for u s is of an instant somewhere in them:
      all stamps may be off by u / 2, and what lies at the bounds differs.
    * Outliers (`outlier_j`).
    """
    sensor = readings.sensor
    weights = weights_s(readings.t_s, readings.start_s, readings.end_s)
    mean_w = float(weights @ readings.power_w) / readings.length_s
    lost_j = readings.lost_s * lost_w(readings.inside_w, mean_w)
    ends_s = float(held_s(readings.t_s, readings.start_s, readings.end_s).sum())
    time_s = sensor.mean_s / math.e + sensor.hold_s / 2 + ends_s
    rounding_j = sensor.steps_off_w * readings.length_s
    return rounding_j + lost_j + outlier_j(readings.power_w, weights) + time_s * readings.swing_w


def lost_w(power: Array, mean_w: float) -> float:
    """Return how far the power may be from `mean_w` where a reading was lost, W."""
    if power.size == 0:
        return FULL_LOAD * mean_w
    most_w = max(float(power.max()), FULL_LOAD * float(power.min()))
    return max(most_w - mean_w, mean_w)


def outlier_j(power: Array, weights: Array) -> float:
    """Return the energy of outliers above the highest power of the other readings, J.

    They may be faults of the sensor, which are too high. If they are rare bursts of the load, it is
    what more or fewer of these would change.

    `weights`: how long each reading stands for, s
    """
    highest_w = np.sort(power)[int((1.0 - OUTLIER_SHARE) * (power.size - 1))]
    is_outlier = power > OUTLIER_RATIO * highest_w
    return float(weights[is_outlier] @ (power[is_outlier] - highest_w))


def regular_share(readings: Readings) -> float:
    """Return by which share of its swing regular readings may miss the mean power; NaN: no limit.

    A loop's power repeats with its mini-batches. A function of the place in the mini-batch that
    rises and falls once is missed by at most its swing times the discrepancy of the readings'
    places (Koksma's inequality, with Kuiper's form of the discrepancy); a mean over tau s of
    something with a period of T s by at most T / (4 tau). Where a part of the mini-batch is never
    met, the swing is not known either.

    ASSUME: what repeats faster than such a sensor reads is the loop, whose times are recorded.
    """
    sensor, t = readings.sensor, readings.t_s
    step_s = readings.period_s
    if readings.has_regular:
        weights = weights_s(t, readings.start_s, readings.end_s)
    elif sensor.mean_s < GAPLESS * sensor.hold_s:  # the sensor's own instants, at any phase
        step_s = sensor.hold_s
        t = np.arange(readings.start_s, readings.end_s + step_s, step_s)
        weights = np.full(t.size, step_s)
    else:
        return 0.0
    starts = readings.minibatch_starts_s
    if starts is None:
        return math.nan
    if starts.size == 0:
        return 0.0
    minibatch_s = readings.minibatch_s
    if sensor.estimated:  # not well enough to know which parts of a mini-batch it meets
        share = unmet = step_s / minibatch_s
    else:
        position = strata.positions(t, starts, readings.end_s)
        share, unmet = strata.discrepancy(position, weights), strata.longest_unmet(position)
    if sensor.mean_s:
        share = min(share, minibatch_s / (4 * sensor.mean_s))
        unmet -= sensor.mean_s / minibatch_s
    by_chance = max(LOCKED, LOCKED_BY_CHANCE / math.sqrt(t.size))
    return share if unmet <= LOCKED and share <= by_chance else math.nan


def sampling_variance_j2(
    t: Array, power: Array, inside_s: Array, period_s: float
) -> tuple[float, float]:
    """Return the variance of the trapezoid's sampling error, J^2, and how many samples it rests on.

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

    `t`, `power`: float (n,), n >= 3; `inside_s`: float (n - 1,), part of each step inside the
    window; 0 for gaps
    """
    jumps_j2 = float(((np.diff(power) * inside_s) ** 2).sum()) / 12
    weights = (np.append(inside_s, 0.0) + np.append(0.0, inside_s)) / 2
    span_s = t[2:] - t[:-2]
    before, after = (t[2:] - t[1:-1]) / span_s, (t[1:-1] - t[:-2]) / span_s
    residual_w = power[1:-1] - before * power[:-2] - after * power[2:]
    variance_w2 = residual_w**2 / (1 + before**2 + after**2)
    closeness = np.maximum(2 * period_s - span_s, 0.0)
    if not closeness.any():  # all steps are equal
        closeness = np.ones(span_s.size)
    noise_w2 = float(closeness @ variance_w2 / closeness.sum())
    n = float(closeness.sum() ** 2 / (closeness @ closeness))
    return max(jumps_j2, noise_w2 * float(weights @ weights)), n


def student(n: float) -> float:
    """Return Student's quantile at n degrees of freedom that belongs to the normal quantile `Z`.

    Source: Abramowitz and Stegun, 26.7.5, its first two terms.
    """
    return Z + (Z**3 + Z) / (4 * n) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * n**2)


def is_gap(step_s: Array, period_s: float) -> NDArray[np.bool_]:
    """Return of each step whether readings are missing in it."""
    return step_s > GAP_PERIODS * period_s


def is_regular(step_s: Array, period_s: float) -> bool:
    """Return whether instants are too regular to be random: few steps must be clearly so.

    Either the steps are much alike, or all are multiples of one step, as where samples are missing.
    `step_s`: float (n,), between instants
    """
    step_s = step_s[~is_gap(step_s, period_s)]
    if step_s.size < 2 or not period_s:
        return False
    median_s = float(np.partition(step_s, step_s.size // 2)[step_s.size // 2])
    multiples = step_s / median_s
    off_lattice = float(np.sqrt(np.mean((multiples - np.round(multiples)) ** 2)))
    variation = step_s.std() / step_s.mean()
    # what few steps may show by chance is added
    are_alike = variation + 0.3 / math.sqrt(step_s.size) < REGULAR
    return bool(are_alike or off_lattice + 0.2 / math.sqrt(step_s.size) < LATTICE)


class Frozen(NamedTuple):
    """How values that a frozen sensor repeated, without reading anew, widen the error."""

    fewer: float  # all readings over those that are new
    # what is added to the energy's variance, J^2: while a value is repeated the power may have
    # moved to the next one at any moment
    variance_j2: float


NOT_FROZEN = Frozen(1.0, 0.0)


def frozen_readings(t: Array, power: Array, rounding_w: float) -> Frozen:
    """Return the effect of repeated values (`NOT_FROZEN`: no more than the sensor's steps explain).

    A sensor that freezes for some readings now and then repeats a value which it then never reads
    again. Steps of its own make it repeat itself, too; then it also moves by one step as often, or
    is back at the value later.
    """
    if power.size <= FREEZE_LAG or is_coarse(power, rounding_w):
        return NOT_FROZEN
    step_w = np.abs(np.diff(power))
    is_new = np.append(True, step_w > 0)
    n_new = int(is_new.sum())
    if distinct(power).size < max(MIN_DISTINCT, LEVELS_SHARE * n_new):
        return NOT_FROZEN
    one_step = float((step_w[step_w > 0] <= 2 * rounding_w).mean())
    if one_step > ONE_STEP_SHARE:
        return NOT_FROZEN
    later = float((power[FREEZE_LAG:] == power[:-FREEZE_LAG]).mean())
    expected = power.size * max(one_step, later)
    n_repeated = power.size - n_new
    if n_repeated <= expected + 3 * math.sqrt(expected) + 3:
        return NOT_FROZEN
    run_starts = np.flatnonzero(is_new)
    run_ends = np.append(run_starts[1:], power.size) - 1
    frozen_s = t[run_ends] - t[run_starts]
    off_j = np.diff(power[run_starts]) * frozen_s[:-1]
    return Frozen(power.size / n_new, float(off_j @ off_j) / 2)


def is_stuck(power: Array) -> bool:
    """Return whether the sensor is stuck: one value repeats too often to have been read each time.

    It is judged by its own readings: a sensor of coarse steps repeats itself, one of fine steps
    does not. Where it told nothing else, only many readings show that.
    """
    bounds = np.flatnonzero(np.diff(power)) + 1
    runs = np.sort(np.diff(np.concatenate([[0], bounds, [power.size]])))[::-1]
    if runs.size == 1:
        return bool(runs[0] >= ALL_STUCK_READINGS)
    ratio = STUCK_RATIO if runs[1] <= FINE_RUN else STUCK_RATIO_COARSE
    return bool(runs[0] >= max(STUCK_READINGS, ratio * runs[1]))


def is_coarse(power: Array, rounding_w: float | None) -> bool:
    """Return whether a sensor's steps alone may make it repeat itself while the load rests."""
    return bool(np.ptp(power) > 0 and (rounding_w or 0.0) > COARSE * power.min())


def lost_s(t: Array, tried_s: Array, start_s: float, end_s: float, period_s: float) -> float:
    """Return the time of a window in which readings are missing, s.

    Of a step between readings counts what exceeds `period_s`, where a try in it gave nothing or it
    is longer than steps between tries; so it does of the time from and to the window's bounds.

    `t`: float (n,), s, of the readings around the window; `tried_s`: float (m,), s, of all tries
    """
    tries = np.searchsorted(tried_s, t, side="right")
    failed = np.diff(tries) > 1
    inside_s = np.diff(t.clip(start_s, end_s))
    missing = failed | is_gap(np.diff(t), period_s)
    between_s = (inside_s[missing] - period_s).clip(min=0.0).sum()
    ends_s = (held_s(t, start_s, end_s) - period_s).clip(min=0.0).sum()
    # as many times as this happened, it may have happened more often
    by_chance_s = 2 * math.sqrt(int(missing.sum())) * period_s
    return float(between_s + ends_s + by_chance_s)
