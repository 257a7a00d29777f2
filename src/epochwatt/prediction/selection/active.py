"""Choose the mode to profile next, given what those before have shown.

To find the fastest mode within a power limit: the mode from which the best answer is expected to
gain most (expected improvement under a constraint: Gardner et al., 2014). It is small both where a
mode is surely slower and where it surely breaks the limit, and an answer need not wait for more
profiles once each costs more than it can gain. `optimal_design` chooses the first modes, before any
run.
"""

from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.times_power import time_with_power
from epochwatt.prediction.predictor import Predictor

TIME_FIRST = "time"
OBJECTIVES = (TIME_FIRST, "energy")
LEAST_SD = 1e-9  # of a logarithm


class Gains(NamedTuple):
    """Expected gain from profiles of candidates."""

    # (n,), by which part of itself the best answer is expected to fall; infinite while no profiled
    # mode is an answer, zero for profiled modes
    gain: Numbers
    keeps: Numbers  # (n,), probability that each keeps the limit; 1 without a limit


def gains(
    time: Predictor,
    power: Predictor | None,
    candidates: Numbers,
    profiled: Observations,
    max_power_w: float | None = None,
    objective: str = TIME_FIRST,
) -> Gains:
    """Return what a profile of each candidate (n, 6) promises over the best profiled mode.

    The best is that of least time, or energy, which keeps the limit. Keeping it and being better
    count as independent.

    Raises PredictionError: a predictor that states no interval, power that is needed and not there,
    or another objective.
    """
    from scipy.special import ndtr  # slow to import

    if objective not in OBJECTIVES:
        raise PredictionError(f"the objective {objective}", allowed=", ".join(OBJECTIVES))
    if power is None and (max_power_w is not None or objective != TIME_FIRST):
        raise PredictionError("a limit of power, or the objective energy, and power is not known")
    known = set(profiled.mode_of_row)
    is_new = np.array([Mode(*row) not in known for row in candidates.tolist()], bool)
    means, keeps = profiled.per_mode(), np.ones(len(candidates))
    kept = np.ones(len(means.modes), bool)
    if max_power_w is not None and power is not None:
        means.need_energy()
        watts, watts_sd = _moments(power, candidates)
        keeps = np.asarray(ndtr((np.log(max_power_w) - watts) / watts_sd))
        kept = means.power_w <= max_power_w
    if not kept.any():
        return Gains(np.where(is_new, np.inf, 0.0), keeps)
    values, (mean, sd) = means.time_s, _moments(time, candidates)
    if objective != TIME_FIRST and power is not None:  # what takes longer draws less
        watts, watts_sd = _moments(power, candidates)
        both = 2 * time_with_power(time, power) * sd * watts_sd
        mean, values = mean + watts, means.power_w * means.time_s
        sd = np.sqrt(np.maximum(sd**2 + watts_sd**2 + both, LEAST_SD**2))
    # the mean of what a log-normal value lies below the best one, in parts of that
    log_best = float(np.log(values[kept].min()))
    z = (log_best - mean) / sd
    saved = ndtr(z) - np.exp(mean - log_best + sd**2 / 2) * ndtr(z - sd)
    return Gains(np.where(is_new, keeps * saved, 0.0), keeps)


def _moments(predictor: Predictor, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return mean and standard deviation of the logarithm of an observation, (n,) each."""
    mean, sd = predictor.log_normal(rows)
    return mean, np.maximum(sd, LEAST_SD)
