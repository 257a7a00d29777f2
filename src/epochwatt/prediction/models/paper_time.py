"""The main paper's model of epoch time (SIGMETRICS 2023, sections 5.7.1 and 5.7.2).

One linear regression per network on CPU clock, cores, GPU clock and memory clock, from two epochs
of each of four modes (`subsets`).

Four modes cannot fix five coefficients. scikit-learn's LinearRegression then takes the solution of
least norm after centring, so the unit of each clock decides: MHz here, as a reader of the paper
would write it. `standardise` shows what changes when each feature is divided by its own spread.
"""

import numpy as np
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import PLAIN, plain
from epochwatt.prediction.models.linear_model import FittedModel


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
    features = plain(observations.modes)
    differs = np.ptp(features, axis=0) > 0  # a mean is rounded, and so is a spread
    scale = np.where(differs & standardise, features.std(0), 1.0)
    fit = LinearRegression().fit(features / scale, observations.time_s)
    return FittedModel(
        target="time_s",
        terms=(*PLAIN, "constant"),
        coefficients=np.append(fit.coef_ / scale, fit.intercept_),
        processes=observations.processes,
        trained_on=as_rows(observations.distinct()),
    )
