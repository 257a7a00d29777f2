"""The main paper's model of epoch time (SIGMETRICS 2023, sections 5.7.1 and 5.7.2).

One linear regression per network on CPU clock, cores, GPU clock and memory clock, from two epochs
of each of four modes. The four modes are those whose fits have the lowest RMSE, summed over the
networks, of all subsets of the modes that were measured: a choice that has seen what it predicts.

Four modes cannot fix five coefficients. scikit-learn's LinearRegression then takes the solution of
least norm after centring, so the unit of each clock decides: MHz here, as a reader of the paper
would write it. `standardise` shows what changes when each feature is divided by its own spread.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.model import FittedModel
from epochwatt.prediction.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.observations import Observations
from epochwatt.prediction.shapes import PLAIN

N_EPOCHS = 2  # the last epoch that trains: 1 and 2, the first is dropped
N_MODES = 4


class Prediction(NamedTuple):
    """One mode of Fig. 10a."""

    mode: Mode
    observed_s: float
    predicted_s: float
    mape_pct: float  # mean over the mode's epochs


class Subset(NamedTuple):
    """One candidate for the representative modes."""

    modes: tuple[Mode, ...]
    rmse_s: tuple[float, ...]  # of each network
    total_s: float


def fit_paper_time(observations: Observations, standardise: bool = False) -> FittedModel:
    """Return epoch time as a linear function of cores and clocks, fitted to every row.

    Parameters
    ----------
    observations : of one network, without the first epoch
    standardise : divide each feature by its standard deviation before the fit

    Raises
    ------
    PredictionError : fewer than two distinct modes
    """
    observations.need_modes(2)
    spread = observations.modes.std(0)
    scale = np.where(spread > 0, spread, 1.0) if standardise else np.ones(len(PLAIN))
    fit = LinearRegression().fit(observations.modes / scale, observations.time_s)
    return FittedModel(
        target="time_s",
        terms=(*PLAIN, "constant"),
        coefficients=np.append(fit.coef_ / scale, fit.intercept_),
        processes=observations.processes,
        trained_on=as_rows(observations.distinct()),
    )


def n_fixed(modes: Sequence[Mode]) -> int:
    """Return how many of the model's five coefficients these modes can fix."""
    rows = as_rows(modes)
    return int(np.linalg.matrix_rank(np.column_stack([rows, np.ones(len(rows))])))


def predictions(model: FittedModel, observations: Observations) -> list[Prediction]:
    """Return what the model says of each mode that was observed, beside the observation."""
    told = []
    for mode in observations.distinct():
        observed_s = observations.only([mode]).time_s
        predicted_s = float(model.predict(as_rows([mode]))[0])
        mape_pct = float(np.mean(100 * np.abs(predicted_s - observed_s) / observed_s))
        told.append(Prediction(mode, float(observed_s.mean()), predicted_s, mape_pct))
    return told


def rank_subsets(
    observations: Sequence[Observations], size: int = N_MODES, standardise: bool = False
) -> list[Subset]:
    """Return every subset of the common modes, the lowest summed RMSE first.

    Parameters
    ----------
    observations : of each network, the epochs that train; the error is taken over them all
    size : how many modes a subset has
    standardise : as in `fit_paper_time`

    Raises
    ------
    PredictionError : the networks have too few modes in common
    """
    common = common_modes(observations, size)
    tables = [of.only(common) for of in observations]
    found = []
    for modes in combinations(common, size):
        rmse_s = tuple(
            _rmse_s(fit_paper_time(of.only(modes), standardise).predict(of.modes), of.time_s)
            for of in tables
        )
        found.append(Subset(modes, rmse_s, sum(rmse_s)))
    return sorted(found, key=lambda subset: subset.total_s)


def common_modes(observations: Sequence[Observations], least: int) -> tuple[Mode, ...]:
    """Return the modes that every network was observed under. Raises PredictionError."""
    shared = set.intersection(*(set(of.distinct()) for of in observations)) if observations else ()
    if len(shared) < least:
        names = ", ".join(of.workload for of in observations) or "no network"
        raise PredictionError(
            f"{names}: {len(shared)} power modes in common\n  needed: {least} or more"
        )
    return tuple(mode for mode in observations[0].distinct() if mode in shared)


def ties(ranked: Sequence[Subset], tolerance: float) -> list[Subset]:
    """Return the subsets whose total lies within a fraction `tolerance` of the lowest."""
    return [subset for subset in ranked if subset.total_s <= (1 + tolerance) * ranked[0].total_s]


def _rmse_s(predicted_s: Numbers, observed_s: Numbers) -> float:
    return float(np.sqrt(np.mean((predicted_s - observed_s) ** 2)))
