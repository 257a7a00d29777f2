"""Answers by prediction: verified ones were profiled and keep every budget."""

import numpy as np
import pytest

from epochwatt.prediction.registry import load_method
from epochwatt.schedule.solution import NONE
from epochwatt.schedule.solvers import exhaustive, predicted, profiled
from epochwatt.schedule.space import Problems, Space

SIZES = (1, 4, 16)


@pytest.fixture
def problems():
    rng = np.random.default_rng(5)
    n = 200
    rates, latencies = np.exp(rng.uniform(np.log([[1, 0.01]]), np.log([[300, 1]]), (n, 2))).T
    return Problems(rng.uniform(6, 35, n), rates[:, None], latencies[:, None])


@pytest.fixture(params=[True, False], ids=["monotone", "rough"])
def space(request, workload):
    return Space(workload(2, (16,), request.param), (workload(1, SIZES, request.param),))


@pytest.fixture
def some_modes(space):
    return profiled.random_modes(space, 8, seed=3)


def test_verified_answers_keep_the_budgets_and_lose_nothing(problems, space, some_modes):
    seen = predicted.predicted_space(space, load_method("physical"), some_modes)
    answers = predicted.solve_verified(space, problems, seen, some_modes)
    before = profiled.solve(space, problems, some_modes)
    solved = answers.choice != NONE
    judged, first = (
        space.judge(problems, np.maximum(one.choice, 0)[:, None]) for one in (answers, before)
    )
    assert judged.holds[solved].all()
    assert (solved | (before.choice == NONE)).all()
    had = before.choice != NONE
    assert (judged.cost[had] <= first.cost[had]).all()
    spent = answers.n_profiles - before.n_profiles
    assert (spent >= 0).all()
    assert (spent <= predicted.MOST_VERIFIED * space.profiles_per_choice).all()


def test_what_is_seen_of_profiled_modes_is_the_truth(space, some_modes):
    seen = predicted.predicted_space(space, load_method("physical"), some_modes)
    for one, truth in zip(seen.workloads, space.workloads, strict=True):
        assert np.array_equal(one.time_s[some_modes], truth.time_s[some_modes])
        others = np.setdiff1d(np.arange(len(space.modes)), some_modes)
        assert not np.array_equal(one.power_w[others], truth.power_w[others])


def test_by_prediction_alone_budgets_are_broken_on_a_rough_board(problems, workload):
    space = Space(workload(2, (16,), False), (workload(1, SIZES, False),))
    modes = profiled.random_modes(space, 8, seed=3)
    seen = predicted.predicted_space(space, load_method("physical"), modes)
    answers = predicted.solve(space, problems, seen, modes)
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    assert not judged.holds[answers.choice != NONE].all()


def test_of_all_modes_profiled_the_best_is_the_best(problems, space):
    every = np.arange(len(space.modes))
    answers = profiled.solve(space, problems, every)
    assert np.array_equal(answers.choice, exhaustive.solve(space, problems).choice)
    assert (answers.n_profiles == len(every) * (1 + len(SIZES))).all()


def test_the_strongest_mode_is_the_top_of_the_grid(space):
    strongest = space.modes[profiled.strongest_mode(space)[0]]
    assert (strongest == space.modes.max(0)).all()
