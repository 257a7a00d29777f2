"""Answers of every solver keep what they promise: profiled ones all budgets, and are counted."""

from functools import partial

import numpy as np
import pytest

from epochwatt.prediction.registry import load_method
from epochwatt.schedule import sampler, study
from epochwatt.schedule.problem import NONE, Problems, Space
from epochwatt.schedule.solvers import als, exhaustive, gain, gmd, predicted
from epochwatt.schedule.solvers.exhaustive import random_modes, solve_in_modes
from epochwatt.schedule.solvers.roofline_prior import roofline_prior

SIZES = (1, 4, 16)
SEARCHES = {"gmd": gmd.solve, "gain": gain.solve}


class Watched(Space):
    """A space that notes which choices are profiled one by one."""

    def judge(self, problems, choices, costs=None):
        if np.shape(choices)[1] == 1:
            self.__dict__.setdefault("looked", []).extend(np.ravel(choices).tolist())
        return super().judge(problems, choices, costs)


def truth(space, problems, answers):
    return space.judge(problems, np.maximum(answers.choice, 0)[:, None])


@pytest.mark.parametrize("solver", SEARCHES)
@pytest.mark.parametrize("is_monotone", [True, False])
@pytest.mark.parametrize("jobs", [(0, 1), (1, 1), (0, 2), (1, 0)])
def test_searches_keep_the_budgets_and_profile_no_more_than_allowed(
    problems, workload, jobs, is_monotone, solver
):
    """Of single jobs and pairs; on monotone boards most of what can be answered is."""
    train = workload(2, (16,), is_monotone) if jobs[0] else None
    space = Space(train, tuple(workload(seed, SIZES, is_monotone) for seed in (1, 3)[: jobs[1]]))
    streams = (problems.rates_per_s, problems.max_latencies_s)
    some = Problems(problems.max_power_w, *(np.repeat(one, jobs[1], axis=1) for one in streams))
    answers, best = SEARCHES[solver](space, some), exhaustive.solve(space, some)
    solved, solvable = answers.choice != NONE, best.choice != NONE
    assert 0 < solved.sum() < len(some)
    assert truth(space, some, answers).holds[solved].all()
    assert (answers.n_profiles <= gmd.N_PROFILES * sum(jobs)).all()
    assert solvable[solved].all()
    if is_monotone:
        assert solved[solvable].mean() > 0.9
        both = solved & (best.choice != NONE)
        found, least = (truth(space, some, one).cost[both, 0] for one in (answers, best))
        loss = np.divide(found - least, np.abs(least), where=least != 0, out=np.zeros(len(least)))
        assert np.median(loss) < 0.1


@pytest.mark.parametrize("solver", SEARCHES)
@pytest.mark.parametrize("most", [3, 15])
def test_the_answer_was_profiled_and_is_the_same_alone(problems, workload, most, solver):
    train, infer = workload(2, (16,)), workload(1, SIZES)
    space = Space(train, (infer,))
    search = SEARCHES[solver]
    if solver == "gain":
        search = partial(search, prior=roofline_prior(space))
    many = search(space, problems, n_profiles=most)
    for place in range(0, len(problems), 20):
        space = Watched(train, (infer,))
        answers = search(space, problems.subset(np.array([place])), n_profiles=most)
        looked = {*space.__dict__.get("looked", [])}
        assert answers.choice[0] in (NONE, *looked)
        assert answers.choice[0] == many.choice[place]
        assert answers.n_profiles[0] / 2 <= most
        if solver == "gain":
            assert len(looked) == answers.n_profiles[0] / 2
            assert answers.board_s[0] == pytest.approx(sum(space.board_s(np.array([*looked]))))


# -- by prediction ---------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["monotone", "rough"])
def space(request, workload):
    return Space(workload(2, (16,), request.param), (workload(1, SIZES, request.param),))


@pytest.fixture
def some_modes(space):
    return random_modes(space, 8, seed=3)


def test_verified_answers_keep_the_budgets_and_lose_nothing(problems, space, some_modes):
    seen = predicted.predicted_space(space, load_method("physical"), some_modes)
    for one, real in zip(seen.workloads, space.workloads, strict=True):
        assert np.array_equal(one.time_s[some_modes], real.time_s[some_modes])
    answers = predicted.solve_verified(space, problems, seen, some_modes)
    before = solve_in_modes(space, problems, some_modes)
    solved, had = answers.choice != NONE, before.choice != NONE
    judged, first = (truth(space, problems, one) for one in (answers, before))
    assert judged.holds[solved].all()
    assert solved[had].all()
    assert (judged.cost[had] <= first.cost[had]).all()
    spent = answers.n_profiles - before.n_profiles
    assert ((spent >= 0) & (spent <= 2 * predicted.MOST_VERIFIED)).all()
    assert (answers.board_s[spent > 0] > before.board_s[spent > 0]).all()


# -- with networks ---------------------------------------------------------------------------------


@pytest.fixture
def rough(workload):
    return Space(workload(2, (16,), False), (workload(1, SIZES, False),))


@pytest.fixture
def fast(monkeypatch):
    """Physical terms in place of networks, which take a second each."""
    monkeypatch.setattr(study, "NETWORK", "physical")
    monkeypatch.setattr(study, "TRANSFERRED", "gaussian_process")


@pytest.fixture
def known(rough, fast):
    train, infer = rough.workloads
    return [study.learn(train, infer, 2, True), study.learn(infer, train, 2, False)]


def test_als_profiles_at_most_fifty_modes_each_once_and_the_same_again(workload):
    one, method = workload(1, SIZES, False), load_method("physical")
    modes = als.profiled_modes(one, method, 3)
    assert als.N_ROUND < len(modes) <= als.MOST_MODES
    assert len(modes) % als.N_ROUND == 0
    assert len(np.unique(modes)) == len(modes)
    assert np.array_equal(modes, als.profiled_modes(one, method, 3))
    totals = one.modes.sum(1)
    assert {totals.argmin(), totals.argmax()} <= {*modes[: als.N_ROUND]}


def test_als_answers_with_modes_of_its_fronts_that_keep_the_budgets(rough, known):
    space = rough
    problems = sampler.problems_of(space, sampler.Size(4, 3))
    answers = study.learned_solvers(known)["als"].solve(space, problems, 1)
    modes = {*known[0]["als"][1].modes, *known[1]["als"][1].modes}
    solved = answers.choice != NONE
    assert solved.any()
    assert {*space.choices[answers.choice[solved], 0]} <= modes
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    assert judged.holds[solved, 0].all()
    assert set(answers.n_profiles) == {len(modes) * (1 + len(SIZES))}
    expected_s = sum(one.board_s(np.array(sorted(modes))) for one in space.workloads)
    assert answers.board_s == pytest.approx(expected_s)
