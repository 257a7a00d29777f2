"""The stored trees predict as scikit-learn's do."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.models.gradient_boosting import (
    DEPTH,
    N_TREES,
    RATE,
    fit_boosted_trees,
)
from epochwatt.prediction.predictor import Context


def test_predictions_are_scikit_learns(plant, modes, agx):
    seen = plant((0.4, 0.3, 0.1, 0.2, 0.0), deviation=0.05).only(modes[:8]).per_mode()
    model = fit_boosted_trees(seen, Context("time_s"))
    boosting = GradientBoostingRegressor(
        n_estimators=N_TREES, learning_rate=RATE, max_depth=DEPTH, random_state=0
    ).fit(np.log(seen.modes[:, :4]), np.log(seen.time_s))
    every = agx.all_modes()[::97]
    expected = np.exp(boosting.predict(np.log(as_rows(every)[:, :4])))
    assert model.predict(every) == pytest.approx(expected, rel=1e-9)


def test_training_modes_are_met_and_there_is_no_interval(plant, efij):
    seen = plant((0.4, 0.3, 0.1, 0.2, 0.0)).only(efij)
    model = fit_boosted_trees(seen, Context("time_s"))
    assert model.predict(efij) == pytest.approx(seen.time_s, rel=2e-3)
    assert model.interval(efij) is None
