"""Worlds of physics: shapes meet them, kernels are found, intervals hold, a reference helps."""

from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.modes import NO_LIMIT, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import predictors
from epochwatt.prediction.models.features import TIME, design
from epochwatt.prediction.models.gaussian_process import METHOD as PLAIN
from epochwatt.prediction.models.mean_shapes import under_limit
from epochwatt.prediction.models.utilisation import METHOD, TRANSFERRED
from epochwatt.prediction.predictor import Context, Reference

# -- mean shapes -----------------------------------------------------------------------------------


def test_a_power_limit_lowers_the_clock_below_the_knee_only():
    modes = as_rows([(4, 1000, 800, 1600, 1, limit) for limit in (50, 100, 200, 0)])
    assert under_limit(modes, 100)[:, 2] == pytest.approx([800 * 0.5**0.5, 800, 800, 800])
    assert under_limit(modes, 0)[:, 2] == pytest.approx([800] * 4)
    assert modes[0, 2] == 800


# -- utilisation -----------------------------------------------------------------------------------

SEEDS = range(4)


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


@pytest.mark.parametrize("n", [10, pytest.param(50, marks=pytest.mark.thorough)])
def test_intervals_hold_what_they_state_under_noise(agx, n):
    """Time, power and energy, each off by 1 %, over worlds."""
    held = {"time_s": [], "power_w": [], "energy_wh": []}
    for seed in SEEDS:
        whole = world(agx, seed, noise=0.01)
        rest = np.arange(len(whole.modes)) >= n
        test = whole.rows(rest)
        for target, fitted in predictors(METHOD, whole.rows(~rest), intervals=True).items():
            low, high = fitted.interval(test.modes)
            held[target].append(
                np.mean((low <= getattr(test, target)) & (getattr(test, target) <= high))
            )
    for shares in held.values():
        assert 0.83 <= np.mean(shares) <= (1 if n == 10 else 0.99)  # ten modes show little


def test_a_reference_that_bends_alike_helps(agx):
    """Another workload on the same board: other shares, the same deviation from the terms."""
    reference = Reference(world(agx, 100, (10, 50, 5, 1, 1.0), bend=0.5, name="reference"))
    gained = []
    for seed in range(6):
        target = world(agx, seed, bend=0.5)
        alone, helped = (
            np.median(errors_pct(method, target, 8, reference=reference))
            for method in (METHOD, TRANSFERRED)
        )
        gained.append(alone / helped)
    assert np.median(gained) > 1.1


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


def test_a_term_that_was_small_in_all_profiled_modes_is_open_elsewhere_and_never_absurd(agx):
    """Four to eight modes with most cores on; two cores at the lowest clock are another matter."""
    steps = ((2, 4, 6, 8), (420, 1310, 2200), (150, 380, 725, 1300), (665, 1600, 2133))
    modes = as_rows([(*mode, 1, NO_LIMIT) for mode in product(*steps)])
    cores, cpu, gpu, emc = modes[:, :4].T
    few, farthest, held = cores < 4, [], []
    for seed in range(10):
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
