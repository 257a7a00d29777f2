"""Solvers with networks: what they profile, and that ALS answers with profiled choices alone."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.registry import load_method
from epochwatt.schedule import evaluation, profiles, sampler
from epochwatt.schedule.evaluation import learned_solvers
from epochwatt.schedule.problem import NONE
from epochwatt.schedule.solvers import als
from epochwatt.schedule.space import Space

SIZES = (1, 4, 16)


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Physical terms in place of networks, which take a second each."""
    monkeypatch.setattr(evaluation, "NETWORK", "physical")
    monkeypatch.setattr(evaluation, "TRANSFERRED", "gaussian_process")


@pytest.fixture
def space(workload):
    return Space(workload(2, (16,), False), (workload(1, SIZES, False),))


@pytest.fixture
def known(space):
    train, infer = space.workloads
    return [evaluation.learn(train, infer, 2, True), evaluation.learn(infer, train, 2, False)]


def test_als_profiles_at_most_fifty_modes_each_once_and_the_same_again(workload):
    one, method = workload(1, SIZES, False), load_method("physical")
    modes = als.profiled_modes(one, method, 3)
    assert als.N_ROUND < len(modes) <= als.MOST_MODES
    assert len(modes) % als.N_ROUND == 0
    assert len(np.unique(modes)) == len(modes)
    assert np.array_equal(modes, als.profiled_modes(one, method, 3))
    totals = one.modes.sum(1)
    assert {totals.argmin(), totals.argmax()} <= {*modes[: als.N_ROUND]}


def test_als_answers_with_modes_of_its_fronts_that_keep_the_budgets(space, known):
    problems = sampler.problems_of(space, sampler.Size(4, 3))
    answers = learned_solvers(known)["als"].solve(space, problems, 1)
    modes = {*known[0]["als"][1].modes, *known[1]["als"][1].modes}
    solved = answers.choice != NONE
    assert solved.any()
    assert {*space.choices[answers.choice[solved], 0]} <= modes
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    assert judged.holds[solved, 0].all()
    assert set(answers.n_profiles) == {len(modes) * (1 + len(SIZES))}
    expected_s = sum(one.board_s(np.array(sorted(modes))) for one in space.workloads)
    assert answers.board_s == pytest.approx(expected_s)


def test_networks_answer_for_each_job_by_its_own_modes(space, known):
    problems = sampler.problems_of(space, sampler.Size(4, 3))
    for name, n_train, n_infer in (("neural", 72, 50), ("powertrain", 50, 50)):
        answers = learned_solvers(known)[name].solve(space, problems, 0)
        assert set(answers.n_profiles) == {n_train + n_infer * len(SIZES)}
        judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
        assert (answers.choice != NONE).any()
        assert judged.cost.shape == (len(problems), 1)


def test_networks_of_a_reference_are_kept_where_it_is_told(space, monkeypatch, tmp_path):
    """Jobs are learned one by one: what a reference teaches is worked out for all of them."""
    method, caches = load_method("physical"), []

    def fit(observations, context):
        caches.append((context.reference is not None, context.cache))
        return method.fit(observations, context)

    monkeypatch.setattr(evaluation, "load_method", lambda name: replace(method, fit=fit))
    train, infer = space.workloads
    evaluation.learn(infer, train, 1, False, tmp_path)
    assert set(caches) == {(False, None), (True, tmp_path)}


def test_what_is_learned_comes_back_from_its_file(space, known, tmp_path):
    path = tmp_path / "learned.npz"
    evaluation.write_learned(known[1], path)
    again = evaluation.read_learned(path, space.infer[0])
    assert again.keys() == known[1].keys()
    for solver, draws in known[1].items():
        for one, other in zip(draws, again[solver], strict=True):
            assert np.array_equal(one.modes, other.modes)
            assert np.array_equal(one.workload.time_s, other.workload.time_s)
            assert np.array_equal(one.workload.power_w, other.workload.power_w)


def test_a_profile_takes_as_long_as_the_search_of_one_mode_assumes(workload):
    from epochwatt.board.training.procedure import DEFAULTS
    from epochwatt.prediction.profile.bench import AROUND_S

    assert (AROUND_S, DEFAULTS.minibatches) == (profiles.AROUND_S, profiles.MINIBATCHES)
    one = workload(1, SIZES)
    expected_s = 2 * 3 * AROUND_S + DEFAULTS.minibatches * one.time_s[[0, 5]].sum()
    assert one.board_s(np.array([0, 5])) == pytest.approx(expected_s)
