"""Fit all targets of a method; energy is time x power, of two predictors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Numbers
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.priors import TIME_WITH_POWER, TIME_WITH_POWER_WEIGHT
from epochwatt.prediction.names import ENERGY, POWER, TIME
from epochwatt.prediction.predictor import (
    LEVEL,
    Context,
    Method,
    Predictor,
    Prior,
    Reference,
    bounds,
)

Priors = Mapping[str, Prior]  # target -> what is expected before any run


@dataclass(frozen=True, eq=False)
class TimesPower(Predictor):
    """Energy of an epoch, Wh; with intervals where both predictors have them."""

    # time, power: predictors of one workload
    time: Predictor
    power: Predictor
    target: str = ENERGY

    @cached_property
    def trained_on(self) -> Numbers:  # type: ignore[override]
        """Distinct modes that either learned from, shape (m, 6)."""
        return np.unique(np.concatenate([self.time.trained_on, self.power.trained_on]), axis=0)

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the energy in each mode, Wh, shape (n,)."""
        return self.time.predict(modes) * self.power.predict(modes) / 3600

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers] | None:
        """Return bounds of the energy, Wh, shape (n,) each; None where one has no interval."""
        samples = sample_both(self.time, self.power, modes)
        return None if samples is None else bounds(samples[0] * samples[1] / 3600, level)


def predictors(
    method: Method,
    observations: Observations,
    networks: Sequence[Observations] = (),
    priors: Priors | None = None,
    intervals: bool = False,
    reference: Reference | None = None,
    cache: Path | None = None,
) -> dict[str, Predictor]:
    """Fit a predictor of each target of a method; of energy too where time and power are.

    Targets that need power are left out where it was not measured. Parameters as of `Context`.
    """

    def is_measured(rows: Observations, target: str) -> bool:
        return target == TIME or not np.isnan(rows.power_w).any()

    fitted = {}
    for target in method.targets:
        if is_measured(observations, target):
            measured = [rows for rows in networks if is_measured(rows, target)]
            prior = (priors or {}).get(target)
            context = Context(target, measured, prior, intervals, reference, cache)
            fitted[target] = method.fit(observations, context)
    return with_energy(fitted)


def with_energy(fitted: dict[str, Predictor]) -> dict[str, Predictor]:
    """Return the predictors by target, with energy as time x power where it alone is missing."""
    if ENERGY not in fitted and {TIME, POWER} <= fitted.keys():
        return fitted | {ENERGY: TimesPower(fitted[TIME], fitted[POWER])}
    return fitted


def sample_both(
    time: Predictor, power: Predictor, modes: ArrayLike
) -> tuple[Numbers, Numbers] | None:
    """Return joint samples of epoch time, s, and power, W, in each mode, shape (d, n) each.

    Each column holds the predictor's own sample, in an order that makes longer epochs draw less
    (Iman and Conover, 1982): the draws of one do not depend on those of the other. None where one
    has no interval.
    """
    seconds, watts = time.sample(modes), power.sample(modes)
    if seconds is None or watts is None:
        return None
    n_draws = min(len(seconds), len(watts))
    seconds, watts = seconds[:n_draws], watts[:n_draws]
    scores = np.array([NormalDist().inv_cdf((n + 0.5) / n_draws) for n in range(n_draws)])

    def ranks(sample: Numbers) -> NDArray[np.intp]:
        return sample.argsort(axis=0).argsort(axis=0)

    # scores of power that correlate with those of time: their ranks are those of the watts
    correlation = time_with_power(time, power)
    noise = np.random.default_rng(1).standard_normal(seconds.shape)
    watt_scores = correlation * scores[ranks(seconds)] + np.sqrt(1 - correlation**2) * noise
    return seconds, np.take_along_axis(np.sort(watts, axis=0), ranks(watt_scores), axis=0)


def time_with_power(time: Predictor, power: Predictor) -> float:
    """Return the correlation of deviations of time and power, from belief and residuals.

    The belief alone counts where the predictors have no residuals in the same modes.
    """
    of_time, of_power = time.residuals(), power.residuals()
    if not (len(of_time) and np.array_equal(time.trained_on, power.trained_on)):
        return TIME_WITH_POWER
    size = np.sqrt((of_time @ of_time) * (of_power @ of_power))
    if not size > 0:
        return TIME_WITH_POWER
    shown, n_modes = float(of_time @ of_power / size), len(of_time)
    weighted = TIME_WITH_POWER_WEIGHT * TIME_WITH_POWER + n_modes * shown
    return weighted / (TIME_WITH_POWER_WEIGHT + n_modes)
