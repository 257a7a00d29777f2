"""A fitted model: coefficients that predict by themselves, with numpy and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.models.features import design
from epochwatt.prediction.models.priors import (
    OWN,
    PRIOR_TILT,
    TIME_WITH_POWER,
    TIME_WITH_POWER_WEIGHT,
)
from epochwatt.prediction.models.residual_gp import Deviations

Prior = Callable[[Numbers], Numbers]  # modes (n, 5) -> what is expected of them before any run (n,)

SCHEMA_VERSION = 2
N_FOR_MEAN = 100  # draws; of 29,232 modes in a quarter of a second
LEAST = 1e-3  # of what was observed: a draw that expects less still says no more by it


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A sum of terms; its exponential where `log`; on top of a prior where it has one.

    Where it keeps what was observed, it follows that near the profiled modes (`deviations`).

    Attributes
    ----------
    target : what it predicts, with its unit: time_s, power_w
    terms : names of `shapes`, k of them
    coefficients : (k,)
    processes : processes that want a CPU core, for the terms that count them
    trained_on : (m, 5), the distinct modes it was fitted to
    log : whether the sum is the logarithm of the target
    prior : name of the function of modes that the prediction is a factor on; empty: none
    observed : (m,), of each of these modes; empty: predictions are the plain sum
    own : standard deviation of what is each mode's own, in deviations
    draws : (d, k), coefficients that fit the observations about as well; empty: no interval
    spread : (d,), relative standard deviation of an observation about the sum, far from all that
        was profiled, of each draw
    prior_of : that function
    """

    target: str
    terms: tuple[str, ...]
    coefficients: Numbers
    processes: int
    trained_on: Numbers
    log: bool = False
    prior: str = ""
    observed: Numbers = field(default_factory=lambda: np.empty(0))
    own: float = OWN
    draws: Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    spread: Numbers = field(default_factory=lambda: np.empty(0), repr=False)
    prior_of: Prior | None = field(default=None, repr=False)

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        rows = as_rows(modes)
        return self._values(rows, self.coefficients) * self._followed(rows, self.coefficients)

    def mean(self, modes: ArrayLike) -> Numbers:
        """Return the mean of what some of the draws expect in each mode, shape (n,).

        A term that the best fit does without is there in other fits that agree about as well. So
        the best of many modes is less often one that the model merely knows nothing of.

        Raises
        ------
        PredictionError : the model states no interval
        """
        return np.asarray(self.some_fits(modes).mean(1))

    def some_fits(self, modes: ArrayLike) -> Numbers:
        """Return what each of `N_FOR_MEAN` draws expects in each mode, shape (n, d).

        Raises
        ------
        PredictionError : the model states no interval
        """
        self._need_draws()
        rows, some = as_rows(modes), self.draws[:N_FOR_MEAN].T
        return np.asarray(self._values(rows, some) * self._followed(rows, some))

    def sample(self, modes: ArrayLike) -> Numbers:
        """Return what an observation in each mode may be, shape (d, n), the same at each call.

        Raises
        ------
        PredictionError : the model states no interval
        """
        self._need_draws()
        rows = as_rows(modes)
        values = (self._values(rows, self.draws.T) * self._followed(rows, self.draws.T)).T
        noise = np.random.default_rng(2).standard_normal(values.shape)  # not the seed of the draws
        spread = np.sqrt(self.deviations.left_open(rows)) * self.spread[:, None]
        return np.asarray(values * np.exp(spread * noise))

    def interval(self, modes: ArrayLike, level: float = 0.9) -> tuple[Numbers, Numbers]:
        """Return lower and upper bound that hold an observation with probability `level`."""
        return bounds(self.sample(modes), level)

    def _need_draws(self) -> None:
        if not len(self.draws):
            raise PredictionError(f"this model of {self.target} states no interval")

    def _values(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Return values, shape (n,) or (n, d)."""
        values = design(self.terms, rows, self.processes) @ coefficients
        values = np.exp(values) if self.log else values
        if self.prior_of is not None:
            expected = np.asarray(self.prior_of(rows), float)
            values = (values.T * expected).T
        return values

    @cached_property
    def deviations(self) -> Deviations:
        """How observations deviate from the sum."""
        return Deviations(self.trained_on, PRIOR_TILT if self.prior else 0.0, self.own)

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

    def left_over(self) -> Numbers:
        """Return what the sum leaves over in the profiled modes, made independent, shape (m,)."""
        if not len(self.observed):
            return np.empty(0)
        return np.asarray(self.deviations.whitening() @ self._off(self.coefficients))

    def extrapolated(self, mode: Mode) -> tuple[str, ...]:
        """Return which parts of a mode lie outside all that the model was fitted to."""
        low, high = self.trained_on.min(0), self.trained_on.max(0)
        return tuple(
            name
            for name, value, a, b in zip(Mode._fields, mode, low, high, strict=True)
            if not a <= value <= b
        )

    def to_json(self) -> dict[str, Any]:
        """Return the model as JSON data: what `from_json` reads."""
        return {
            "schema_version": SCHEMA_VERSION,
            "target": self.target,
            "terms": list(self.terms),
            "coefficients": self.coefficients.tolist(),
            "processes": self.processes,
            "trained_on": self.trained_on.tolist(),
            "log": self.log,
            "prior": self.prior,
            "observed": self.observed.tolist(),
            "own": self.own,
            "draws": self.draws.tolist(),
            "spread": self.spread.tolist(),
        }


def from_json(data: Mapping[str, Any], priors: Mapping[str, Prior] | None = None) -> FittedModel:
    """Return a model from `FittedModel.to_json`.

    Parameters
    ----------
    data : as it was read from the file
    priors : name -> function, for a model that stands on one

    Raises
    ------
    PredictionError : not of this form, or of a prior that is not among `priors`
    """
    if data.get("schema_version") != SCHEMA_VERSION:
        raise PredictionError(
            f"a model of schema version {data.get('schema_version')!r}; this program reads "
            f"{SCHEMA_VERSION}: fit it again"
        )
    name, known = str(data["prior"]), priors or {}
    if name and name not in known:
        raise PredictionError(
            f"this model stands on the prior {name!r}; at hand: {', '.join(known) or 'none'}"
        )
    return FittedModel(
        target=data["target"],
        terms=tuple(data["terms"]),
        coefficients=np.array(data["coefficients"], float),
        processes=int(data["processes"]),
        trained_on=as_rows(np.array(data["trained_on"], float)),
        log=bool(data["log"]),
        prior=name,
        observed=np.array(data["observed"], float),
        own=float(data.get("own", OWN)),  # models that were fitted before it was looked for
        draws=np.array(data["draws"], float),
        spread=np.array(data["spread"], float),
        prior_of=known.get(name),
    )


def sample_both(time: FittedModel, power: FittedModel, modes: ArrayLike) -> tuple[Numbers, Numbers]:
    """Return what epochs may take, s, and draw, W, in each mode, shape (d, n) each.

    Each column holds the model's own sample, in an order that makes longer epochs draw less (Iman
    and Conover, 1982): the draws of one model do not tell those of the other.
    """
    seconds, watts = time.sample(modes), power.sample(modes)
    n_draws = len(seconds)
    normal = np.array([NormalDist().inv_cdf((n + 0.5) / n_draws) for n in range(n_draws)])
    noise = np.random.default_rng(1).standard_normal(seconds.shape)
    tied = time_with_power(time, power)
    wanted = tied * normal[_ranks(seconds)] + np.sqrt(1 - tied**2) * noise
    return seconds, np.take_along_axis(np.sort(watts, axis=0), _ranks(wanted), axis=0)


def time_with_power(time: FittedModel, power: FittedModel) -> float:
    """Return the correlation of deviations of time and power: the belief, and what modes show."""
    left = time.left_over(), power.left_over()
    size = np.sqrt((left[0] @ left[0]) * (left[1] @ left[1]))
    if not np.array_equal(time.trained_on, power.trained_on) or not size > 0:
        return TIME_WITH_POWER
    shown, n_modes = float(left[0] @ left[1] / size), len(left[0])
    whole = TIME_WITH_POWER_WEIGHT * TIME_WITH_POWER + n_modes * shown
    return whole / (TIME_WITH_POWER_WEIGHT + n_modes)


def _ranks(sample: Numbers) -> NDArray[np.intp]:
    return sample.argsort(axis=0).argsort(axis=0)


def bounds(sample: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Return the central interval of each column of a sample (d, n) that holds `level` of it."""
    low, high = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
