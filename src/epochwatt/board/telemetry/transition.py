"""Find when power has followed a change of load (board side: Python 3.6 grammar).

Power follows late: sensors average, report seldom, and a board needs a moment. What was read before
it has followed belongs to no mode. Readings in, a moment out; nothing here waits or reads.

The readings before the load say what power was. From then on the latest ones are looked at, a
while that grows with the time waited, so that a slow rise is not taken for its end. They are the
new level when

* its two halves agree: power does not go on rising or falling, and
* it differs from what was before by more than noise, a share of it, and what a drift that was
  there before would have made of it.
"""

import math
from typing import NamedTuple, Optional, Sequence

import numpy as np

MIN_BEFORE = 3  # readings; fewer say nothing about their noise
FEW = 8  # readings before; of fewer the noise is that of either side, whichever is larger
MIN_LEVEL = 4  # readings that make a level, two for each half
LEVEL_S = 1.5  # that a level lasts at least
WAITED_SHARE = 0.5  # of the time since the load, that it lasts at least
STEP_SHARE = 0.05  # of the power before: less is no step
STEP_ERRORS = 4.0  # standard errors: less is noise
HALVES_SHARE = 0.05  # of the step, by which the halves of a level may differ
HALVES_ERRORS = 3.0  # standard errors, by which they may differ
DRIFT_ERRORS = 2.0  # standard errors of the drift before: so much may be a drift


class Transition(NamedTuple):
    """Delay and size of the change of power that a change of load causes."""

    followed_s: float  # from when on power is at its new level
    seen_s: float  # the reading that showed it
    lag_s: float  # from the load to `followed_s`
    before_w: float  # mean power before
    level_w: float  # mean power of the readings that showed the new level


def find_transition(
    t_s: Sequence[float], power_w: Sequence[float], load_s: float, examined: int = 0
) -> Optional[Transition]:
    """Return when power had followed the load that began at `load_s`; None: it has not, so far.

    More readings behind the same ones never change an answer, so it may be asked again and again.

    `t_s`: (n,), s, ascending
    `power_w`: (n,), W; NaN: no reading
    `load_s`: when the load began or ended, s
    `examined`: number of readings in which nothing was found before, to save time
    """
    t, power = np.asarray(t_s, dtype=np.float64), np.asarray(power_w, dtype=np.float64)
    read = np.isfinite(power)
    t, power = t[read], power[read]
    n_before = int(np.searchsorted(t, load_s, side="right"))
    baseline = _Baseline(t[:n_before], power[:n_before])
    if n_before < MIN_BEFORE:
        return None
    examined = int(read[:examined].sum())
    for end in range(max(n_before + MIN_LEVEL, examined + 1), len(t) + 1):
        # the latest readings, as many as a level must last and have
        now_s = float(t[end - 1])
        since_s = now_s - max(LEVEL_S, WAITED_SHARE * (now_s - load_s))
        n_earlier = int(np.searchsorted(t[n_before:end], since_s, side="right")) - 1
        n_earlier = min(n_earlier, end - n_before - MIN_LEVEL)
        if n_earlier < 0:
            continue
        level = slice(n_before + n_earlier, end)
        if baseline.is_new_level(t[level], power[level]):
            level_w = float(power[level].mean())
            n_left = baseline.n_before_new_level(power[level], level_w)
            followed_s = float(t[level][n_left])
            return Transition(followed_s, now_s, followed_s - load_s, baseline.mean_w, level_w)
    return None


class _Baseline:
    """The power before the load: readings (n,), s and W."""

    def __init__(self, t: np.ndarray, power: np.ndarray) -> None:
        self.n = len(t)
        self.mean_w = float(power.mean()) if self.n else math.nan
        self.middle_s = float(t.mean()) if self.n else math.nan
        self.sd_w = _noise(power)
        self._slope, self._slope_error = 0.0, 0.0  # W/s
        spread = float(((t - self.middle_s) ** 2).sum()) if self.n else 0.0
        if spread > 0.0:
            self._slope = float(((t - self.middle_s) * (power - self.mean_w)).sum()) / spread
            self._slope_error = 1.0 / math.sqrt(spread)  # times the noise

    def n_before_new_level(self, power: np.ndarray, level_w: float) -> int:
        """Return how many readings at the start are nearer to the old power than to the level."""
        is_nearer = np.abs(power - self.mean_w) < np.abs(power - level_w)
        return int(np.argmin(is_nearer))  # index of the first False; a mean is near to some reading

    def is_new_level(self, t: np.ndarray, power: np.ndarray) -> bool:
        """Return whether readings are of one steady power that differs from that before.

        t, power : (m,), s and W. See the module's text for both conditions.
        """
        half = len(power) // 2
        # of a loop that stalls in each mini-batch the deviation from the mean, which is smaller
        sd_w = min(_noise(power), float(power.std(ddof=1)))
        before_sd_w = self.sd_w
        if self.n < FEW:
            sd_w = before_sd_w = max(sd_w, before_sd_w)
        step_w = float(power.mean()) - self.mean_w
        halves_w = abs(float(power[-half:].mean()) - float(power[:half].mean()))
        halves_error_w = HALVES_ERRORS * sd_w * math.sqrt(2.0 / half)
        if halves_w > max(HALVES_SHARE * abs(step_w), halves_error_w):
            return False
        waited_s = float(t.mean()) - self.middle_s
        error_w = STEP_ERRORS * math.hypot(
            before_sd_w / math.sqrt(self.n), sd_w / math.sqrt(len(power))
        )
        drift_error_w = DRIFT_ERRORS * before_sd_w * self._slope_error * waited_s
        least_w = max(STEP_SHARE * abs(self.mean_w), math.hypot(error_w, drift_error_w))
        undrifted_w = step_w - self._slope * waited_s
        return step_w * undrifted_w > 0 and min(abs(step_w), abs(undrifted_w)) > least_w


def _noise(power: np.ndarray) -> float:
    """Return the standard deviation of readings about a line, W; 0: too few readings."""
    if len(power) < MIN_BEFORE:
        return 0.0
    return math.sqrt(float((np.diff(power, 2) ** 2).mean()) / 6.0)
