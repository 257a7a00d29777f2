"""The main paper's one regression of energy for all networks."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import of_rows
from epochwatt.prediction.models.paper_energy import fit_paper_energy
from epochwatt.prediction.models.paper_time import fit_paper_time

SLOPES, CONSTANT = np.array([0.01, 0.0002, 0.0003, 0.0001, 0.006]), -0.5


def network(plant, name, shares, whole):
    """Energy linear in cores, clocks and observed time."""
    of = plant(shares, whole=whole, name=name)
    energy_wh = np.column_stack([of.modes[:, :4], of.time_s]) @ SLOPES + CONSTANT
    return of_rows(name, of.distinct(), of.time_s, 3600 * energy_wh / of.time_s)


@pytest.fixture
def networks(plant):
    return [
        network(plant, "one", (0.6, 0.2, 0.1, 0.1, 0), 300.0),
        network(plant, "two", (0.2, 0.2, 0.4, 0.2, 0), 500.0),
    ]


def test_linear_world_gives_back_its_coefficients_from_observed_times(networks):
    model = fit_paper_energy(networks, None)
    assert model.coefficients == pytest.approx(SLOPES, rel=1e-6)
    assert model.intercept_wh == pytest.approx(CONSTANT, rel=1e-6)
    for of in networks:
        assert model.predict(of.modes, of.time_s) == pytest.approx(of.energy_wh)


def test_predicted_times_train_another_model(networks, efij):
    times = [fit_paper_time(of.only(efij)) for of in networks]
    model = fit_paper_energy(networks, times)
    assert not np.allclose(model.coefficients, SLOPES, rtol=0.01)
    at = [time.predict(of.modes) for time, of in zip(times, networks, strict=True)]
    residuals = [
        model.predict(of.modes, t) - of.energy_wh for t, of in zip(at, networks, strict=True)
    ]
    assert np.concatenate(residuals).mean() == pytest.approx(0, abs=1e-9)  # of a least-squares fit


def test_missing_energy_is_refused(networks, plant):
    with pytest.raises(PredictionError, match="three: no energy was measured in 10 of 10 modes"):
        fit_paper_energy([*networks, plant((1, 0, 0, 0, 0), name="three")], None)


def test_no_network_is_refused():
    with pytest.raises(PredictionError, match="no network"):
        fit_paper_energy([], None)
