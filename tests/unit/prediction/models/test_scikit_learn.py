"""The process and the trees predict as scikit-learn's do."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.gaussian_process import SLOPE, fit_gaussian_process
from epochwatt.prediction.models.gradient_boosting import N_TREES, RATE, fit_boosted_trees
from epochwatt.prediction.predictor import Context

# -- gaussian process ------------------------------------------------------------------------------


def test_means_and_intervals_are_scikit_learns(plant, modes, agx):
    seen = plant((0.4, 0.3, 0.1, 0.2, 0.0), deviation=0.05).only(modes[:6])
    model = fit_gaussian_process(seen, Context("time_s"))
    rows = np.log(as_rows(agx.all_modes()[::997])[:, :4])
    centre, level = model.rows.mean(0), model.values.mean()
    kernel = ConstantKernel(SLOPE**2) * DotProduct(0.0, "fixed") + WhiteKernel(model.noise**2)
    kernel += ConstantKernel(model.deviation**2) * RBF(model.length)
    process = GaussianProcessRegressor(kernel, optimizer=None)
    process.fit(model.rows - centre, model.values - level)
    mean, sd = process.predict(rows - centre, return_std=True)
    assert model.predict(agx.all_modes()[::997]) == pytest.approx(np.exp(level + mean))
    low, high = model.interval(agx.all_modes()[::997])
    assert np.log(high / low) == pytest.approx(2 * 1.6449 * sd, rel=1e-4)


# -- gradient boosting -----------------------------------------------------------------------------


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
