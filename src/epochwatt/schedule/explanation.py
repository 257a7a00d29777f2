"""Why no plan keeps its budgets, or what holds the best one back; by all choices of a table."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epochwatt.schedule.plans import Numbers, serve
from epochwatt.schedule.problem import Problem, Stream
from epochwatt.schedule.solution import Plan
from epochwatt.schedule.solvers.exhaustive import best_plan
from epochwatt.schedule.space import Bools, Problems, Space

NO_LIMIT = 1e9  # W or s: beyond any board


class Least(NamedTuple):
    """The least budgets that would do; NaN: no such budget helps.

    Attributes
    ----------
    power_w : with the latency as it is
    latency_s : with the power as it is; NaN without a stream
    any_latency_s : with any power
    rate_per_s : the highest that some mode and mini-batch size serves, whatever it draws
    """

    power_w: float
    latency_s: float
    any_latency_s: float
    rate_per_s: float


def least_budgets(space: Space, problem: Problem) -> Least:
    """Return what budgets a problem of at most one stream would need."""
    every = np.arange(len(space.choices))[None]
    judged = space.judge(Problems.from_one(problem), every)
    in_time = (judged.keeps_latency & judged.is_stable)[0]
    power_w = _least(judged.power_w[0], in_time)
    if not problem.streams:
        return Least(power_w, math.nan, math.nan, math.nan)
    ((mode, size), infer) = space.choices.T, space.infer[0]
    batch, time_s = infer.batch_sizes[size], infer.time_s[mode, size]
    rate = problem.streams[0].rate_per_s
    latency_s = serve(rate, batch, time_s, infer.power_w[mode, size]).latency_s
    is_stable, keeps_power = judged.is_stable[0], judged.keeps_power[0]
    return Least(
        power_w,
        _least(latency_s, is_stable & keeps_power),
        _least(latency_s, is_stable),
        float((batch / time_s).max()),
    )


def least_power_to_train_w(space: Space, problem: Problem) -> float:
    """Return the least power of a plan that serves in time and trains at all; NaN: none does."""
    judged = space.judge(Problems.from_one(problem), np.arange(len(space.choices))[None])
    trains = judged.keeps_latency & judged.is_stable & (judged.cost < 0)
    return _least(judged.power_w[0], trains[0])


def without_power(space: Space, problem: Problem) -> Plan | None:
    """Return the best plan with any power."""
    return best_plan(space, replace(problem, max_power_w=NO_LIMIT))


def without_latency(space: Space, problem: Problem) -> Plan | None:
    """Return the best plan with any latency."""
    streams = tuple(
        Stream(rate_per_s=s.rate_per_s, max_latency_s=NO_LIMIT) for s in problem.streams
    )
    return best_plan(space, replace(problem, streams=streams))


def _least(values: Numbers, which: Bools) -> float:
    return float(values[which].min()) if which.any() else math.nan
