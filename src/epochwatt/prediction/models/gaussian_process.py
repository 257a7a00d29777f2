"""Gaussian process on the logarithms of cores, clocks and the power limit.

A power law in cores and clocks, and a smooth deviation from it; one value per mode, the mean of its
epochs. Kernel parameters are the likeliest of a few: four modes say little about them. Written out:
scikit-learn takes some milliseconds for each of the thousands of fits of a score table.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import log_rows
from epochwatt.prediction.models.priors import LESS_BELIEVED
from epochwatt.prediction.models.residual_gp import covariance, log_evidence
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Method, Predictor

SLOPE = 0.5  # standard deviation of each exponent of the power law: physics has them up to one
DEVIATIONS = (0.02, 0.05, 0.1, 0.2, 0.5)  # standard deviations of the smooth part, relative
LENGTHS = (0.3, 0.55, 1.0, 1.7, 3.0)  # distances over which it changes, natural logarithms
# Standard deviation of one mode's mean, relative: 1 % (SIGMETRICS 2023, section 5.4), or more where
# modes that are close to each other differ by more; each is believed e^2 times less than the one
# before (`LESS_BELIEVED`), so that four modes hardly ever say so.
NOISES = (0.01, 0.03, 0.1)


@dataclass(frozen=True, eq=False)
class GaussianProcess(Predictor):
    """Logarithm of the target as a Gaussian process."""

    target: str
    trained_on: Numbers
    # (m, k), logarithms of what tells the training modes apart (`features.log_terms`)
    rows: Numbers
    values: Numbers  # (m,), logarithms of the observed means
    # deviation, length: kernel parameters, one of `DEVIATIONS` and one of `LENGTHS`
    deviation: float
    length: float
    noise: float = NOISES[0]  # one of `NOISES`

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        return np.asarray(np.exp(self._mean(self._covariance(log_rows(modes, self.trained_on)))))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers]:
        """Return bounds that hold an observation with probability `level`, shape (n,) each."""
        rows = log_rows(modes, self.trained_on)
        shared = self._covariance(rows)
        prior_variance = SLOPE**2 * ((rows - self.rows.mean(0)) ** 2).sum(1) + self.deviation**2
        explained = ((shared @ self._inverse) * shared).sum(1)
        sd = np.sqrt(np.maximum(prior_variance - explained, 0.0) + self.noise**2)
        half_width = NormalDist().inv_cdf((1 + level) / 2) * sd
        mean = self._mean(shared)
        return np.exp(mean - half_width), np.exp(mean + half_width)

    def left_out(self) -> tuple[Numbers, Numbers]:
        """Return how far each profiled mode is from what the others expect, and the deviation."""
        variance = 1 / np.diag(self._inverse)
        return variance * (self._inverse @ (self.values - self.values.mean())), np.sqrt(variance)

    def _mean(self, shared: Numbers) -> Numbers:
        """Return the expected logarithm, (n,), from the covariance with the profiled modes."""
        level = self.values.mean()
        return np.asarray(level + shared @ self._inverse @ (self.values - level))

    def _covariance(self, rows: Numbers) -> Numbers:
        """Return the covariance of the noiseless process with the profiled modes, (n, m)."""
        centre = self.rows.mean(0)
        return covariance(rows - centre, self.rows - centre, self.length, SLOPE, self.deviation)

    @cached_property
    def _inverse(self) -> Numbers:
        noise = self.noise**2 * np.eye(len(self.rows))
        return np.asarray(np.linalg.inv(self._covariance(self.rows) + noise))


def fit_gaussian_process(observations: Observations, context: Context) -> GaussianProcess:
    """Fit the process: take the likeliest kernel parameters of the grid.

    Raises PredictionError: fewer than two distinct modes, or power that was not measured.
    """
    return _fitted(observations, context.target)


@lru_cache(maxsize=8)  # `stacked` asks for the fit to the same observations
def _fitted(observations: Observations, target: str) -> GaussianProcess:
    means = observations.means_of(target)
    rows = log_rows(means.modes, means.modes)
    values = np.log(means.values(target))
    deviations, lengths = (column.reshape(-1, 1, 1) for column in np.meshgrid(DEVIATIONS, LENGTHS))
    centred, about_mean = rows - rows.mean(0), values - values.mean()
    noiseless = covariance(centred, centred, lengths, SLOPE, deviations)
    log_posterior = np.stack(  # (noises, pairs of deviation and length)
        [
            log_evidence(noiseless + noise**2 * np.eye(len(values)), about_mean)
            - LESS_BELIEVED * number
            for number, noise in enumerate(NOISES)
        ]
    )
    noise, best = np.unravel_index(log_posterior.argmax(), log_posterior.shape)
    return GaussianProcess(
        target=target,
        trained_on=means.modes,
        rows=rows,
        values=values,
        deviation=float(deviations.ravel()[best]),
        length=float(lengths.ravel()[best]),
        noise=NOISES[noise],
    )


METHOD = Method(
    "Gaussian process",
    (TIME, POWER),
    fit_gaussian_process,
    GaussianProcess.from_json,
    parts=Mode._fields,
)
