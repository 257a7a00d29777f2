"""Gaussian process of scikit-learn on the logarithms of cores and clocks.

A power law in cores and clocks, and a smooth deviation from it; one value per mode, the mean of its
epochs. Kernel parameters are the likeliest within bounds: four modes say little about them.
scikit-learn fits; the stored model holds training values and kernel parameters, and predicts with
numpy alone.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import LOGS, design
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Method, Predictor

SLOPE = 0.5  # standard deviation of each exponent of the power law: physics has them up to one
DEVIATION = (0.02, 0.5)  # bounds of the standard deviation of the smooth part, relative
LENGTH = (0.3, 3.0)  # bounds of the distance over which it changes, natural logarithms
NOISE = 0.01  # standard deviation of one mode's mean, relative (SIGMETRICS 2023, section 5.4)
LEAST_MODES = 2


@dataclass(frozen=True, eq=False)
class GaussianProcess(Predictor):
    """Logarithm of the target as a Gaussian process.

    Attributes
    ----------
    rows : (m, 4), logarithms of cores and clocks of the training modes
    values : (m,), logarithms of the observed means
    deviation, length : kernel parameters, of which the constants of this module are bounds
    """

    target: str
    trained_on: Numbers
    rows: Numbers
    values: Numbers
    deviation: float
    length: float

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        return np.asarray(np.exp(self._mean(self._covariance(_rows(modes), self.rows))))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers]:
        """Return bounds that hold an observation with probability `level`, shape (n,) each."""
        rows = _rows(modes)
        shared = self._covariance(rows, self.rows)
        centred = rows - self.rows.mean(0)
        whole = SLOPE**2 * (centred**2).sum(1) + self.deviation**2
        explained = ((shared @ self._inverse) * shared).sum(1)
        sd = np.sqrt(np.maximum(whole - explained, 0.0) + NOISE**2)
        far = NormalDist().inv_cdf((1 + level) / 2) * sd
        mean = self._mean(shared)
        return np.exp(mean - far), np.exp(mean + far)

    def _mean(self, shared: Numbers) -> Numbers:
        level = self.values.mean()
        return np.asarray(level + shared @ self._inverse @ (self.values - level))

    def _covariance(self, some: Numbers, others: Numbers) -> Numbers:
        """Return the covariance of the noiseless process, shape (n, m)."""
        centre = self.rows.mean(0)
        apart = ((some[:, None] - others) ** 2).sum(-1)
        trend = SLOPE**2 * (some - centre) @ (others - centre).T
        return np.asarray(trend + self.deviation**2 * np.exp(-apart / (2 * self.length**2)))

    @cached_property
    def _inverse(self) -> Numbers:
        noise = NOISE**2 * np.eye(len(self.rows))
        return np.asarray(np.linalg.inv(self._covariance(self.rows, self.rows) + noise))

    def to_json(self) -> dict[str, Any]:
        """Return training values and kernel parameters, which `from_json` reads."""
        return {
            "target": self.target,
            "trained_on": self.trained_on.tolist(),
            "rows": self.rows.tolist(),
            "values": self.values.tolist(),
            "deviation": self.deviation,
            "length": self.length,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "GaussianProcess":
        """Return a model from `to_json`."""
        arrays = {name: np.array(data[name], float) for name in ("trained_on", "rows", "values")}
        return cls(**{**data, **arrays})


def _rows(modes: ArrayLike) -> Numbers:
    return design(LOGS, as_rows(modes), processes=0)


def fit_gaussian_process(observations: Observations, context: Context) -> GaussianProcess:
    """Return the process with the likeliest kernel parameters.

    Raises
    ------
    PredictionError : fewer than two distinct modes, or power that was not measured
    """
    from sklearn import config_context
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    observations.need_modes(LEAST_MODES)
    if context.target != TIME:
        observations.need_energy()
    means = observations.per_mode()
    rows, values = _rows(means.modes), np.log(getattr(means, context.target))
    trend = ConstantKernel(SLOPE**2, "fixed") * DotProduct(0.0, "fixed")
    smooth = ConstantKernel(0.1**2, np.square(DEVIATION)) * RBF(1.0, LENGTH)
    kernel = trend + smooth + WhiteKernel(NOISE**2, "fixed")
    checks = config_context(assume_finite=True, skip_parameter_validation=True)
    with checks, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few modes leave parameters at their bounds
        process = GaussianProcessRegressor(kernel).fit(rows - rows.mean(0), values - values.mean())
    variance, length = np.exp(process.kernel_.theta)
    return GaussianProcess(
        target=context.target,
        trained_on=means.modes,
        rows=rows,
        values=values,
        deviation=float(np.sqrt(variance)),
        length=float(length),
    )


METHOD = Method("Gaussian process", (TIME, POWER), fit_gaussian_process, GaussianProcess.from_json)
