"""Fitted models by themselves and as JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.beliefs import CURVATURES
from epochwatt.prediction.model import distances, from_json, sample_both
from epochwatt.prediction.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.paper_time import fit_paper_time
from epochwatt.prediction.physical import (
    fit_log_time,
    fit_physical_time,
    fit_power,
    fit_time_on_prior,
)

SHARES = (0.5, 0.25, 0.15, 0.1, 0.0)


def prior(modes):
    return 3e5 / modes[:, 2]


@pytest.fixture(params=["paper", "log", "physical", "on prior"])
def model(request, plant, efij):
    some = plant(SHARES, deviation=0.02).only(efij)
    fits = {"paper": fit_paper_time, "log": fit_log_time, "physical": fit_physical_time}
    if request.param == "on prior":
        return fit_time_on_prior(some, "twin", prior)
    return fits[request.param](some)


def test_model_survives_json(model, agx):
    modes = agx.all_modes()[::997]
    again = from_json(json.loads(json.dumps(model.to_json())), {"twin": prior})
    assert again.predict(modes).tolist() == model.predict(modes).tolist()
    if len(model.draws):
        assert again.sample(modes).tolist() == model.sample(modes).tolist()
    assert again.to_json() == model.to_json()


def test_model_on_a_prior_needs_it(plant, efij):
    data = fit_time_on_prior(plant(SHARES).only(efij), "twin", prior).to_json()
    with pytest.raises(PredictionError, match="stands on the prior 'twin'; at hand: none"):
        from_json(data)


@pytest.mark.parametrize("version", [0, 2, None])
def test_model_of_another_schema_is_refused(plant, version):
    data = fit_physical_time(plant(SHARES)).to_json() | {"schema_version": version}
    with pytest.raises(PredictionError, match="fit it again"):
        from_json(data)


def test_time_and_power_are_drawn_each_by_itself(plant, named):
    seen = plant(SHARES, deviation=0.02, power_w=20)
    time, power, modes = fit_physical_time(seen), fit_power(seen), as_rows([named["a"], named["g"]])
    seconds, watts = sample_both(time, power, modes)
    assert seconds.tolist() == time.sample(modes).tolist()
    assert np.sort(watts, axis=0).tolist() == np.sort(power.sample(modes), axis=0).tolist()
    together = np.corrcoef(time.sample(modes)[:, 0], power.sample(modes)[:, 0])[0, 1]
    assert abs(np.corrcoef(seconds[:, 0], watts[:, 0])[0, 1]) < 0.15 < abs(together)


def test_interval_of_the_same_model_is_the_same(plant, efij, agx):
    model, again = (fit_physical_time(plant(SHARES).only(efij)) for _ in range(2))
    modes = agx.all_modes()[::997]
    low, high = model.interval(modes)
    assert (np.array(again.interval(modes)) == [low, high]).all()
    assert (low < high).all()
    narrow = model.interval(modes, level=0.5)
    assert ((low <= narrow[0]) & (narrow[1] <= high)).all()


def test_paper_states_no_interval(plant, modes):
    with pytest.raises(PredictionError, match="states no interval"):
        fit_paper_time(plant(SHARES)).interval(modes)


def test_parts_outside_all_profiled_modes_are_named(plant, efij):
    model = fit_physical_time(plant(SHARES).only(efij))
    assert model.extrapolated(Mode(4, 2112.0, 1032.75, 1600.0)) == ()
    assert model.extrapolated(Mode(4, 1190.4, 1032.75, 2133.0)) == ("cpu_mhz", "emc_mhz")


def test_distance_is_to_the_nearest_profiled_mode():
    """e times one clock and e times another are the root of two away; the other mode is further."""
    profiled = as_rows([Mode(4, 1000, 500, 1000), Mode(1, 100, 100, 200)])
    modes = [*profiled, (4, 1000 * np.e, 500 / np.e, 1000)]
    assert distances(as_rows(modes), profiled) == pytest.approx([0, 0, 2**0.5])


def test_intervals_widen_with_the_distance_from_what_was_profiled(plant, efij):
    """A model without any deviation still may bend: 1.645 standard deviations either side."""
    model = replace(fit_physical_time(plant(SHARES).only(efij)), spread=np.zeros(400))
    one = replace(model, draws=np.repeat(model.coefficients[None], 400, axis=0))
    far = Mode(8, 2112, 905.25 / np.e, 1600)
    low, high = one.interval([efij[0], far])
    assert low[0] == high[0] == pytest.approx(model.predict([efij[0]])[0])
    assert np.log(high[1] / low[1]) == pytest.approx(2 * 1.645 * CURVATURES["time_s"], rel=0.15)
