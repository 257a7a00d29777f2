"""The process and the trees predict as scikit-learn's do."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.gaussian_process import NOISES, SLOPE, fit_gaussian_process
from epochwatt.prediction.models.gradient_boosting import (
    N_TREES,
    RATE,
    fit_boosted_trees,
)
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


@pytest.mark.parametrize(("deviation", "noise"), [(0.002, NOISES[0]), (0.12, NOISES[2])])
def test_noise_is_that_of_modes_close_to_each_other(agx, deviation, noise):
    """Sixty modes say how noisy they are; four leave it at the least."""
    rng = np.random.default_rng(4)
    modes = agx.all_modes()[rng.permutation(29_232)[:60]]
    times = 5000 * modes[:, 2] ** -0.5 * np.exp(deviation * rng.standard_normal(60))
    few, many = (
        fit_gaussian_process(
            observations_from_rows("noisy", modes[:n], times[:n]), Context("time_s")
        )
        for n in (4, 60)
    )
    assert many.noise == noise
    assert few.noise == NOISES[0]


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


def test_training_modes_are_met_and_there_is_no_interval(plant, efij):
    seen = plant((0.4, 0.3, 0.1, 0.2, 0.0)).only(efij)
    model = fit_boosted_trees(seen, Context("time_s"))
    assert model.predict(efij) == pytest.approx(seen.time_s, rel=3e-3)
    assert model.interval(efij) is None


def test_features_that_part_modes_alike_share_the_trees(agx):
    modes = agx.all_modes()[[0, -1]]
    model = fit_boosted_trees(observations_from_rows("two", modes, [2.0, 1.0]), Context("time_s"))
    assert set(model.features[:, 0]) == {0, 1, 2, 3}
