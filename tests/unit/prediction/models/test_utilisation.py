"""Worlds of physics: predictions are near, intervals hold, a reference helps where it can."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.modes import NO_LIMIT, PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import predictors
from epochwatt.prediction.models.features import TIME, design
from epochwatt.prediction.models.gaussian_process import METHOD as PLAIN
from epochwatt.prediction.models.utilisation import METHOD, TRANSFERRED
from epochwatt.prediction.predictor import Context, Reference

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


def test_a_reference_that_says_nothing_does_little_harm(agx):
    """Its values are drawn at random."""
    rows = world(agx, 100, name="reference")
    noise = np.random.default_rng(5).permutation(rows.time_s)
    reference = Reference(replace(rows, time_s=noise))
    target = world(agx, 1)
    alone, with_it = (
        np.median(errors_pct(method, target, 25, reference=reference))
        for method in (METHOD, TRANSFERRED)
    )
    assert with_it < 1.5 * alone


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


def test_constant_power_is_predicted_as_such(agx):
    whole = replace(world(agx, 0, n=20), power_w=np.full(20, 8.0))
    fitted = METHOD.fit(whole, Context("power_w"))
    assert fitted.predict(agx.all_modes()[::2997]) == pytest.approx(8, rel=0.1)


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
