"""How far the next epoch may be from what was measured once, and whether it then breaks the limit.

A measured mode needs no prediction, but it was measured once. What the next time may differ by is
the larger of what is known of repeats, and of what the fitted models call each mode's own.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.predictor import LEVEL, Predictor
from epochwatt.prediction.profile.bench import Measured
from epochwatt.prediction.recommend.recommend import Estimate

# ASSUME: relative standard deviation of one measurement about the next; epochs and units differ by
# about 1 % (SIGMETRICS 2023, section 5.4). What a sensor is off by all the time is in neither.
REPEAT_SD = 0.01
_FAR = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Outlook(NamedTuple):
    """What the next epoch in a measured mode may be, and how probably it breaks the limit."""

    # `time_s`, and with power `power_w` and `energy_j`: measured value, 90 % interval
    estimates: dict[str, Estimate]
    risk: float | None  # None: there is no limit of power


def outlook(
    one: Measured, time: Predictor, power: Predictor | None, max_power_w: float | None
) -> Outlook:
    """Return the outlook of a measured mode."""
    time_sd = float(np.hypot(_sd(time, one), one.time_sd_s / one.time_s))
    estimates = {"time_s": _estimate(one.time_s, time_sd)}
    if power is None:
        return Outlook(estimates, None)
    power_sd = _sd(power, one)
    estimates["power_w"] = _estimate(one.power_w, power_sd)
    estimates["energy_j"] = _estimate(one.energy_j, float(np.hypot(time_sd, power_sd)))
    if max_power_w is None:
        return Outlook(estimates, None)
    return Outlook(estimates, NormalDist().cdf(np.log(one.power_w / max_power_w) / power_sd))


def _sd(predictor: Predictor, one: Measured) -> float:
    """Return the relative standard deviation of another measurement of the mode."""
    interval = predictor.interval(as_rows([one.mode]))
    if interval is None:
        return REPEAT_SD
    return max(REPEAT_SD, float(np.log(interval[1] / interval[0])[0]) / (2 * _FAR))


def _estimate(value: float, sd: float) -> Estimate:
    return Estimate(value, float(value * np.exp(-_FAR * sd)), float(value * np.exp(_FAR * sd)))
