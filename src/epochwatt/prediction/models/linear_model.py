"""Linear models of time or power: coefficients that predict with numpy alone."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows
from epochwatt.prediction.models.features import design
from epochwatt.prediction.models.priors import OWN, PRIOR_TILT
from epochwatt.prediction.models.residual_gp import Deviations
from epochwatt.prediction.predictor import LEVEL, Json, Predictor, Prior, bounds

N_FOR_MEAN = 100  # draws; of 29,232 modes in a quarter of a second
LEAST = 1e-3  # of what was observed: a draw that expects less still says no more by it


@dataclass(frozen=True, eq=False)
class LinearModel(Predictor):
    """A sum of terms; its exponential where `log`; on top of a prior where it has one.

    Where it keeps what was observed, it follows that near the profiled modes (`deviations`).
    """

    target: str  # what it predicts, with its unit: time_s, power_w
    terms: tuple[str, ...]  # names of `shapes`, k of them
    coefficients: Numbers  # (k,)
    processes: int  # processes that want a CPU core, for the terms that count them
    trained_on: Numbers  # (m, 6), the distinct modes it was fitted to
    log: bool = False  # whether the sum is the logarithm of the target
    # (m,), of each of these modes; empty: predictions are the plain sum
    observed: Numbers = field(default_factory=lambda: np.empty(0))
    nugget: float = OWN  # standard deviation of what is each mode's own, in deviations
    # (d, k), coefficients that fit the observations about as well; empty: no interval
    draws: Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    # (d,), relative standard deviation of an observation about the sum, far from all that was
    # profiled, of each draw
    spread: Numbers = field(default_factory=lambda: np.empty(0), repr=False)
    # function of modes that the prediction is a factor on; None: there is none
    prior: Prior | None = field(default=None, repr=False)

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        rows = as_rows(modes)
        return self._values(rows, self.coefficients) * self._followed(rows, self.coefficients)

    def fits(self, modes: ArrayLike) -> Numbers:
        """Return what each of `N_FOR_MEAN` draws expects in each mode, shape (n, d)."""
        if not len(self.draws):
            return super().fits(modes)
        rows, some = as_rows(modes), self.draws[:N_FOR_MEAN].T
        return np.asarray(self._values(rows, some) * self._followed(rows, some))

    def sample(self, modes: ArrayLike) -> Numbers | None:
        """Return what an observation in each mode may be, shape (d, n), the same at each call."""
        if not len(self.draws):
            return None
        rows = as_rows(modes)
        values = (self._values(rows, self.draws.T) * self._followed(rows, self.draws.T)).T
        noise = np.random.default_rng(2).standard_normal(values.shape)  # not the seed of the draws
        spread = np.sqrt(self.deviations.left_open(rows)) * self.spread[:, None]
        return np.asarray(values * np.exp(spread * noise))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers] | None:
        """Return bounds that hold an observation with probability `level`; None without draws."""
        sample = self.sample(modes)
        return None if sample is None else bounds(sample, level)

    def _values(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Return values, shape (n,) or (n, d)."""
        values = design(self.terms, rows, self.processes) @ coefficients
        values = np.exp(values) if self.log else values
        if self.prior is not None:
            expected = np.asarray(self.prior(rows), float)
            values = (values.T * expected).T
        return values

    @cached_property
    def deviations(self) -> Deviations:
        """Deviations of observations from the sum."""
        return Deviations(self.trained_on, 0.0 if self.prior is None else PRIOR_TILT, self.nugget)

    def _followed(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Return by what factor observations nearby lead away from the sum, (n,) or (n, d)."""
        if not len(self.observed):
            return np.ones(())
        off = self._off(coefficients)
        return np.asarray(np.exp(self.deviations.weights(rows) @ off.T))

    def _off(self, coefficients: Numbers) -> Numbers:
        """Return the logarithm of observed over expected in the profiled modes, (m,) or (d, m)."""
        expected = self._values(self.trained_on, coefficients).T
        return np.asarray(np.log(self.observed / np.maximum(expected, LEAST * self.observed)))

    def residuals(self) -> Numbers:
        """Return what the sum leaves over in the profiled modes, made independent, shape (m,)."""
        if not len(self.observed):
            return np.empty(0)
        return np.asarray(self.deviations.whitening() @ self._off(self.coefficients))

    def to_json(self) -> Json:
        """Return the fields as JSON data.

        Raises PredictionError: it stands on a prior, which is a function.
        """
        if self.prior is not None:
            raise PredictionError(f"a model of {self.target} on a prior cannot be stored")
        return super().to_json()
