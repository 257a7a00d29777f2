"""Choose the mode to profile next, given what those before have shown.

To find the fastest mode within a power limit: the mode from which the best answer is expected to
gain most (expected improvement under a constraint: Gardner et al., 2014). It is small both where a
mode is surely slower and where it surely breaks the limit, and an answer need not wait for more
profiles once each costs more than it can gain. `optimal_design` chooses the first modes, before any
run.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """Return what a profile of each candidate promises over the best profiled mode.

    The best is that of least time, or energy, which keeps the limit. Keeping it and being better
    count as independent.

    Raises PredictionError: a predictor that states no interval, power that is needed and not there,
    or another objective.

    Parameters
    ----------
    time, power : predictors of one workload; power may be None without a limit, for `time`
    candidates : (n, 6)
    """
    if objective not in OBJECTIVES:
        raise PredictionError(f"the objective {objective}", allowed=", ".join(OBJECTIVES))
    is_new = ~_is_profiled(candidates, profiled)
    means, keeps = profiled.per_mode(), np.ones(len(candidates))
    kept = np.ones(len(means.modes), bool)
    if max_power_w is not None:
        means.need_energy()
        mean, sd = _moments(_needed(power), candidates)
        keeps = _below((np.log(max_power_w) - mean) / sd)
        kept = means.power_w <= max_power_w
    if not kept.any():
        return Gains(np.where(is_new, np.inf, 0.0), keeps)
    if objective == TIME_FIRST:
        values, expected = means.time_s, _moments(time, candidates)
    else:
        values, expected = (
            means.power_w * means.time_s,
            _of_energy(time, _needed(power), candidates),
        )
    gain = keeps * _saved(float(np.log(values[kept].min())), *expected)
    return Gains(np.where(is_new, gain, 0.0), keeps)


def _is_profiled(candidates: Numbers, profiled: Observations) -> NDArray[np.bool_]:
    modes = set(profiled.mode_of_row)
    return np.array([Mode(*row) in modes for row in candidates.tolist()], bool)


def _needed(power: Predictor | None) -> Predictor:
    if power is None:
        raise PredictionError("a limit of power, or the objective energy, and power is not known")
    return power


def _moments(predictor: Predictor, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return mean and standard deviation of the logarithm of an observation, (n,) each."""
    mean, sd = predictor.log_normal(rows)
    return mean, np.maximum(sd, LEAST_SD)


def _of_energy(time: Predictor, power: Predictor, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return the same of the product: what takes longer draws less."""
    (seconds, sd), (watts, sd_power) = _moments(time, rows), _moments(power, rows)
    both = 2 * time_with_power(time, power) * sd * sd_power
    return seconds + watts, np.sqrt(np.maximum(sd**2 + sd_power**2 + both, LEAST_SD**2))


def _saved(log_best: float, mean: Numbers, sd: Numbers) -> Numbers:
    """Return the mean of what a log-normal value lies below the best one, in parts of that."""
    z = (log_best - mean) / sd
    return np.asarray(_below(z) - np.exp(mean - log_best + sd**2 / 2) * _below(z - sd))


def _below(values: Numbers) -> Numbers:
    """Return the probability that a standard normal number is below each value."""
    from scipy.special import ndtr  # slow to import

    return np.asarray(ndtr(values))
