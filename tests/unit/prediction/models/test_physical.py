"""Models that know physics: what they meet, how sure they are, what deviates from them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measured import coverage
from epochwatt.prediction.data.modes import NO_LIMIT, Mode, PredictionError, as_rows, logs
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.harness import mape_pct, random_subsets, split
from epochwatt.prediction.models.features import LOGS, POWER, TIME, design
from epochwatt.prediction.models.paper import fit_paper_time
from epochwatt.prediction.models.physical import (
    fit_log_time,
    fit_on_prior,
    fit_physical_time,
    fit_power,
)
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
from epochwatt.prediction.models.residual_gp import Deviations, distances
from epochwatt.prediction.models.roofline_prior import fit_roofline_time, roof
from epochwatt.prediction.models.times_power import sample_both, time_with_power

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


def test_distance_is_to_the_nearest_profiled_mode():
    """e times one clock and e times another are the root of two away; the other mode is further."""
    profiled = as_rows([Mode(4, 1000, 500, 1000), Mode(1, 100, 100, 200)])
    modes = [*profiled, (4, 1000 * np.e, 500 / np.e, 1000, 1, 0)]
    assert distances(as_rows(modes), profiled) == pytest.approx([0, 0, 2**0.5])


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


def prior(modes):
    return 3e5 / modes[:, 2]


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


# -- intervals -------------------------------------------------------------------------------------


def deviating(world, rng):
    """Return a world of one epoch a mode whose modes deviate as is believed."""
    by = np.linalg.inv(Deviations(world.modes).whitening())
    size = DEVIATION * np.sqrt(DEVIATION_WEIGHT / rng.chisquare(DEVIATION_WEIGHT, 2))
    time, power = np.exp(size * (by @ rng.standard_normal((len(by), 2)))).T
    return replace(world, time_s=time * world.time_s, power_w=power * world.power_w)


def believed_shares(terms, rng):
    """Return shares of the terms as the belief has them: normal, above zero, of one whole."""
    means = {TIME: TIME_SHARES, POWER: POWER_SHARES}[terms]
    shares = np.maximum(means + SHARE_SD * rng.standard_normal(len(terms)), 0)
    return shares / shares.sum()


def held_share(plant, fit, terms, splits, n_worlds, draw=believed_shares):
    """Return the share of new modes that the intervals hold, over many worlds."""
    rng, held, of = np.random.default_rng(7), 0, 0
    for seed in range(n_worlds):
        world = deviating(plant(draw(terms, rng), terms=terms), rng)
        counts = coverage(fit, world, splits(world.distinct(), seed))
        held, of = held + counts[0], of + counts[1]
    return held / of


def lopsided_shares(terms, rng):
    return rng.dirichlet([0.4] * len(terms))


@pytest.mark.parametrize("draw", [believed_shares, lopsided_shares])
def test_intervals_of_time_from_the_papers_four_modes_hold(plant, efij, draw):
    share = held_share(
        plant, fit_physical_time, TIME, lambda modes, seed: [split(modes, efij)], 100, draw
    )
    assert 0.85 <= share <= 0.97


@pytest.mark.parametrize(("fit", "terms"), [(fit_physical_time, TIME), (fit_power, POWER)])
def test_intervals_from_four_modes_drawn_at_random_hold(plant, fit, terms):
    share = held_share(plant, fit, terms, lambda modes, seed: random_subsets(modes, 4, 1, seed), 80)
    assert 0.85 <= share <= 0.97


def close_modes(n):
    """Modes a few per cent apart, as those of a fine sweep are."""
    return as_rows([Mode(8, 2000.0, 800 * 1.02**step, 1600.0) for step in range(n)])


@pytest.mark.parametrize(("own_sd", "own"), [(0.002, OWN), (0.08, 10 * OWN)])
def test_what_differs_among_close_modes_is_each_ones_own(own_sd, own):
    """Twelve modes a few per cent apart, each off by itself: 8 % are ten times the belief."""
    modes = close_modes(12)
    off = own_sd * np.random.default_rng(5).standard_normal(12)
    seen = observations_from_rows("noisy", modes, 300 * 800 / modes[:, 2] * np.exp(off))
    model = fit_physical_time(seen)
    assert model.nugget == pytest.approx(own)


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
