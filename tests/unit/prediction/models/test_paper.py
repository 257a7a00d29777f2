"""The main paper's regressions of epoch time and energy."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.modes import PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.paper import fit_paper_energy, fit_paper_time, least_norm

SLOPES, CONSTANT = np.array([-3.0, -0.02, -0.1, -0.05]), 500.0


@pytest.mark.parametrize("n_epochs", [1, 5])
def test_one_mode_or_identical_modes_are_refused(named, n_epochs):
    of = observations_from_rows("lenet", [named["g"]] * n_epochs, [30.0] * n_epochs)
    with pytest.raises(PredictionError, match=f"{n_epochs} epochs? under 1 distinct power mode"):
        fit_paper_time(of)


# -- energy ----------------------------------------------------------------------------------------
ENERGY_SLOPES, ENERGY_CONSTANT = np.array([0.01, 0.0002, 0.0003, 0.0001, 0.006]), -0.5


def network(plant, name, shares, whole):
    """Energy linear in cores, clocks and observed time."""
    world = plant(shares, whole=whole, name=name)
    features = np.column_stack([world.modes[:, :4], world.time_s])
    energy_wh = features @ ENERGY_SLOPES + ENERGY_CONSTANT
    power_w = 3600 * energy_wh / world.time_s
    return observations_from_rows(name, world.distinct(), world.time_s, power_w)


@pytest.fixture
def networks(plant):
    return [
        network(plant, "one", (0.6, 0.2, 0.1, 0.1, 0), 300.0),
        network(plant, "two", (0.2, 0.2, 0.4, 0.2, 0), 500.0),
    ]


def test_linear_world_gives_back_its_coefficients_from_observed_times(networks):
    for observations in networks:
        model = fit_paper_energy(observations, networks, observed_time=True)
        expected = pytest.approx([*ENERGY_SLOPES, ENERGY_CONSTANT], rel=1e-6)
        assert model.coefficients == expected
        exact = replace(model, time=fit_paper_time(observations))
        time_s = exact.time.predict(observations.modes)
        features = np.column_stack([observations.modes[:, :4], time_s])
        assert exact.predict(observations.modes) == pytest.approx(
            features @ ENERGY_SLOPES + ENERGY_CONSTANT
        )


def test_missing_energy_is_refused(networks, plant):
    without = plant((1, 0, 0, 0, 0), name="three")
    with pytest.raises(PredictionError, match="no energy was measured in 10 of 10 modes") as caught:
        fit_paper_energy(networks[0], [*networks, without])
    assert caught.value.where == "three"


def test_equals_scikit_learn_where_modes_leave_coefficients_open(modes):
    rows = as_rows(modes)
    sets = np.array([[0, 4, 5, 8], [6, 7, 8, 9], [0, 1, 2, 3]])  # four, two and four are fixed
    target = np.random.default_rng(0).uniform(100, 900, sets.shape)
    coefficients, intercepts = least_norm(rows[sets], target, np.ones(sets.shape))
    for n, places in enumerate(sets):
        fit = LinearRegression().fit(rows[places], target[n])
        assert coefficients[n] == pytest.approx(fit.coef_, rel=1e-6, abs=1e-12)
        assert intercepts[n] == pytest.approx(fit.intercept_)
