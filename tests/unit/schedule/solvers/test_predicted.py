"""Answers by prediction: verified ones were profiled and keep every budget."""

import numpy as np
import pytest

from epochwatt.prediction.registry import load_method
from epochwatt.schedule.problem import NONE
from epochwatt.schedule.solvers import predicted, profiled
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


def one_by_one(space, problem, seen, modes):
    """Run candidates of one problem as written down: the best left, again and again."""
    choices = np.arange(len(space.choices))
    expected, truth = (one.judge(problem, choices[None]) for one in (seen, space))
    cost, power_w = expected.cost[0], expected.power_w[0]
    is_profiled = np.isin(space.choices[:, 0], modes)
    best = int(profiled.solve(space, problem, modes).choice[0])
    least, factor = (np.inf, 1.0) if best == NONE else (cost[best], 1.0)
    left = choices[~is_profiled & expected.keeps_latency[0] & expected.is_stable[0]]
    left = left[np.lexsort((power_w[left], cost[left]))].tolist()
    for _ in range(predicted.MOST_VERIFIED):
        fits = [
            c for c in left if power_w[c] <= problem.max_power_w[0] / factor and cost[c] < least
        ]
        if not fits:
            break
        left = left[left.index(fits[0]) + 1 :]
        if truth.holds[0, fits[0]] and truth.cost[0, fits[0]] < least:
            best, least = fits[0], truth.cost[0, fits[0]]
        if not truth.keeps_power[0, fits[0]]:
            factor = max(factor, truth.power_w[0, fits[0]] / power_w[fits[0]])
    return best


@pytest.mark.parametrize("rule", ["highest", "mean"])
def test_candidates_of_many_problems_are_those_of_each(problems, space, some_modes, rule):
    """Under the mean power all choices are candidates; else those that others beat are left out."""
    seen = predicted.predicted_space(space, load_method("physical"), some_modes)
    some = np.arange(200) % 40  # of the same streams, with other power budgets
    problems = Problems(
        problems.max_power_w, problems.rates_per_s[some], problems.max_latencies_s[some], rule
    )
    choice = predicted.solve_verified(space, problems, seen, some_modes).choice
    each = [one_by_one(space, problems.only([i]), seen, some_modes) for i in range(200)]
    assert NONE in each
    if rule == "mean":
        assert choice.tolist() == each
    else:
        judged = [
            space.judge(problems, np.maximum(one, 0)[:, None]).cost
            for one in (choice, np.array(each))
        ]
        assert (np.array(each) == NONE).tolist() == (choice == NONE).tolist()
        assert judged[0] == pytest.approx(judged[1], rel=0.05)


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
