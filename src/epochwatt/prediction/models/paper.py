"""The main paper's regressions of epoch time and energy (SIGMETRICS 2023, sections 5.7.1 to 5.7.3).

Time: one linear regression per network on cores, CPU, GPU and memory clock, from two epochs of each
of four modes. Four modes cannot fix five coefficients. scikit-learn's LinearRegression then takes
the solution of least norm after centring (`min_norm`), so the unit of each clock decides: MHz here,
as a reader of the paper would write it. `STANDARDISED_FEATURES` shows what changes when each
feature is divided by its spread.

Energy: one linear regression for all networks, on the same and the time of the epoch. The paper
says that time is the predicted one where energy is predicted, and "(predicted)" where the model is
trained: whether observed times train it is left open, and so is whether all modes do or only the
four. All four readings are registered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import PLAIN, plain
from epochwatt.prediction.models.linear_model import LinearModel
from epochwatt.prediction.names import ENERGY, LEFT_OUT, PUBLISHED, SEARCHED, STANDARDISED, TIME
from epochwatt.prediction.predictor import Context, Json, Method, Predictor

TOLERANCE = 1e-6  # of the largest singular value: smaller ones count as zero


def least_norm(
    features: Numbers, target: Numbers, weights: Numbers, standardise: bool = False
) -> tuple[Numbers, Numbers]:
    """Return coefficients (s, k) and intercepts (s,) of linear fits to s sets of m modes at once.

    As scikit-learn's LinearRegression fits (1.7 and later): features and target are centred, and of
    all coefficients that fit best those of least norm are taken. Epochs of one mode have the same
    features, so that their mean and their number are all that counts. `standardise` divides the
    features by their spread first.

    Features are (s, m, k); the target is the mean over the epochs of each mode, (s, m), and the
    weight their number, (s, m).
    """
    share = (weights / weights.sum(-1, keepdims=True))[..., None]
    x_mean = (share * features).sum(-2, keepdims=True)
    y_mean = (share[..., 0] * target).sum(-1, keepdims=True)
    x, y = features - x_mean, target - y_mean
    spread = np.sqrt((share * x**2).sum(-2, keepdims=True))
    differs = np.ptp(features, axis=-2, keepdims=True) > 0  # a mean is rounded, and so is spread
    scale = np.where(differs & standardise, spread, 1.0)
    root = np.sqrt(weights)[..., None]
    solved = np.linalg.pinv(root * x / scale, rcond=TOLERANCE) @ (root * y[..., None])
    coefficients = solved[..., 0] / scale[..., 0, :]
    return coefficients, y_mean[..., 0] - (coefficients * x_mean[..., 0, :]).sum(-1)


@lru_cache(maxsize=32)  # the fit of energy asks for that of each network on the board
def fit_paper_time(observations: Observations, standardise: bool = False) -> LinearModel:
    """Fit epoch time as a linear function of cores and clocks, to every row.

    Raises PredictionError: fewer than two distinct modes.
    """
    observations.need_modes(2)
    features, time_s = plain(observations.modes), observations.time_s
    return LinearModel(
        TIME,
        (*PLAIN, "constant"),
        _regression(features, time_s, standardise),
        observations.processes,
        as_rows(observations.distinct()),
    )


def _regression(features: Numbers, target: Numbers, standardise: bool = False) -> Numbers:
    """Fit `least_norm` to rows of equal weight; return coefficients and intercept, (k + 1,)."""
    weights = np.ones((1, len(target)))
    coefficients, intercepts = least_norm(features[None], target[None], weights, standardise)
    return np.append(coefficients[0], intercepts[0])


@dataclass(frozen=True, eq=False)
class PaperEnergy(Predictor):
    """Energy per epoch, Wh: linear in cores, clocks (MHz) and predicted time (s)."""

    trained_on: Numbers
    coefficients: Numbers  # (6,), per core, MHz, MHz, MHz, s, and the intercept, Wh
    time: LinearModel  # model of the network's epoch time
    networks: tuple[str, ...]  # names of those that trained it
    target: str = ENERGY

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the energy of an epoch in each mode, Wh, shape (n,)."""
        features = np.column_stack([plain(modes), self.time.predict(modes)])
        return np.asarray(features @ self.coefficients[:-1] + self.coefficients[-1])

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return a model from `to_json`."""
        return super().from_json({**data, "time": LinearModel.from_json(data["time"])})


def fit_paper_energy(
    observations: Observations,
    networks: Sequence[Observations],
    observed_time: bool = False,
    four_modes: bool = False,
) -> PaperEnergy:
    """Fit the paper's model of energy to all networks, for predictions of that of `observations`.

    `observed_time` and `four_modes` choose among the readings of the module's docstring. Raises
    PredictionError: energy that was not measured, or fewer than two distinct modes.
    """
    if not networks:
        raise PredictionError("no network to fit a model of energy to")
    profiled = observations.distinct()
    features, energy_wh, trained_on = [], [], set(profiled)
    for network in networks:
        network.need_energy()
        time = fit_paper_time(network.only(profiled))
        rows = network.only(profiled) if four_modes else network
        time_s = rows.time_s if observed_time else time.predict(rows.modes)
        features.append(np.column_stack([plain(rows.modes), time_s]))
        energy_wh.append(rows.energy_wh)
        if network.workload == observations.workload:
            trained_on.update(rows.distinct())
    return PaperEnergy(
        trained_on=as_rows(sorted(trained_on)),
        coefficients=_regression(np.concatenate(features), np.concatenate(energy_wh)),
        time=fit_paper_time(observations),
        networks=tuple(network.workload for network in networks),
    )


def _fit(
    observations: Observations, context: Context, standardise: bool = False, **reading: bool
) -> Predictor:
    if context.target == TIME:
        return fit_paper_time(observations, standardise)
    return fit_paper_energy(observations, context.networks, **reading)


def _load(data: Json) -> Predictor:
    return (PaperEnergy if data["target"] == ENERGY else LinearModel).from_json(data)


PAPER = Method(
    "the paper's regression",
    (TIME, ENERGY),
    _fit,
    _load,
    learns_from=(SEARCHED, PUBLISHED, LEFT_OUT),
    is_paper=True,
    parts=PLAIN,
)


def _reading(title: str, target: str, is_scored: bool = False, **reading: bool) -> Method:
    """Return another reading of the paper's method, of one target: what `_fit` does by it."""
    return replace(
        PAPER,
        title=title,
        targets=(target,),
        fit=lambda observations, context: _fit(observations, context, **reading),
        learns_from=(SEARCHED if target == ENERGY else STANDARDISED,),
        is_scored=is_scored,
    )


STANDARDISED_FEATURES = _reading("the paper's, standardised features", TIME, standardise=True)
OBSERVED_TIME = _reading(
    "the paper's, trained on observed time", ENERGY, is_scored=True, observed_time=True
)
# in scores.csv four modes train every method: there these two are the same as those above
FOUR_MODES = _reading("the paper's, trained in four modes", ENERGY, four_modes=True)
FOUR_MODES_OBSERVED_TIME = _reading(
    "the paper's, trained on observed time in four modes",
    ENERGY,
    observed_time=True,
    four_modes=True,
)
