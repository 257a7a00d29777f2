"""Models that know physics: what they meet, how sure they are, what deviates from them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.prediction.data.modes import NO_LIMIT, Mode, PredictionError, as_rows, logs
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.harness import mape_pct, random_subsets
from epochwatt.prediction.models.features import LOGS, POWER, TIME, design
from epochwatt.prediction.models.physical import fit_log_time, fit_physical_time, fit_power
from epochwatt.prediction.models.priors import (
    DEVIATION,
    DEVIATION_WEIGHT,
    LENGTH,
    OWN,
    OWNS,
    POWER_SHARES,
    SHARE_SD,
    TIME_SHARES,
    TIME_WITH_POWER,
    TIME_WITH_POWER_WEIGHT,
)
from epochwatt.prediction.models.residual_gp import Deviations
from epochwatt.prediction.models.roofline_prior import fit_roofline_time, roof
from epochwatt.prediction.models.times_power import time_with_power

# -- features --------------------------------------------------------------------------------------

MODE = Mode(2, 2000, 500, 1600)


def test_terms_of_time():
    """Five processes on two cores: 5 / 2 - 1 = 1.5 times the work of the CPU comes on top."""
    assert design(TIME, [MODE], 5)[0].tolist() == [2.0, 0.625, 0.5, 0.75, 1.0]


def test_terms_of_power():
    """At 0.5 GHz a clock of 0.5 and its cube 0.125; two busy cores at 2 GHz: 4 and 16."""
    assert design(POWER, [MODE], 5)[0].tolist() == [0.5, 0.125, 4.0, 16.0, 1.6, 1.0]


def test_half_a_gpu_does_half_and_draws_half():
    """What no part of the GPU does stays as it is."""
    half = MODE._replace(gpu_share=0.5)
    for terms, gpu in ((TIME, [0]), (POWER, [0, 1])):
        whole, gated = (design(terms, [mode], 5)[0] for mode in (MODE, half))
        times = np.ones(len(terms))
        times[gpu] = 2 if terms is TIME else 0.5
        assert gated == pytest.approx(times * whole)
    assert design(LOGS, [half], 5)[0] == pytest.approx(
        design(LOGS, [MODE._replace(gpu_mhz=MODE.gpu_mhz / 2)], 5)[0]
    )


# -- residual gp -----------------------------------------------------------------------------------

clocks = st.floats(100, 2500)
some_modes = st.lists(
    st.builds(
        Mode,
        st.integers(1, 8),
        clocks,
        clocks,
        clocks,
        st.floats(0.2, 1),
        st.sampled_from([0.0, 60.0, 150.0]),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


@given(
    profiled=some_modes,
    asked=some_modes,
    tilt=st.sampled_from([0.0, 0.7]),
    own=st.sampled_from(OWNS),
)
def test_whitening_and_what_is_left_open_agree_with_the_covariance(profiled, asked, tilt, own):
    """As one Gaussian vector has it, written down once more."""
    deviations = Deviations(as_rows(profiled), tilt, own)
    whole = logs(np.vstack([as_rows(profiled), as_rows(asked)]))
    whole -= logs(as_rows(profiled)).mean(0)
    smooth = [
        [np.exp(-((a - b) ** 2).sum() / (2 * LENGTH**2)) + tilt**2 * (a @ b) for b in whole]
        for a in whole
    ]
    k, n = np.array(smooth) + own**2 * np.eye(len(whole)), len(profiled)
    white = deviations.whitening()
    assert white @ k[:n, :n] @ white.T == pytest.approx(np.eye(n), abs=1e-5)
    weights = np.linalg.solve(k[:n, :n], k[n:, :n].T).T
    rows = as_rows(asked)
    assert deviations.weights(rows) == pytest.approx(weights, abs=1e-5)
    left = np.diag(k[n:, n:] - weights @ k[:n, n:])
    assert deviations.left_open(rows) == pytest.approx(left, abs=1e-5)


# -- linear model ----------------------------------------------------------------------------------

SHARES = (0.5, 0.25, 0.15, 0.1, 0.0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_correlation_leans_to_what_the_profiled_modes_show(plant, sign):
    """Ten modes that deviate alike, or the other way round, outweigh a belief worth eight."""
    time_off = 0.1 * np.random.default_rng(3).standard_normal(10)
    seen = plant(SHARES, power_w=20)
    seen = replace(
        seen, time_s=seen.time_s * np.exp(time_off), power_w=seen.power_w * np.exp(sign * time_off)
    )
    time, power = fit_physical_time(seen), fit_power(seen)
    left = time.residuals(), power.residuals()
    shown = left[0] @ left[1] / np.sqrt((left[0] @ left[0]) * (left[1] @ left[1]))
    assert sign * shown > 0.4
    expected = (TIME_WITH_POWER_WEIGHT * TIME_WITH_POWER + 10 * shown) / (
        TIME_WITH_POWER_WEIGHT + 10
    )
    assert time_with_power(time, power) == pytest.approx(expected)


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


# -- intervals -------------------------------------------------------------------------------------


def deviating(world, rng):
    """Return a world of one epoch a mode whose modes deviate as is believed."""
    by = np.linalg.inv(Deviations(world.modes).whitening())
    size = DEVIATION * np.sqrt(DEVIATION_WEIGHT / rng.chisquare(DEVIATION_WEIGHT, 2))
    time, power = np.exp(size * (by @ rng.standard_normal((len(by), 2)))).T
    return replace(world, time_s=time * world.time_s, power_w=power * world.power_w)


SHARES_OF = {TIME: TIME_SHARES, POWER: POWER_SHARES}


@pytest.mark.parametrize(("fit", "terms"), [(fit_physical_time, TIME), (fit_power, POWER)])
def test_intervals_from_four_modes_hold(plant, coverage, fit, terms):
    """The believed 90 % of new modes, whose worlds are drawn as is believed."""
    rng, counted = np.random.default_rng(7), np.zeros(2)
    for seed in range(60):
        shares = np.maximum(SHARES_OF[terms] + SHARE_SD * rng.standard_normal(len(terms)), 0)
        world = deviating(plant(shares / shares.sum(), terms=terms), rng)
        counted += coverage(fit, world, random_subsets(world.distinct(), 4, 1, seed))
    assert 0.85 <= counted[0] / counted[1] <= 0.97


# -- physical --------------------------------------------------------------------------------------


def test_physical_world_is_met_where_it_was_seen_and_where_not(plant, modes, named):
    world = plant(SHARES)
    model = fit_physical_time(world.only(set(modes) - {named["g"], named["a"]}))
    assert mape_pct(model.predict(world.modes), world.time_s) < 1
    assert (model.coefficients >= 0).all()
    assert (model.draws >= 0).all()


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


def test_power_law_is_met(modes):
    """t = 5000 x cores^-0.2 x CPU^-0.1 x GPU^-0.5 x memory^-0.3."""
    times = 5000 * np.prod(as_rows(modes)[:, :4] ** [-0.2, -0.1, -0.5, -0.3], axis=1)
    world = observations_from_rows("law", modes, times)
    model = fit_log_time(world)
    assert mape_pct(model.predict(world.modes), world.time_s) < 0.1
    assert model.coefficients[1:] == pytest.approx([-0.2, -0.1, -0.5, -0.3], abs=0.02)


@pytest.mark.parametrize("fit", [fit_physical_time, fit_log_time, fit_power])
def test_one_mode_and_identical_modes_are_refused(named, fit):
    of = observations_from_rows("lenet", [named["g"]] * 3, [30.0, 31.0, 30.5], [20.0, 21.0, 20.5])
    with pytest.raises(PredictionError, match="3 epochs under 1 distinct power mode") as caught:
        fit(of)
    assert caught.value.where == "lenet"
    assert caught.value.found.startswith("8 cores, ")


# -- roofline prior --------------------------------------------------------------------------------

CLOCKS = itertools.product((4.0, 8.0), (700.0, 2200.0), (115.0, 500.0, 1300.0), (665.0, 3200.0))
MODES = np.array([[*clocks, 1.0, NO_LIMIT] for clocks in CLOCKS])
TRUTH = np.array([0.02, 0.05, 0.01, 0.0, 0.003])  # s GHz; s
PROFILED = np.array([0, 5, 7, 10, 12, 16, 18, 23])


def observed(modes, processes=5):
    """Return what a board takes whose parts overlap completely."""
    time_s = roof(TRUTH, modes, processes)
    none = np.full(len(modes), np.nan)
    epochs = np.ones(len(modes), np.int64)
    return Observations("planted", modes, time_s, none, epochs, processes)


def test_a_planted_roofline_is_found_from_a_few_modes():
    fitted = fit_roofline_time(observed(MODES[PROFILED]))
    assert fitted.predict(MODES[PROFILED]) == pytest.approx(fitted.observed, rel=0.02)
    errors = fitted.predict(MODES) / roof(TRUTH, MODES, 5) - 1
    assert np.abs(errors).max() < 0.05
    summed = fit_physical_time(observed(MODES[PROFILED]), n_draws=0)
    worse = np.abs(summed.predict(MODES) / roof(TRUTH, MODES, 5) - 1)
    assert np.abs(errors).mean() < worse.mean()  # which adds what overlaps here
