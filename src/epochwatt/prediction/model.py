"""A fitted model: coefficients that predict by themselves, with numpy and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.beliefs import CURVATURES, PRIOR_CURVATURE
from epochwatt.prediction.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.shapes import design

Prior = Callable[[Numbers], Numbers]  # modes (n, 4) -> what is expected of them before any run (n,)

SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A sum of terms; its exponential where `log`; on top of a prior where it has one.

    Attributes
    ----------
    target : what it predicts, with its unit: time_s, power_w
    terms : names of `shapes`, k of them
    coefficients : (k,)
    processes : processes that want a CPU core, for the terms that count them
    trained_on : (m, 4), the distinct modes it was fitted to
    log : whether the sum is the logarithm of the target
    prior : name of the function of modes that the prediction is a factor on; empty: none
    draws : (d, k), coefficients that fit the observations about as well; empty: no interval
    spread : (d,), relative standard deviation of an observation about the model, of each draw
    prior_of : that function
    """

    target: str
    terms: tuple[str, ...]
    coefficients: Numbers
    processes: int
    trained_on: Numbers
    log: bool = False
    prior: str = ""
    draws: Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    spread: Numbers = field(default_factory=lambda: np.empty(0), repr=False)
    prior_of: Prior | None = field(default=None, repr=False)

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        return self._values(as_rows(modes), self.coefficients)

    def sample(self, modes: ArrayLike) -> Numbers:
        """Return what an observation in each mode may be, shape (d, n), the same at each call.

        Raises
        ------
        PredictionError : the model states no interval
        """
        if not len(self.draws):
            raise PredictionError(f"this model of {self.target} states no interval")
        rows = as_rows(modes)
        values = self._values(rows, self.draws.T).T
        noise = np.random.default_rng(0).standard_normal(values.shape)
        curvature = PRIOR_CURVATURE if self.prior else CURVATURES[self.target]
        bend = curvature * distances(rows, self.trained_on) ** 2
        return values * np.exp(np.hypot(self.spread[:, None], bend) * noise)

    def interval(self, modes: ArrayLike, level: float = 0.9) -> tuple[Numbers, Numbers]:
        """Return lower and upper bound that hold an observation with probability `level`."""
        return bounds(self.sample(modes), level)

    def _values(self, rows: Numbers, coefficients: Numbers) -> Numbers:
        """Return values, shape (n,) or (n, d)."""
        values = design(self.terms, rows, self.processes) @ coefficients
        values = np.exp(values) if self.log else values
        if self.prior_of is not None:
            expected = np.asarray(self.prior_of(rows), float)
            values = (values.T * expected).T
        return values

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
        draws=np.array(data["draws"], float),
        spread=np.array(data["spread"], float),
        prior_of=known.get(name),
    )


def distances(modes: Numbers, profiled: Numbers) -> Numbers:
    """Return how far each mode is from the nearest profiled one, in logarithms, shape (n,)."""
    apart = np.log(modes)[:, None] - np.log(profiled)
    return np.asarray(np.sqrt((apart**2).sum(-1).min(1)))


def sample_both(time: FittedModel, power: FittedModel, modes: ArrayLike) -> tuple[Numbers, Numbers]:
    """Return what epochs may take, s, and draw, W, in each mode, shape (d, n) each.

    Time and power deviate independently: the draws of one do not tell those of the other.
    """
    watts = power.sample(modes)
    order = np.random.default_rng(1).permutation(len(watts))  # both start from the same seed
    return time.sample(modes), watts[order]


def bounds(sample: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Return the central interval of each column of a sample (d, n) that holds `level` of it."""
    low, high = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
