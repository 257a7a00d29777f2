"""Models of physical shapes, of logarithms and on a prior."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import mape_pct
from epochwatt.prediction.models.features import POWER
from epochwatt.prediction.models.paper import fit_paper_time
from epochwatt.prediction.models.physical import (
    fit_log_time,
    fit_on_prior,
    fit_physical_time,
    fit_power,
)

SHARES = (0.5, 0.25, 0.15, 0.1, 0.0)


def test_physical_world_is_met_where_it_was_seen_and_where_not(plant, modes, named):
    world = plant(SHARES)
    model = fit_physical_time(world.only(set(modes) - {named["g"], named["a"]}))
    assert mape_pct(model.predict(world.modes), world.time_s) < 1
    assert (model.coefficients >= 0).all()
    assert (model.draws >= 0).all()


def test_power_of_a_physical_world_is_met(plant, modes, named):
    world = plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25)
    model = fit_power(world.only(set(modes) - {named["d"]}))
    assert model.target == "power_w"
    assert mape_pct(model.predict(world.modes), world.power_w) < 1


def test_less_clock_never_takes_less_time_or_more_power(plant, efij, agx):
    """As the terms have it: nearby what was observed counts, whatever it was."""
    fits = (
        fit_physical_time(plant(SHARES, deviation=0.1, seed=3).only(efij)),
        fit_power(plant((0.1,) * 6, terms=POWER, deviation=0.1, seed=3).only(efij)),
    )
    time, power = (replace(model, observed=np.empty(0)) for model in fits)
    shape = (8, 29, 14, 9)
    for axis in range(4):
        assert (np.diff(time.predict(agx.all_modes()).reshape(shape), axis=axis) <= 1e-9).all()
        assert (np.diff(power.predict(agx.all_modes()).reshape(shape), axis=axis) >= -1e-9).all()


def test_physical_shapes_beat_the_paper_in_a_physical_world(plant, efij):
    errors = []
    for seed in range(10):
        world = plant(SHARES, deviation=0.02, seed=seed)
        some = world.only(efij)
        fits = (fit_physical_time(some, n_draws=0), fit_paper_time(some))
        errors.append([mape_pct(of.predict(world.modes), world.time_s) for of in fits])
    physical, paper = np.median(errors, axis=0)
    assert physical < paper


def test_power_law_is_met(modes):
    """t = 5000 x cores^-0.2 x CPU^-0.1 x GPU^-0.5 x memory^-0.3."""
    times = 5000 * np.prod(as_rows(modes)[:, :4] ** [-0.2, -0.1, -0.5, -0.3], axis=1)
    world = observations_from_rows("law", modes, times)
    model = fit_log_time(world)
    assert mape_pct(model.predict(world.modes), world.time_s) < 0.1
    assert model.coefficients[1:] == pytest.approx([-0.2, -0.1, -0.5, -0.3], abs=0.02)


def test_prior_is_kept_up_to_a_common_factor_where_one_mode_was_seen(plant, named):
    truth = plant(SHARES)

    def prior(modes):
        place = [truth.modes.tolist().index(row) for row in modes.tolist()]
        return truth.time_s[place] / 1.5

    model = fit_on_prior(truth.only([named["g"]]), "time_s", prior)
    assert model.prior is prior
    assert mape_pct(model.predict(truth.modes), truth.time_s) < 0.1


def prior_of(truth, factor):
    """Return a prior that knows the modes of `truth` up to a factor of each."""

    def prior(modes):
        place = [truth.modes.tolist().index(row) for row in modes.tolist()]
        return truth.time_s[place] * factor(modes)

    return prior


def test_prior_of_the_right_shape_helps(plant, efij):
    """The prior is 40 % too low and else right; the truth is no sum of physical shapes."""
    errors = []
    for seed in range(10):
        truth = plant(SHARES, deviation=0.1, seed=seed)
        noise = 0.02 * np.random.default_rng(seed + 100).standard_normal(len(truth.time_s))
        observed = replace(truth, time_s=truth.time_s * np.exp(noise)).only(efij)
        prior = prior_of(truth, lambda modes: 0.6)
        fits = (
            fit_on_prior(observed, "time_s", prior, n_draws=0),
            fit_physical_time(observed, n_draws=0),
            fit_log_time(observed, n_draws=0),
            fit_paper_time(observed),
        )
        errors.append([mape_pct(of.predict(truth.modes), truth.time_s) for of in fits])
    medians = np.median(errors, axis=0)
    assert medians[0] < 3
    assert (medians[1:] > 2 * medians[0]).all()


def test_error_of_the_prior_in_one_clock_is_corrected_where_it_is_seen(plant):
    """The prior has a factor of GPU clock^0.2 too many: up to 10 % over these modes."""
    truth = plant(SHARES)
    prior = prior_of(truth, lambda modes: (modes[:, 2] / 1e3) ** 0.2)
    model = fit_on_prior(truth, "time_s", prior)
    assert mape_pct(prior(truth.modes), truth.time_s) > 4
    assert mape_pct(model.predict(truth.modes), truth.time_s) < 1


@pytest.mark.parametrize("fit", [fit_physical_time, fit_log_time, fit_power])
def test_one_mode_and_identical_modes_are_refused(named, fit):
    of = observations_from_rows("lenet", [named["g"]] * 3, [30.0, 31.0, 30.5], [20.0, 21.0, 20.5])
    with pytest.raises(PredictionError, match="3 epochs under 1 distinct power mode") as caught:
        fit(of)
    assert caught.value.where == "lenet"
    assert caught.value.found.startswith("8 cores, ")


def test_power_needs_power(plant):
    with pytest.raises(PredictionError, match="no energy was measured"):
        fit_power(plant(SHARES))
