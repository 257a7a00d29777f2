"""Gaussian process on the logarithms of cores, clocks and the power limit.

A power law in cores and clocks, and a smooth deviation from it; one value per mode, the mean of its
epochs. Kernel parameters are the likeliest of a few: four modes say little about them.
"""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import design, log_terms
from epochwatt.prediction.models.priors import LESS_BELIEVED
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Method, Predictor

SLOPE = 0.5  # standard deviation of each exponent of the power law: physics has them up to one
DEVIATIONS = (0.02, 0.05, 0.1, 0.2, 0.5)  # standard deviations of the smooth part, relative
LENGTHS = (0.3, 0.55, 1.0, 1.7, 3.0)  # distances over which it changes, natural logarithms
# Standard deviation of one mode's mean, relative: 1 % (SIGMETRICS 2023, section 5.4), or more where
# modes that are close to each other differ by more; each is believed e^2 times less than the one
# before (`LESS_BELIEVED`), so that four modes hardly ever say so.
NOISES = (0.01, 0.03, 0.1)
LEAST_MODES = 2


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
        return np.asarray(np.exp(self._mean(self._covariance(self._logs(modes), self.rows))))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers]:
        """Return bounds that hold an observation with probability `level`, shape (n,) each."""
        rows = self._logs(modes)
        shared = self._covariance(rows, self.rows)
        centred = rows - self.rows.mean(0)
        whole = SLOPE**2 * (centred**2).sum(1) + self.deviation**2
        explained = ((shared @ self._inverse) * shared).sum(1)
        sd = np.sqrt(np.maximum(whole - explained, 0.0) + self.noise**2)
        far = NormalDist().inv_cdf((1 + level) / 2) * sd
        mean = self._mean(shared)
        return np.exp(mean - far), np.exp(mean + far)

    def _logs(self, modes: ArrayLike) -> Numbers:
        return _rows(modes, self.trained_on)

    def _mean(self, shared: Numbers) -> Numbers:
        level = self.values.mean()
        return np.asarray(level + shared @ self._inverse @ (self.values - level))

    def _covariance(self, some: Numbers, others: Numbers) -> Numbers:
        """Return the covariance of the noiseless process, shape (n, m)."""
        centre = self.rows.mean(0)
        return _covariance(some - centre, others - centre, self.deviation, self.length)

    @cached_property
    def _inverse(self) -> Numbers:
        noise = self.noise**2 * np.eye(len(self.rows))
        return np.asarray(np.linalg.inv(self._covariance(self.rows, self.rows) + noise))


def _rows(modes: ArrayLike, trained_on: Numbers) -> Numbers:
    return design(log_terms(trained_on), as_rows(modes), processes=0)


def _covariance(some: Numbers, others: Numbers, deviation: ArrayLike, length: ArrayLike) -> Numbers:
    """Return the covariance of centred rows (n, k) and (m, k), shape (..., n, m)."""
    apart = ((some[:, None] - others) ** 2).sum(-1)
    smooth = np.square(deviation) * np.exp(-apart / (2 * np.square(length)))
    return np.asarray(SLOPE**2 * some @ others.T + smooth)


def fit_gaussian_process(observations: Observations, context: Context) -> GaussianProcess:
    """Return the process with the likeliest kernel parameters.

    Raises PredictionError: fewer than two distinct modes, or power that was not measured.
    """
    observations.need_modes(LEAST_MODES)
    if context.target != TIME:
        observations.need_energy()
    means = observations.per_mode()
    rows, values = _rows(means.modes, means.modes), np.log(getattr(means, context.target))
    deviations, lengths = map(np.ravel, np.meshgrid(DEVIATIONS, LENGTHS))
    evidence = np.stack(
        [
            _log_evidence(rows, values, deviations, lengths, noise) - LESS_BELIEVED * place
            for place, noise in enumerate(NOISES)
        ]
    )
    noise, best = np.unravel_index(evidence.argmax(), evidence.shape)
    return GaussianProcess(
        target=context.target,
        trained_on=means.modes,
        rows=rows,
        values=values,
        deviation=float(deviations[best]),
        length=float(lengths[best]),
        noise=NOISES[noise],
    )


def _log_evidence(
    rows: Numbers, values: Numbers, deviations: Numbers, lengths: Numbers, noise: float
) -> Numbers:
    """Return the logarithm of the probability of the values, up to a constant, shape (k,).

    Parameters
    ----------
    deviations, lengths : (k,), kernel parameters
    """
    centred, off = rows - rows.mean(0), values - values.mean()
    among = _covariance(centred, centred, deviations[:, None, None], lengths[:, None, None])
    lower = np.linalg.cholesky(among + noise**2 * np.eye(len(values)))
    white = np.linalg.solve(lower, np.broadcast_to(off[:, None], (len(lower), len(off), 1)))
    log_volume = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(-1)
    return np.asarray(-0.5 * (white**2).sum((1, 2)) - log_volume)


METHOD = Method(
    "Gaussian process",
    (TIME, POWER),
    fit_gaussian_process,
    GaussianProcess.from_json,
    parts=Mode._fields,
)
