"""The best plan of all: what every other solver is judged by. It looks at everything."""

import numpy as np

from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.problem import Problem
from epochwatt.schedule.solution import NONE, Answers, Plan
from epochwatt.schedule.space import Bools, Judged, Places, Problems, Space

EQUAL = 1e-12  # relative; costs that differ by less are equal
_AT_ONCE = 1 << 22  # pairs of problem and choice that are judged at once


def solve(space: Space, problems: Problems) -> Answers:
    """Return the best choice for each problem.

    With training the one of most throughput, else of least latency relative to its budget; of
    equally good ones the one that draws least.
    """
    every = np.arange(len(space.choices))
    n_profiles = sum(one.time_s.size for one in space.workloads)
    if problems.power_rule == "mean":
        best = best_among(space, problems, every)
    else:  # first those that nothing beats, then all, where a plan trains nothing
        best = best_among(space, problems, space.undominated())
        if space.train is not None and space.infer and len(none := np.flatnonzero(best == NONE)):
            best[none] = best_among(space, problems.only(none), every)
    board_s = sum(one.board_s(np.arange(len(one.modes))) for one in space.workloads)
    return Answers(best, np.full(len(problems), n_profiles), np.full(len(problems), board_s))


def best_among(space: Space, problems: Problems, choices: Places) -> Places:
    """Return the best of some choices (q,) for each problem, or `NONE`."""
    step = max(_AT_ONCE // len(choices), 1)
    columns = np.concatenate(
        [
            best_of(space.judge(problems.only(slice(i, i + step)), choices[None]))
            for i in range(0, len(problems), step)
        ]
    )
    return np.where(columns == NONE, NONE, choices[columns])


def best_of(judged: Judged, seen: Bools | None = None) -> Places:
    """Return the best of the judged choices (p, q) of each problem: its column, or `NONE`.

    Parameters
    ----------
    seen : (p, q), the choices that may be the answer; None: all
    """
    holds = judged.holds if seen is None else judged.holds & seen
    cost: Numbers = np.where(holds, judged.cost, np.inf)
    least = cost.min(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        is_least = cost <= least + EQUAL * np.abs(least)
    places = np.where(is_least & holds, judged.power_w, np.inf).argmin(1)
    return np.where(holds.any(1), places, NONE)


def best_plan(space: Space, problem: Problem) -> Plan | None:
    """Return the best plan of a problem; None where none keeps the budgets."""
    place = int(solve(space, Problems.from_one(problem)).choice[0])
    return None if place == NONE else space.plan(problem, place)
