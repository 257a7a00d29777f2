"""The problems are those that the sampler says; statistics of answers are those counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.registry import load_method
from epochwatt.schedule import sampler
from epochwatt.schedule.evaluation import N_SAMPLED, Score, evaluate, judge, solvers
from epochwatt.schedule.problem import NONE, Answers
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.space import Problems, Space

SIZES = (1, 4, 16)
SMALL = sampler.Size(4, 3)


def test_loads_and_latencies_span_what_the_strongest_mode_serves(workload):
    infer = workload(1, SIZES)
    problems = sampler.problems_of(Space(None, (infer,)), SMALL)
    assert len(problems) == (50 - 12 + 1) * 4 * 3
    most = (infer.batch_sizes / infer.time_s[-1]).max()
    assert problems.rates_per_s.max() == pytest.approx(0.95 * most)
    assert problems.max_latencies_s.min() == pytest.approx(1.2 * infer.time_s[-1].min())
    assert set(problems.max_power_w) == set(range(12, 51))


def test_two_streams_share_the_load_and_training_has_power_alone(workload):
    first, second = workload(1, SIZES), workload(2, SIZES)
    two = sampler.problems_of(Space(None, (first, second)), SMALL)
    one = sampler.problems_of(Space(None, (first,)), SMALL)
    assert two.rates_per_s[:, 0] == pytest.approx(one.rates_per_s[:, 0] / 2)
    alone = sampler.problems_of(Space(workload(3, (16,))), SMALL)
    assert alone.rates_per_s.shape == (39, 0)


def test_statistics_of_four_answers(workload):
    space = Space(workload(3, (16,)))
    none = np.zeros((4, 0))
    power = np.sort(space.train.power_w[:, 0])
    problems = Problems(np.full(4, power[-1]), none, none)
    best = exhaustive.solve(space, problems).choice[0]
    slow = int(space.train.time_s[:, 0].argmax())
    tight = Problems(np.array([power[-1], power[-1], power[-1], power[0] * 0.9]), none, none)
    answers = Answers(np.array([best, slow, NONE, best]), np.array([3, 5, 7, 9]))
    least = np.full(4, -1 / space.train.time_s[best, 0])
    row = judge(space, tight, answers, least, Score(draw=0))
    assert row.answered_pct == 75
    assert row.kept_pct == pytest.approx(200 / 3)
    assert row.kept_latency_pct == 100
    ratio = space.train.time_s[best, 0] / space.train.time_s[slow, 0]
    assert row.loss_mean_pct == pytest.approx(100 * (1 - ratio) / 2)
    assert row.optimal_pct == 50
    assert row.n_profiles == 6


@pytest.mark.parametrize("rule", ["highest", "mean"])
def test_each_solver_has_a_row_for_each_draw(workload, rule):
    space = Space(workload(3, (16,)), (workload(1, SIZES),))
    named = solvers({"physical": load_method("physical")}, np.array([0, 5]), (6,))
    rows = list(evaluate(space, sampler.problems_of(space, SMALL, rule), named, n_draws=2))
    n_rows = {name: sum(row.solver == name for row in rows) for name in named}
    drawn = {"random_6", "physical_6", "physical_6_verified"}
    assert n_rows == {name: 2 if name in drawn else 1 for name in named}
    n_solvable = rows[0].n_solvable
    assert n_solvable > N_SAMPLED
    n_judged = {row.solver: row.n_judged for row in rows}
    assert n_judged.pop("gain") == N_SAMPLED
    assert {*n_judged.values()} == {n_solvable}
    first = rows[0]
    assert (first.solver, first.kept_pct, first.loss_mean_pct) == ("exhaustive", 100, 0)
    profiled = ("gmd", "gain", "random_6", "physical_6_verified")
    assert all(row.kept_pct == 100 for row in rows if row.solver in profiled)


def test_a_budget_of_the_mean_power_allows_at_least_what_one_of_the_highest_does(workload):
    train = workload(3, (16,))
    hungry = replace(train, power_w=1.3 * train.power_w)
    space = Space(hungry, (workload(1, SIZES),))
    problems = [sampler.problems_of(space, SMALL, rule) for rule in ("highest", "mean")]
    highest, mean = (exhaustive.solve(space, some).choice for some in problems)
    assert ((mean != NONE) | (highest == NONE)).all()
    both = highest != NONE
    cost = [
        space.judge(some.only(both), choice[both][:, None]).cost[:, 0]
        for some, choice in zip(problems, (highest, mean), strict=True)
    ]
    assert (cost[1] <= cost[0]).all()
    assert (cost[1] < cost[0]).any()
