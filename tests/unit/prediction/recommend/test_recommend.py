"""The best mode of a board within budgets."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.models.features import POWER
from epochwatt.prediction.models.linear_model import LinearModel
from epochwatt.prediction.models.paper import fit_paper_time
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.models.times_power import sample_both
from epochwatt.prediction.recommend.recommend import EQUAL, on_steps, recommend

STRONGEST = Mode(8, 2265.6, 1377, 2133)


@pytest.fixture(scope="module")
def time(plant):
    return fit_physical_time(plant((0.5, 0.2, 0.2, 0.1, 0)))


@pytest.fixture(scope="module")
def power(plant):
    return fit_power(plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25))


@pytest.fixture(scope="module")
def every(agx, time, power):
    """Time, power and energy of every mode, worked out here."""
    epoch_s, power_w = time.mean(agx.all_modes()), power.mean(agx.all_modes())
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def only_known(model, rows):
    """Return a model whose profiled modes are these: the plain sum, without what was observed."""
    return replace(model, trained_on=as_rows(rows), observed=np.empty(0))


def test_without_a_budget_the_fastest_mode_is_as_fast_as_the_strongest(agx, time, power, every):
    told = recommend(agx, time, power, "time", {})
    assert told.estimates["epoch_s"].value == pytest.approx(every["epoch_s"].min(), rel=EQUAL)
    assert told.mode == STRONGEST  # profiled; to the models 5 to 7 cores are as good
    assert told.n_within == told.n_modes == 29_232
    assert told.risks == {}


@pytest.mark.parametrize(("profiled", "cores"), [(8, 8), (7, 7), (6, 6), (5, 5), (4, 5)])
def test_among_equal_modes_the_nearest_to_what_was_profiled_is_taken(
    agx, time, power, named, profiled, cores
):
    rows = [named[name]._replace(cores=profiled) for name in "acij"]
    told = recommend(agx, only_known(time, rows), only_known(power, rows), "time", {})
    assert told.mode == STRONGEST._replace(cores=cores)  # five processes: more do nothing


def test_profiled_modes_keep_what_was_observed_where_their_clocks_are_nominal(agx, plant, modes):
    """Clocks are moved to the board's steps, by up to 2 %; what was observed there stays."""
    seen = plant((0.5, 0.2, 0.2, 0.1, 0), deviation=0.03)
    nominal = fit_physical_time(replace(seen, modes=seen.modes * [1, 0.995, 1.005, 0.99, 1, 1]))
    model = on_steps(agx, nominal)
    assert model.trained_on.tolist() == [list(mode) for mode in modes]
    before = nominal.predict(nominal.trained_on)
    assert model.predict(model.trained_on) == pytest.approx(before, rel=0.01)


def test_profiled_modes_of_one_step_count_once(agx, time):
    rows = [
        (8, 2265, 1377, 2133),
        (8, 2266, 1377, 2133),
        (4, 1190, 676, 1331),
        (8, 2112, 905, 1600),
    ]
    with pytest.raises(PredictionError, match="too few power modes of agx_xavier") as caught:
        recommend(agx, only_known(time, rows), None, "time", {})
    assert (caught.value.found, caught.value.allowed) == ("3 modes", "4 or more")


@pytest.mark.parametrize(("per_core_s", "cores"), [(-0.01, 7), (-0.05, 7), (-0.2, 8), (-5, 8)])
def test_modes_are_equal_to_a_tenth_of_a_per_cent(agx, per_core_s, cores):
    lowest = agx.all_modes()[0, 1:]
    profiled = as_rows([(n, *lowest) for n in (2, 3, 4, 7)])
    told = (np.array([per_core_s, 100.0]), 5, profiled)
    draws = {"draws": told[0][None], "spread": np.zeros(1)}
    time = LinearModel("time_s", ("cores", "constant"), *told, **draws)
    assert recommend(agx, time, None, "time", {}).mode == Mode(cores, *lowest)


def test_profiled_mode_that_is_as_fast_but_needs_more_energy_is_not_taken(agx, plant, power):
    time = fit_physical_time(plant((0.7, 0.3, 0, 0, 0)))
    time = replace(time, draws=time.draws * [1, 1, 0, 0, 1], observed=np.empty(0))  # no CPU in it
    told = recommend(agx, time, power, "time", {})
    assert told.mode[2:] == STRONGEST[2:]
    assert told.mode.cpu_mhz < 200  # profiled: 1190.4 and more


@pytest.mark.parametrize("objective", ["time", "energy", "edp"])
@pytest.mark.parametrize(
    "budgets", [{}, {"power_w": 15}, {"epoch_s": 400}, {"energy_wh": 1.6, "power_w": 20}]
)
def test_no_other_mode_within_the_budgets_is_better(agx, time, power, every, objective, budgets):
    told = recommend(agx, time, power, objective, budgets)
    aim = {
        "time": every["epoch_s"],
        "energy": every["energy_wh"],
        "edp": every["epoch_s"] * every["energy_wh"],
    }[objective]
    within = np.all([every[name] <= most for name, most in budgets.items()], axis=0)
    within = np.broadcast_to(within, aim.shape)
    place = np.flatnonzero((agx.all_modes() == told.mode).all(1))[0]
    assert within[place]
    assert aim[place] <= aim[within].min() * 1.001
    assert told.n_within == within.sum()


def test_estimates_lie_in_their_intervals_and_risk_grows_as_the_budget_shrinks(agx, time, power):
    told = recommend(agx, time, power, "time", {"power_w": 18})
    for estimate in told.estimates.values():
        assert estimate.low < estimate.value < estimate.high
    assert 0 < told.risks["power_w"] < 1
    loose = recommend(agx, time, power, "energy", {"power_w": 1000})
    assert loose.risks == {"power_w": 0}


def test_risk_is_that_of_a_choice_as_each_fit_would_make_it(agx, time, power):
    """Each fit chooses its fastest mode within the budget, all fits together judge it."""
    told = recommend(agx, time, power, "time", {"power_w": 18})
    modes = agx.all_modes()
    seconds, watts = time.fits(modes), power.fits(modes)
    chosen = [
        modes[np.where(w <= 18, s, np.inf).argmin()]
        for s, w in zip(seconds.T, watts.T, strict=True)
    ]
    assert len(np.unique(chosen, axis=0)) > 5
    risk = float((power.sample(as_rows(chosen)) > 18).mean())
    assert told.risks["power_w"] == pytest.approx(risk, abs=0.01)
    assert risk > (power.sample([told.mode]) > 18).mean()  # the winner's own is too hopeful


def test_risk_of_a_profiled_mode_is_its_own(agx, time, power):
    """It was measured: that it came out first makes it no worse."""
    rows = time.trained_on[:4].tolist()
    plain = [only_known(model, rows) for model in (time, power)]
    mode = recommend(agx, *plain, "time", {"power_w": 18}).mode
    known = [only_known(model, [*rows, list(mode)]) for model in (time, power)]
    told = recommend(agx, *known, "time", {"power_w": 18})
    assert told.mode == mode
    sample = sample_both(*known, [mode])[1]
    assert told.risks["power_w"] == (sample > 18).mean()


def test_a_gpu_of_which_profiled_modes_gated_half_is_extrapolated(agx, time, power):
    """Modes that are made of numbers gate nothing; the interval says how little is known of it."""
    half = [
        replace(model, trained_on=model.trained_on * [1, 1, 1, 1, 0.5, 1])
        for model in (time, power)
    ]
    told = [recommend(agx, *models, "time", {}) for models in ((time, power), half)]
    assert [of.extrapolated for of in told] == [(), ("gpu_share",)]
    widths = [of.estimates["epoch_s"].high / of.estimates["epoch_s"].low for of in told]
    assert np.log(widths[1]) > 3 * np.log(widths[0])


def test_what_lies_outside_the_profiled_modes_is_said(agx, plant, efij, power):
    time = fit_physical_time(plant((0.5, 0.2, 0.2, 0.1, 0)).only(efij))
    told = recommend(agx, time, power, "time", {})
    assert told.extrapolated == ("emc_mhz",)


def test_front_is_the_one_of_all_modes(agx, time, power, every):
    front = recommend(agx, time, power, "time", {}).front
    assert [of.epoch_s for of in front] == sorted(of.epoch_s for of in front)
    for of in front[:: max(1, len(front) // 20)]:
        worse = (every["epoch_s"] >= of.epoch_s) | (every["energy_wh"] >= of.energy_wh)
        assert worse.all()
    assert front[-1].energy_wh == pytest.approx(every["energy_wh"].min())


def test_infeasible_budget_names_the_least_there_is(agx, time, power, every):
    with pytest.raises(PredictionError, match="no mode keeps --max-power-w 1\n") as caught:
        recommend(agx, time, power, "time", {"power_w": 1})
    least = f"{every['power_w'].min():.4g} W or more, expected of 1 core"
    assert caught.value.allowed.startswith(least)


def test_budgets_that_no_mode_keeps_together_are_refused(agx, time, power, every):
    budgets = {
        "epoch_s": 1.01 * every["epoch_s"].min(),
        "power_w": 1.01 * every["power_w"].min(),
    }
    quick, frugal = (every[name] <= most for name, most in budgets.items())
    least_s, least_w = every["epoch_s"][frugal].min(), every["power_w"][quick].min()
    with pytest.raises(PredictionError, match=r"--max-epoch-s .* and --max-power-w") as caught:
        recommend(agx, time, power, "energy", budgets)
    assert caught.value.do == (
        f"raise --max-epoch-s to {least_s:.4g} or more, or raise --max-power-w to {least_w:.4g} "
        "or more"
    )


def test_too_few_profiled_modes_name_those_to_measure_next(agx, plant, named, power):
    time = fit_physical_time(plant((0.5, 0.2, 0.2, 0.1, 0)).only([named["e"], named["g"]]))
    with pytest.raises(PredictionError, match="too few power modes of agx_xavier") as caught:
        recommend(agx, time, power, "time", {})
    assert caught.value.do.count(", CPU ") == 2


def test_without_intervals_no_risk_is_stated(agx, plant, power):
    """The paper's regression has none; its best mode is that of its own predictions."""
    time = fit_paper_time(plant((0.5, 0.2, 0.2, 0.1, 0)))
    chosen = recommend(agx, time, power, "time", {"power_w": 20})
    expected = time.predict(agx.all_modes())
    within = power.mean(agx.all_modes()) <= 20
    assert chosen.estimates["epoch_s"].value == pytest.approx(expected[within].min(), rel=EQUAL)
    assert chosen.estimates["epoch_s"][1:] == (None, None)
    assert chosen.risks == {}
