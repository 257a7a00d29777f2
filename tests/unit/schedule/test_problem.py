"""The best plan equals that of a search written as plain loops, which also plays the arrivals."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.schedule.problem import NONE, Problems, Space, Workload
from epochwatt.schedule.question import best_plan
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.solvers.exhaustive import best_of

SIZES = (1, 4, 16)


def workload(seed, n_modes, sizes):
    rng = np.random.default_rng(seed)
    speed = rng.uniform(0.3, 3, n_modes)[:, None]
    work = 0.01 + 0.004 * np.array(sizes, float)
    modes = np.column_stack([rng.integers(1, 9, n_modes), *rng.uniform(100, 2000, (3, n_modes))])
    modes = np.column_stack([modes, np.ones(n_modes), np.zeros(n_modes)])
    power = 5 + 8 * speed + rng.uniform(0, 3, (n_modes, len(sizes)))
    return Workload("made-up", modes, np.array(sizes), work / speed, power)


def with_modes(one, modes):
    return Workload(one.name, modes, one.batch_sizes, one.time_s, one.power_w)


def longest_wait(rate, batch, infer_s, n_train, train_s, n_batches=20):
    """Play the arrivals one by one: the longest latency, and whether the board falls behind."""
    free, longest = 0.0, 0.0
    late = 0.0
    for i in range(n_batches):
        first, last = i * batch / rate, ((i + 1) * batch - 1) / rate
        start = max(free, last)
        late = start - last
        longest = max(longest, start + infer_s - first)
        free = start + infer_s + n_train * train_s
    return longest, late


@given(
    seed=st.integers(0, 1000),
    rate=st.floats(0.5, 200),
    latency=st.floats(0.01, 2),
    power=st.floats(5, 35),
    rule=st.sampled_from(["highest", "mean"]),
)
def test_serving_and_training_equals_loops(seed, rate, latency, power, rule):
    infer, train = workload(seed, 7, SIZES), workload(seed + 1, 7, (16,))
    train = with_modes(train, infer.modes)
    best = None
    for m, k in product(range(7), range(3)):
        batch, infer_s, infer_w = SIZES[k], infer.time_s[m, k], infer.power_w[m, k]
        train_s, train_w = train.time_s[m, 0], train.power_w[m, 0]
        gap = batch / rate - infer_s
        if gap < 0 or (batch - 1) / rate + infer_s > latency:
            continue
        n = math.floor(gap / train_s)
        drawn = max(infer_w, train_w) if n else infer_w
        if rule == "mean":
            drawn = (infer_s * infer_w + n * train_s * train_w) / (infer_s + n * train_s)
        if drawn <= power:
            best = max(best or 0.0, n * rate / batch)
    problem = Problems.one(power, (rate, latency), power_rule=rule)
    plan = best_plan(Space(train, (infer,)), problem)
    if best is None:
        assert plan is None
        return
    assert plan.throughput_per_s == pytest.approx(best)
    k = SIZES.index(plan.batch_sizes[0])
    times = infer.time_s[plan.place, k], plan.n_train, train.time_s[plan.place, 0]
    longest, late = longest_wait(rate, SIZES[k], *times)
    assert longest <= latency * (1 + 1e-6)
    assert late == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("rule", ["highest", "mean"])
@pytest.mark.parametrize("jobs", [(1, 0), (0, 1), (1, 1), (0, 2)])
def test_problems_of_the_same_streams_have_the_answers_that_each_has_alone(jobs, rule, monkeypatch):
    """Times of few digits: many choices are equally good, and many draw the same."""
    monkeypatch.setattr(exhaustive, "_AT_ONCE", 100)
    some = [workload(seed, 12, SIZES) for seed in range(3)]
    some = [
        replace(
            one, modes=some[0].modes, time_s=one.time_s.round(2) + 0.01, power_w=one.power_w.round()
        )
        for one in some
    ]
    train = replace(some[0], batch_sizes=np.array([16]), time_s=some[0].time_s[:, :1])
    space = Space(train if jobs[0] else None, tuple(some[1 : 1 + jobs[1]]))
    rng = np.random.default_rng(7)
    rates, latencies = rng.uniform(1, 60, (9, jobs[1])), rng.uniform(0.05, 1, (9, jobs[1]))
    which = rng.integers(0, 9, 200)
    problems = Problems(rng.uniform(8, 35, 200).round(), rates[which], latencies[which], rule)
    choices = np.sort(rng.choice(len(space.choices), 10, replace=False))
    alone = best_of(space.judge(problems, choices[None]))
    expected = np.where(alone == NONE, NONE, choices[alone])
    assert {NONE} < {*expected}
    assert np.array_equal(exhaustive.best_among(space, problems, choices), expected)


def longest_waits(rates, batches, times, phase, n_batches=60):
    """Play two streams, first come first served: the longest latency of each."""
    jobs = []
    for which, offset in enumerate((0.0, phase)):
        batch, gap_s = batches[which], 1 / rates[which]
        for i in range(n_batches):
            first_s = offset + i * batch * gap_s
            jobs.append((first_s + (batch - 1) * gap_s, which, first_s))
    free, longest = 0.0, [0.0, 0.0]
    for ready, which, first in sorted(jobs):
        free = max(free, ready) + times[which]
        longest[which] = max(longest[which], free - first)
    return longest


@given(
    seed=st.integers(0, 1000),
    rates=st.tuples(st.floats(0.5, 60), st.floats(0.5, 60)),
    latencies=st.tuples(st.floats(0.02, 2), st.floats(0.02, 2)),
    phase=st.floats(0, 1),
)
def test_two_streams_never_wait_longer_than_planned(seed, rates, latencies, phase):
    first = workload(seed, 5, SIZES)
    second = with_modes(workload(seed + 1, 5, SIZES), first.modes)
    streams = zip(rates, latencies, strict=True)
    plan = best_plan(Space(None, (first, second)), Problems.one(40, *streams))
    if plan is None:
        return
    places = [SIZES.index(size) for size in plan.batch_sizes]
    times = [one.time_s[plan.place, k] for one, k in zip((first, second), places, strict=True)]
    waits = longest_waits(rates, plan.batch_sizes, times, phase)
    for wait, planned, latency in zip(waits, plan.latency_s, latencies, strict=True):
        assert wait <= planned * (1 + 1e-6) <= latency * (1 + 1e-5)
