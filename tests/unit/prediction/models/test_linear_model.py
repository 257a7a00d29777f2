"""Fitted models by themselves and as JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.models.linear_model import LinearModel
from epochwatt.prediction.models.paper import fit_paper_time
from epochwatt.prediction.models.physical import (
    fit_log_time,
    fit_on_prior,
    fit_physical_time,
    fit_power,
)
from epochwatt.prediction.models.priors import OWN, TIME_WITH_POWER, TIME_WITH_POWER_WEIGHT
from epochwatt.prediction.models.times_power import sample_both, time_with_power

SHARES = (0.5, 0.25, 0.15, 0.1, 0.0)


def prior(modes):
    return 3e5 / modes[:, 2]


@pytest.fixture(params=["paper", "log", "physical"])
def model(request, plant, efij):
    some = plant(SHARES, deviation=0.02).only(efij)
    fits = {"paper": fit_paper_time, "log": fit_log_time, "physical": fit_physical_time}
    return fits[request.param](some)


def test_model_survives_json(model, agx):
    modes = agx.all_modes()[::997]
    again = LinearModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again.predict(modes).tolist() == model.predict(modes).tolist()
    if len(model.draws):
        assert again.sample(modes).tolist() == model.sample(modes).tolist()
    assert again.to_json() == model.to_json()


def test_model_on_a_prior_is_not_stored(plant, efij):
    with pytest.raises(PredictionError, match="a model of time_s on a prior cannot be stored"):
        fit_on_prior(plant(SHARES).only(efij), "time_s", prior).to_json()


def test_longer_epochs_draw_less(plant, named):
    """Each sample keeps its own values, and both are as much correlated as is believed."""
    seen = plant(SHARES, deviation=0.02, power_w=20).only([named[name] for name in "aefg"])
    time, power, modes = fit_physical_time(seen), fit_power(seen), as_rows([named["b"], named["j"]])
    seconds, watts = sample_both(time, power, modes)
    assert seconds.tolist() == time.sample(modes).tolist()
    assert np.sort(watts, axis=0).tolist() == np.sort(power.sample(modes), axis=0).tolist()
    for column in (0, 1):
        ranks = [of[:, column].argsort().argsort() for of in (seconds, watts)]
        assert np.corrcoef(ranks)[0, 1] == pytest.approx(time_with_power(time, power), abs=0.1)


@pytest.mark.parametrize("sign", [-1, 1])
def test_correlation_leans_to_what_the_profiled_modes_show(plant, sign):
    """Ten modes that deviate alike, or the other way round, outweigh a belief worth eight."""
    time_off = 0.1 * np.random.default_rng(3).standard_normal(10)
    seen = plant(SHARES, power_w=20)
    seen = replace(
        seen,
        time_s=seen.time_s * np.exp(time_off),
        power_w=seen.power_w * np.exp(sign * time_off),
    )
    time, power = fit_physical_time(seen), fit_power(seen)
    left = time.residuals(), power.residuals()
    shown = left[0] @ left[1] / np.sqrt((left[0] @ left[0]) * (left[1] @ left[1]))
    assert sign * shown > 0.4
    expected = (TIME_WITH_POWER_WEIGHT * TIME_WITH_POWER + 10 * shown) / (
        TIME_WITH_POWER_WEIGHT + 10
    )
    assert time_with_power(time, power) == pytest.approx(expected)


def test_model_meets_what_it_was_fitted_to_and_is_the_plain_sum_far_away(plant, efij):
    """No sum of shapes is the observed world: 10 % either side of one."""
    seen = plant(SHARES, deviation=0.1).only(efij)
    means, model = seen.per_mode(), fit_physical_time(seen)
    plain = replace(model, observed=np.empty(0))
    off = np.abs(model.predict(efij) / means.time_s - 1)
    assert (off < 0.01).all()
    assert np.abs(plain.predict(efij) / means.time_s - 1).max() > 0.03
    far = [Mode(1, 115.2, 114.75, 204)]
    assert model.predict(far) == pytest.approx(plain.predict(far), rel=1e-6)


def test_mean_of_the_fits_counts_terms_that_the_best_one_does_without(plant, named):
    """The GPU does nothing where it was seen: at a twelfth of its clock it may."""
    seen = plant((0.0, 0.1, 0.6, 0.3, 0.0), deviation=0.03).only([named[name] for name in "abeg"])
    model = fit_physical_time(seen)
    assert model.coefficients[0] == 0
    slow = [Mode(8, 2265.6, 114.75, 2133)]
    expected, mean = model.predict(slow)[0], model.mean(slow)[0]
    low, high = model.interval(slow)
    assert max(low[0], 1.1 * expected) < mean < high[0]
    assert model.mean(model.trained_on) == pytest.approx(seen.per_mode().time_s, rel=0.02)


def test_intervals_widen_with_the_distance_from_what_was_profiled(plant, efij):
    """Of a model that knows its terms: 1.645 standard deviations either side."""
    model = fit_physical_time(plant(SHARES).only(efij))
    n_draws = len(model.draws)
    sure = replace(
        model,
        draws=np.repeat(model.coefficients[None], n_draws, axis=0),
        spread=np.full(n_draws, 0.1),
    )
    near, far = Mode(8, 2112, 800, 1600), Mode(8, 200, 100, 1600)
    low, high = sure.interval([efij[0], near, far])
    width = np.log(high / low) / (2 * 1.645 * 0.1)
    assert width[2] == pytest.approx((1 + OWN**2) ** 0.5, rel=0.15)
    assert OWN / 1.2 < width[0] < width[1] / 1.2 < width[2] / 2


def test_prior_that_misfits_makes_wide_intervals_elsewhere(plant, modes, efij):
    """Where a prior misses the profiled modes by a third it is not trusted in others either."""
    world = plant(SHARES)
    widths = []
    for miss in (0.0, 0.3):
        off = np.exp(miss * np.random.default_rng(0).standard_normal(len(world.time_s)))

        def wrong(rows, off=off):
            place = [world.modes.tolist().index(row) for row in rows.tolist()]
            return world.time_s[place] * off[place]

        model = fit_on_prior(world.only(efij), "time_s", wrong)
        low, high = model.interval([mode for mode in modes if mode not in efij])
        widths.append(np.log(high / low))
    assert (widths[1] > 1.5 * widths[0]).all()
