"""The trees fit and predict as scikit-learn's do."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.gradient_boosting import (
    N_TREES,
    RATE,
    fit_boosted_trees,
)
from epochwatt.prediction.predictor import Context


def test_predictions_are_scikit_learns(agx):
    """Where no two features part the rows alike: with ties, scikit-learn picks a feature by lot."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(1000, 2000, (300, 4))
    seen = observations_from_rows("random", rows, 1e12 / (rows ** [0.2, 0.4, 0.8, 0.6]).prod(1))
    model = fit_boosted_trees(seen, Context("time_s"))
    boosting = GradientBoostingRegressor(
        n_estimators=N_TREES, learning_rate=RATE, max_depth=2, random_state=0
    ).fit(np.log(rows), np.log(seen.time_s))
    every = agx.all_modes()[::97]
    expected = np.exp(boosting.predict(np.log(as_rows(every)[:, :4])))
    assert model.predict(every) == pytest.approx(expected, rel=1e-9)


def test_training_modes_are_met_and_there_is_no_interval(plant, efij):
    seen = plant((0.4, 0.3, 0.1, 0.2, 0.0)).only(efij)
    model = fit_boosted_trees(seen, Context("time_s"))
    assert model.predict(efij) == pytest.approx(seen.time_s, rel=3e-3)
    assert model.interval(efij) is None


def test_features_that_part_modes_alike_share_the_trees(agx):
    modes = agx.all_modes()[[0, -1]]
    model = fit_boosted_trees(observations_from_rows("two", modes, [2.0, 1.0]), Context("time_s"))
    assert set(model.features[:, 0]) == {0, 1, 2, 3}
