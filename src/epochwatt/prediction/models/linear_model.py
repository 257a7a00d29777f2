"""Linear models of time or power, and intervals that hold from few modes.

Distribution-free intervals (jackknife+, conformal) of 90 % need nine or more modes: with four, the
bound they can promise is infinite. So the intervals here rest on what was observed and on a belief
(`priors`) about the size of deviations and about the coefficients. Each draw takes a size of
deviation from its posterior, lets observations and belief deviate by their own sizes, and fits
again (randomised maximum likelihood: Oliver, He and Reynolds, 1996; exact for a linear model of
Gaussian deviations). Where few modes leave a coefficient open, the draws differ and the interval is
wide. In a mode unlike all profiled ones, the model's error is as wide as the belief says
(`residual_gp`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import design
from epochwatt.prediction.models.priors import (
    DEVIATION,
    DEVIATION_WEIGHT,
    LESS_BELIEVED,
    OWN,
    OWNS,
    PRIOR_TILT,
)
from epochwatt.prediction.models.residual_gp import Deviations
from epochwatt.prediction.predictor import LEVEL, SAMPLE_SEED, Json, Predictor, Prior, bounds

N_DRAWS = 400
N_FOR_MEAN = 100  # draws; of 29,232 modes in a quarter of a second
LEAST = 1e-3  # of what was observed: a draw that expects less still says no more by it

Solver = Callable[[Numbers, Numbers, Numbers, Numbers, float], Numbers]


@dataclass(frozen=True, eq=False)
class LinearModel(Predictor):
    """A sum of terms; its exponential where `log`; on top of a prior where it has one.

    Where it keeps what was observed, it follows that near the profiled modes (`deviations`).
    """

    target: str  # what it predicts, with its unit: time_s, power_w
    terms: tuple[str, ...]  # of `features`, k of them
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
        return self._expected(as_rows(modes), self.coefficients)

    def fits(self, modes: ArrayLike) -> Numbers:
        """Return what each of `N_FOR_MEAN` draws expects in each mode, shape (n, d)."""
        if not len(self.draws):
            return super().fits(modes)
        return self._expected(as_rows(modes), self.draws[:N_FOR_MEAN].T)

    def sample(self, modes: ArrayLike) -> Numbers | None:
        """Return what an observation in each mode may be, shape (d, n), the same at each call."""
        if not len(self.draws):
            return None
        rows = as_rows(modes)
        values = self._expected(rows, self.draws.T).T
        noise = np.random.default_rng(SAMPLE_SEED).standard_normal(values.shape)
        spread = np.sqrt(self.deviations.left_open(rows)) * self.spread[:, None]
        return np.asarray(values * np.exp(spread * noise))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers] | None:
        """Return bounds that hold an observation with probability `level`; None without draws."""
        sample = self.sample(modes)
        return None if sample is None else bounds(sample, level)

    @cached_property
    def deviations(self) -> Deviations:
        """Deviations of observations from the sum."""
        return Deviations(self.trained_on, 0.0 if self.prior is None else PRIOR_TILT, self.nugget)

    def _expected(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Predict from coefficients (k,) or (k, d), with deviations nearby: (n,) or (n, d)."""
        values = self._sum(rows, coefficients)
        if not len(self.observed):
            return values
        log_ratios = self._log_ratios(coefficients)
        return np.asarray(values * np.exp(self.deviations.weights(rows) @ log_ratios.T))

    def _sum(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Return the sum of terms, its exponential where `log`, times the prior: (n,) or (n, d)."""
        values = design(self.terms, rows, self.processes) @ coefficients
        if self.log:
            values = np.exp(values)
        if self.prior is not None:
            values = (values.T * np.asarray(self.prior(rows), float)).T
        return values

    def _log_ratios(self, coefficients: Numbers) -> Numbers:
        """Return the logarithm of observed over expected in the profiled modes, (m,) or (d, m)."""
        expected = self._sum(self.trained_on, coefficients).T
        return np.asarray(np.log(self.observed / np.maximum(expected, LEAST * self.observed)))

    def residuals(self) -> Numbers:
        """Return log(observed / sum) in the profiled modes, decorrelated, shape (m,)."""
        if not len(self.observed):
            return np.empty(0)
        return np.asarray(self.deviations.whitening() @ self._log_ratios(self.coefficients))

    def to_json(self) -> Json:
        """Return the fields as JSON data.

        Raises PredictionError: it stands on a prior, which is a function.
        """
        if self.prior is not None:
            raise PredictionError(f"a model of {self.target} on a prior cannot be stored")
        return super().to_json()


def _system(
    rows: Numbers, target: Numbers, mean: Numbers, sd: Numbers, deviation: float
) -> tuple[Numbers, Numbers]:
    """Return matrix and right side of the least squares of `fit_nonnegative`."""
    matrix = np.vstack([rows / deviation, np.diag(1 / sd)])
    return matrix, np.concatenate([target / deviation, mean / sd])


def fit_nonnegative(
    rows: Numbers, target: Numbers, mean: Numbers, sd: Numbers, deviation: float
) -> Numbers:
    """Return the non-negative coefficients nearest to target and belief, shape (k,).

    Minimises |rows c - target|^2 / deviation^2 + |(c - mean) / sd|^2 over c >= 0.
    """
    from scipy.optimize import nnls  # slow to import, and who predicts needs none of it

    return nnls(*_system(rows, target, mean, sd, deviation))[0]


def fit_free(
    rows: Numbers, target: Numbers, mean: Numbers, sd: Numbers, deviation: float
) -> Numbers:
    """Return the coefficients that minimise what `fit_nonnegative` does, of any sign."""
    matrix, right_side = _system(rows, target, mean, sd, deviation)
    return np.asarray(np.linalg.lstsq(matrix, right_side, rcond=None)[0], float)


def likeliest(
    fit: Solver,
    rows: Numbers,
    target: Numbers,
    mean: Numbers,
    sd: Numbers,
    profiled: Numbers,
    tilt: float = 0.0,
) -> tuple[float, Numbers, Numbers]:
    """Choose the size of each mode's own deviation (of `OWNS`) that makes target (n,) likeliest.

    Returns it, what then makes deviations independent (n, n), and the coefficients (k,).

    What is each mode's own must not be followed: where modes that are close to each other differ
    by more than they should, following both would bend the prediction around them. `profiled` are
    the distinct modes of the rows, (n, 6).
    """
    whitenings = Deviations(profiled, tilt).whitenings(OWNS)
    fits = [fit(white @ rows, white @ target, mean, sd, DEVIATION) for white in whitenings]

    def log_posterior(number: int) -> float:
        white, coefficients = whitenings[number], fits[number]
        residuals = white @ (rows @ coefficients - target)
        # the size of deviations is integrated out, the coefficients are the best ones
        half_n = (DEVIATION_WEIGHT + len(residuals)) / 2
        likelihood = -half_n * np.log(DEVIATION_WEIGHT * DEVIATION**2 + residuals @ residuals)
        belief = -0.5 * (((coefficients - mean) / sd) ** 2).sum() - LESS_BELIEVED * number
        return float(likelihood + belief + np.log(np.diag(white)).sum())

    best = max(range(len(OWNS)), key=log_posterior)
    return OWNS[best], whitenings[best], fits[best]


class Fit(NamedTuple):
    """Coefficients that agree with observations and belief."""

    coefficients: Numbers  # (k,)
    draws: Numbers  # (d, k), others that agree about as well
    spread: Numbers  # (d,), the relative deviation of each
    nugget: float  # as of `Deviations`

    def model(
        self,
        target: str,
        terms: tuple[str, ...],
        means: Observations,
        unscale: Callable[[Numbers], Numbers],
        log: bool = False,
        prior: Prior | None = None,
    ) -> LinearModel:
        """Build the model; `unscale` turns fitted coefficients (d, k) into those of the terms."""
        return LinearModel(
            target=target,
            terms=terms,
            coefficients=unscale(self.coefficients[None])[0],
            processes=means.processes,
            trained_on=means.modes,
            log=log,
            observed=means.values(target),
            nugget=self.nugget,
            draws=unscale(self.draws),
            spread=self.spread,
            prior=prior,
        )


def fit_and_draw(
    fit: Solver,
    rows: Numbers,
    target: Numbers,
    mean: Numbers,
    sd: Numbers,
    profiled: Numbers,
    n_draws: int = N_DRAWS,
    tilt: float = 0.0,
) -> Fit:
    """Fit coefficients and, for an interval, draw `n_draws` others from their posterior.

    Rows (n, k) and target (n,) are in units in which a deviation is relative, mean and sd (k,) the
    belief about the coefficients, `profiled` the distinct modes (n, 6).
    """
    nugget, white, coefficients = likeliest(fit, rows, target, mean, sd, profiled, tilt)
    if not n_draws:
        return Fit(coefficients, np.empty((0, len(mean))), np.empty(0), nugget)
    rows, target = white @ rows, white @ target
    rng = np.random.default_rng(0)
    information = rows.T @ rows / DEVIATION**2
    n_effective = np.trace(np.linalg.solve(information + np.diag(sd**-2.0), information))
    n_free = max(len(target) - n_effective, 0.0)  # degrees of freedom that the fit leaves
    residuals = rows @ coefficients - target
    total = DEVIATION_WEIGHT * DEVIATION**2 + float(residuals @ residuals)
    spread = np.sqrt(total / rng.chisquare(DEVIATION_WEIGHT + n_free, n_draws))
    targets = target + spread[:, None] * rng.standard_normal((n_draws, len(target)))
    means = mean + sd * rng.standard_normal((n_draws, len(mean)))
    draws = [fit(rows, t, m, sd, s) for t, m, s in zip(targets, means, spread, strict=True)]
    return Fit(coefficients, np.array(draws), spread, nugget)
