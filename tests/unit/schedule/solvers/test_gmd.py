"""Answers are profiled choices that keep the budgets, near the best where boards are monotone."""

import numpy as np
import pytest

from epochwatt.schedule.problem import NONE, Problem, Stream
from epochwatt.schedule.solvers import exhaustive, gmd
from epochwatt.schedule.space import Problems, Space

SIZES = (1, 4, 16)


@pytest.fixture
def problems():
    rng = np.random.default_rng(5)
    n = 300
    rates, latencies = np.exp(rng.uniform(np.log([[1, 0.01]]), np.log([[300, 1]]), (n, 2))).T
    return Problems(rng.uniform(6, 35, n), rates[:, None], latencies[:, None])


class Watched(Space):
    """A space that notes which choices are looked at."""

    def judge(self, problems, choices):
        self.__dict__.setdefault("looked", []).append(np.array(choices))
        return super().judge(problems, choices)


@pytest.mark.parametrize("is_monotone", [True, False])
@pytest.mark.parametrize("trains", [True, False])
def test_answers_are_profiled_and_keep_the_budgets(problems, workload, is_monotone, trains):
    infer = workload(1, SIZES, is_monotone)
    space = Watched(workload(2, (16,), is_monotone) if trains else None, (infer,))
    answers = gmd.solve(space, problems)
    solved = answers.choice != NONE
    assert 0 < solved.sum() < len(problems)
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    assert judged.holds[solved].all()
    assert (answers.n_profiles <= gmd.N_PROFILES * space.profiles_per_choice).all()
    looked = np.concatenate([one for one in space.looked[:-1] if one.shape[1] == 1], axis=1)
    assert (looked == answers.choice[:, None]).any(1)[solved].all()
    best = exhaustive.solve(space, problems)
    assert not (solved & (best.choice == NONE)).any()


@pytest.mark.parametrize("n_profiles", [3, 15])
def test_two_streams_keep_to_the_profiles_and_the_budgets(problems, workload, n_profiles):
    space = Space(None, (workload(1, SIZES), workload(3, SIZES)))
    both = [np.repeat(one, 2, axis=1) for one in (problems.rates_per_s, problems.max_latencies_s)]
    two = Problems(problems.max_power_w, *both)
    answers, best = gmd.solve(space, two, n_profiles), exhaustive.solve(space, two)
    solved = answers.choice != NONE
    assert space.judge(two, np.maximum(answers.choice, 0)[:, None]).holds[solved, 0].all()
    assert (answers.n_profiles <= n_profiles * 2).all()
    solvable = best.choice != NONE
    assert solvable[solved].all()
    if n_profiles == gmd.N_PROFILES:
        assert solved[solvable].mean() > 0.9


def test_on_a_monotone_board_most_answers_are_near_the_best(problems, workload):
    space = Space(workload(2, (16,)))
    alone = Problems(problems.max_power_w, problems.rates_per_s[:, :0], problems.rates_per_s[:, :0])
    answers, best = gmd.solve(space, alone), exhaustive.solve(space, alone)
    solvable = best.choice != NONE
    assert (answers.choice[solvable] != NONE).mean() > 0.95
    both = solvable & (answers.choice != NONE)
    chosen, least = (
        space.judge(alone, np.maximum(one.choice, 0)[:, None]).cost[both, 0]
        for one in (answers, best)
    )
    assert np.median(chosen / least) > 0.97


def test_a_problem_alone_has_the_same_answer(problems, workload):
    space = Space(workload(2, (16,)), (workload(1, SIZES),))
    many = gmd.solve(space, problems)
    for place in (0, 7, 100):
        stream = Stream(
            rate_per_s=problems.rates_per_s[place, 0],
            max_latency_s=problems.max_latencies_s[place, 0],
        )
        one = Problem(max_power_w=problems.max_power_w[place], streams=(stream,), trains=True)
        assert gmd.solve(space, Problems.from_one(one)).choice[0] == many.choice[place]
