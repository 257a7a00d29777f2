"""The main paper's model of energy per epoch (SIGMETRICS 2023, sections 5.7.1 and 5.7.3).

One linear regression for all networks, on cores, the three clocks and the time of the epoch. The
paper says that time is the predicted one where energy is predicted, and "(predicted)" where the
model is trained: whether the observed time trains it is left open, so both can be had.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import plain
from epochwatt.prediction.models.linear_model import FittedModel


@dataclass(frozen=True, eq=False)
class PaperEnergy:
    """Energy per epoch, Wh: linear in cores, CPU, GPU, memory clock (MHz) and time (s)."""

    coefficients: Numbers  # (5,), per core, MHz, MHz, MHz, s
    intercept_wh: float

    def predict(self, modes: ArrayLike, time_s: ArrayLike) -> Numbers:
        """Return the energy of an epoch that takes `time_s` (n,) under `modes` (n, 4), Wh."""
        features = np.column_stack([plain(modes), np.asarray(time_s, float)])
        return features @ self.coefficients + self.intercept_wh


def fit_paper_energy(
    observations: Sequence[Observations], times: Sequence[FittedModel] | None
) -> PaperEnergy:
    """Return the universal model, fitted to every row of every network.

    Parameters
    ----------
    observations : of each network, the epochs that train
    times : each network's model of time, whose predictions train; None: the observed times train

    Raises
    ------
    PredictionError : energy that was not measured, or fewer than two distinct modes
    """
    if not observations:
        raise PredictionError("no network to fit a model of energy to")
    for of in observations:
        of.need_energy()
        of.need_modes(2)
    if times is None:
        time_s = [of.time_s for of in observations]
    else:
        time_s = [t.predict(of.modes) for t, of in zip(times, observations, strict=True)]
    modes = np.concatenate([plain(of.modes) for of in observations])
    energy_wh = np.concatenate([of.energy_wh for of in observations])
    fit = LinearRegression().fit(np.column_stack([modes, np.concatenate(time_s)]), energy_wh)
    return PaperEnergy(fit.coef_, float(fit.intercept_))
