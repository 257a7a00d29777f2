"""The stored Gaussian process predicts as scikit-learn's does."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.gaussian_process import NOISES, SLOPE, fit_gaussian_process
from epochwatt.prediction.predictor import Context


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


def test_power_law_is_met_and_known_well(modes):
    times = 5000 * np.prod(as_rows(modes)[:, :4] ** [-0.2, -0.1, -0.5, -0.3], axis=1)
    model = fit_gaussian_process(observations_from_rows("law", modes, times), Context("time_s"))
    between = [(6, 2000, 1000, 1500)]
    expected = 5000 * 6**-0.2 * 2000**-0.1 * 1000**-0.5 * 1500**-0.3
    assert model.predict(between)[0] == pytest.approx(expected, rel=0.01)
    low, high = model.interval(between)
    assert low[0] < expected < high[0] < 1.1 * low[0]


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
