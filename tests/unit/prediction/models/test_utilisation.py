"""Worlds of physics: shapes meet them, kernels are found, intervals hold, a reference helps."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import NO_LIMIT, PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import predictors
from epochwatt.prediction.models.features import LOGS, POWER, TIME, design
from epochwatt.prediction.models.gaussian_process import METHOD as PLAIN
from epochwatt.prediction.models.kernel_sample import (
    Kernels,
    Observed,
    among,
    left_out,
    sample_kernels,
)
from epochwatt.prediction.models.mean_shapes import (
    OPEN_RESIDUAL,
    Shares,
    SumOfTerms,
    fit_sum,
    on_reference,
    under_limit,
    with_residual,
)
from epochwatt.prediction.models.utilisation import METHOD, TRANSFERRED
from epochwatt.prediction.predictor import Context, Reference

# -- mean shapes -----------------------------------------------------------------------------------


@pytest.fixture
def drawn(agx):
    every = agx.all_modes()
    return every[np.random.default_rng(0).permutation(len(every))[:40]]


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_sum_meets_parts_that_add_up_or_overlap(drawn, norm):
    parts = design(TIME, drawn, 5) * [40, 30, 20, 5, 3]
    times = (parts**norm).sum(1) ** (1 / norm)
    fitted = fit_sum(drawn, times, 5, norm)
    expected, open_by = fitted(drawn)
    assert np.exp(expected) == pytest.approx(times, rel=0.05)  # the belief pulls a little
    assert open_by.shape == (40, 2 * len(TIME))  # each: as far as it was seen, and beyond
    assert fitted.shares(drawn).sum(1) == pytest.approx(1)


def test_what_is_open_is_the_slope_of_the_logarithm(drawn):
    """A column is what a change of its coefficient by a deviation does."""
    fitted = fit_sum(drawn, design(TIME, drawn, 5) @ [40, 30, 20, 5, 3.0], 5, norm=2.0)
    expected, open_by = fitted(drawn)
    step = 1e-6 / fitted.sizes[0]
    moved = np.array([fitted.coefficients[0] + step, *fitted.coefficients[1:]])
    again = SumOfTerms(fitted.terms, 5, moved, fitted.sizes, fitted.norm)
    slope = (again(drawn)[0] - expected) / 1e-6
    assert open_by[:, 0] == pytest.approx(0.4 * slope, rel=1e-3)


def test_power_is_what_busy_and_idle_parts_draw(drawn):
    times = fit_sum(drawn, design(TIME, drawn, 5) @ [40, 30, 20, 5, 3.0], 5)
    busy = Shares((times,), np.ones(1))
    shares = busy(drawn)
    assert (shares >= 0).all()
    assert (shares.sum(1) <= 1 + 1e-9).all()  # the rest is what no clock changes
    watts = 3 + 8 * shares[:, 0] * design(POWER, drawn, 5)[:, 0]
    fitted = fit_sum(drawn, watts, 5, times=busy)
    assert np.exp(fitted(drawn)[0]) == pytest.approx(watts, rel=0.05)


def test_a_power_limit_lowers_the_clock_below_the_knee_only():
    modes = as_rows([(4, 1000, 800, 1600, 1, limit) for limit in (50, 100, 200, 0)])
    assert under_limit(modes, 100)[:, 2] == pytest.approx([800 * 0.5**0.5, 800, 800, 800])
    assert under_limit(modes, 0)[:, 2] == pytest.approx([800] * 4)
    assert modes[0, 2] == 800


def test_a_reference_gives_its_curve_and_its_residual(drawn):
    """Both workloads bend away from the terms alike; the curve alone has another exponent."""

    class Known:
        """Predicts the reference's own values."""

        def predict(self, modes):
            return design(TIME, modes, 5) @ [40, 30, 20, 5, 3.0] * bend(modes)

    def bend(modes):
        return np.exp(0.3 * np.sin(4 * np.log(modes[:, 2])))

    sums = [
        fit_sum(drawn, design(TIME, drawn, 5) @ shares, 5)
        for shares in ([10, 50, 5, 1, 1.0], [40, 30, 20, 5, 3.0])
    ]
    expected, open_by = with_residual(sums[0], sums[1], Known())(drawn)
    left = (expected - sums[0](drawn)[0]) * 2
    assert left == pytest.approx(np.log(bend(drawn)), abs=0.05)
    assert open_by[:, -1] == pytest.approx(OPEN_RESIDUAL * left)
    scaled = on_reference(drawn, 7 * Known().predict(drawn), LOGS, Known())
    assert np.exp(scaled(drawn)[0]) == pytest.approx(7 * Known().predict(drawn))


# -- kernel sample ---------------------------------------------------------------------------------


@pytest.fixture
def seen():
    """Return thirty modes of two parts; values follow the first, each off by 1 %."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (30, 2))
    off = 0.3 * np.sin(3 * rows[:, 0]) + 0.01 * rng.standard_normal(30)
    return Observed(rows, np.ones((2, 30, 30)), np.array([off, off + 5 * rows[:, 1]]))


def test_one_left_out_is_what_a_fit_without_it_misses_by(seen):
    kernels = Kernels(np.log([[0.7, 2.0, 0.3, 0.05]]), np.array([0]))
    whole = among(kernels, seen)
    told = left_out(np.linalg.inv(whole), seen.off[:1])
    others = np.arange(1, 30)
    weights = np.linalg.solve(whole[0][np.ix_(others, others)], whole[0][0, others])
    miss = seen.off[0, 0] - weights @ seen.off[0, others]
    sd = np.sqrt(whole[0][0, 0] - weights @ whole[0][0, others])
    assert told[0] == pytest.approx(miss / sd)


def test_the_sample_finds_shape_noise_and_the_part_that_matters(seen):
    kernels = sample_kernels(seen)
    assert (kernels.shape == 0).all()  # the other one leaves a slope of five over
    assert np.median(kernels.noises) == pytest.approx(0.01, rel=0.5)
    assert np.median(kernels.lengths[:, 1] / kernels.lengths[:, 0]) > 2


# -- utilisation -----------------------------------------------------------------------------------

SEEDS = range(6)


def world(agx, seed, shares=(40, 30, 20, 5, 3.0), noise=0.0, n=220, bend=0.1, name="world"):
    """Return a workload: parts that overlap in part, bent smoothly, power by how busy they are."""
    rng = np.random.default_rng(seed)
    modes = agx.all_modes()[rng.permutation(29_232)[:n]]
    parts = design(TIME, modes, 5) * np.array(shares)
    phase = np.random.default_rng(99).uniform(0, 6, 3)  # of the board, not of the workload
    smooth = np.sin(1.5 * np.log(modes[:, 1:4]) + phase).sum(1)
    times = (parts**1.4).sum(1) ** (1 / 1.4) * np.exp(bend * smooth)
    busy = parts / parts.sum(1, keepdims=True)
    gpu, cpu = modes[:, 2] / 1377, modes[:, 1] / 2266
    watts = 4 + 12 * busy[:, 0] * gpu**2 + 6 * busy[:, 2] * cpu**2 + 3 * modes[:, 3] / 2133
    off = np.exp(noise * rng.standard_normal((2, n)))
    return observations_from_rows(name, modes, times * off[0], watts * off[1])


def errors_pct(method, observations, n, target="time_s", reference=None):
    rest = np.arange(len(observations.modes)) >= n
    fitted = method.fit(observations.rows(~rest), Context(target, reference=reference))
    test = observations.rows(rest)
    return 100 * np.abs(fitted.predict(test.modes) / getattr(test, target) - 1)


def test_few_modes_are_enough_where_physics_is_right(agx):
    """Medians over worlds, beside those of a process that knows no physics."""
    found = {
        (method.title, target): np.median(
            [np.median(errors_pct(method, world(agx, seed), 15, target)) for seed in SEEDS]
        )
        for method in (METHOD, PLAIN)
        for target in ("time_s", "power_w")
    }
    for target in ("time_s", "power_w"):
        assert found[METHOD.title, target] < 4
        assert found[METHOD.title, target] < found[PLAIN.title, target]


@pytest.mark.parametrize("n", [10, 25, 50])
def test_intervals_hold_what_they_state_under_noise(agx, n):
    """Time, power and energy, each off by 1 %, over worlds."""
    held = {"time_s": [], "power_w": [], "energy_wh": []}
    for seed in SEEDS:
        whole = world(agx, seed, noise=0.01)
        rest = np.arange(len(whole.modes)) >= n
        test = whole.rows(rest)
        for target, one in predictors(METHOD, whole.rows(~rest), intervals=True).items():
            low, high = one.interval(test.modes)
            observed = getattr(test, target)
            held[target].append(((low <= observed) & (observed <= high)).mean())
    for shares in held.values():
        assert 0.83 <= np.mean(shares) <= (1 if n == 10 else 0.99)  # ten modes show little


def test_a_reference_that_bends_alike_helps(agx):
    """Another workload on the same board: other shares, the same deviation from the terms."""
    reference = Reference(world(agx, 100, (10, 50, 5, 1, 1.0), bend=0.5, name="reference"))
    gained = {
        n: np.median(
            [
                np.median(errors_pct(METHOD, target, n))
                / np.median(errors_pct(TRANSFERRED, target, n, reference=reference))
                for target in (world(agx, seed, bend=0.5) for seed in SEEDS)
            ]
        )
        for n in (8, 25)
    }
    assert min(gained.values()) > 1.1


def test_a_power_limit_is_felt_below_its_knee(agx):
    """From limits on both sides; the time is flat above 200 W."""
    limits = np.array([100, 125, 150, 175, 200, 225, 250, 275, 300.0])
    modes = as_rows([(4, 1000, 1000, 1000, 1, limit) for limit in limits])
    times = 20 + 80 * np.maximum(200 / limits, 1) ** 0.5
    watts = 30 + 0.8 * np.minimum(limits, 200)
    known = [0, 2, 4, 5, 8]
    seen = observations_from_rows("net", modes[known], times[known], watts[known])
    for target, truth in (("time_s", times), ("power_w", watts)):
        fitted = METHOD.fit(seen, Context(target))
        assert fitted.predict(modes) == pytest.approx(truth, rel=0.04)
    assert (modes[:, 5] != NO_LIMIT).all()


def test_modes_that_were_left_out_widen_intervals(agx):
    """A law that breaks at random from mode to mode is nothing that a process knows."""
    rng = np.random.default_rng(3)
    calm = METHOD.fit(world(agx, 1, n=30), Context("time_s"))
    wild = world(agx, 1, n=30)
    jumps = np.where(rng.random(30) < 0.15, 1.6, 1.0)
    jumped = METHOD.fit(replace(wild, time_s=wild.time_s * jumps), Context("time_s"))
    assert calm.widening >= 1
    assert jumped.widening >= calm.widening
    assert len(calm.residuals()) == 30


def test_what_it_cannot_be_fitted_to_is_refused(agx):
    whole = world(agx, 0, n=5)
    with pytest.raises(PredictionError, match="2 modes or more"):
        METHOD.fit(whole.rows(np.arange(5) < 1), Context("time_s"))
    with pytest.raises(PredictionError, match="no energy was measured"):
        METHOD.fit(replace(whole, power_w=np.full(5, np.nan)), Context("power_w"))
    with pytest.raises(PredictionError, match="none was given"):
        TRANSFERRED.fit(whole, Context("time_s"))


def test_a_term_that_was_small_in_all_profiled_modes_is_open_elsewhere_and_never_absurd(agx):
    """Four to eight modes with most cores on; two cores at the lowest clock are another matter.

    Waits for the CPU alone: time is the longest of the parts. Expectations were off by e^20.
    """
    modes = as_rows(
        [
            (n, cpu, gpu, emc, 1, NO_LIMIT)
            for n in (2, 4, 6, 8)
            for cpu in (420, 1310, 2200)
            for gpu in (150, 380, 725, 1300)
            for emc in (665, 1600, 2133)
        ]
    )
    cores, cpu, gpu, emc = modes[:, :4].T
    few, farthest, held = cores < 4, [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b, c = rng.uniform([5, 2, 2], [60, 40, 120])
        waits = c / (np.minimum(cores, 5) * cpu / 2200)
        seconds = np.maximum(1300 * a / gpu + 640 * b / emc, waits) + rng.uniform(0, 5)
        some = rng.choice(np.flatnonzero(~few), rng.integers(4, 9), replace=False)
        rows = observations_from_rows("waits", modes[some], seconds[some], seconds[some])
        fitted = METHOD.fit(rows, Context("time_s"))
        off = np.log(fitted.predict(modes[few]) / seconds[few])
        low, high = fitted.interval(modes[few])
        held.append(((low <= seconds[few]) & (seconds[few] <= high)).mean())
        farthest.append(np.abs(off).max())
        assert np.isfinite(fitted.sample(modes)).all()
    assert max(farthest) < np.log(100)
    assert np.median(farthest) < np.log(5)
    assert np.mean(held) > 0.8
