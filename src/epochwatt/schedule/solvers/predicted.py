"""Answer by prediction: from some profiled modes a method of the registry predicts all others.

`solve` takes the best choice by prediction, unverified: it may break its budgets. `solve_verified`
then runs the best few candidates of each problem, corrects what is expected of the rest by what was
seen, and answers with the best profiled choice that keeps all budgets.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from epochwatt.prediction.data.modes import N_PARTS, Mode
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.schedule.problem import (
    NONE,
    Answers,
    Numbers,
    Places,
    Problems,
    Profiles,
    Space,
    Workload,
)
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.solvers.exhaustive import best_among

MOST_VERIFIED = 5  # candidates of a problem
LEAST = 1e-3  # of the least observed value: no prediction is below it
N_KEPT = 1024  # predictions of one network at one mini-batch size
_AT_ONCE = 1 << 16  # pairs of problem and choice that are judged at once: they fit a cache
_AHEAD = 32  # candidates that are looked at together


def predicted_space(space: Space, method: Method, modes: Places) -> Space:
    """Return a space as a method sees it: observed in profiled modes, predicted in all others.

    `modes`: places of the modes that are profiled, of each job at every mini-batch size.

    Raises PredictionError: the method cannot be fitted to them.
    """
    return space.with_workloads([predicted_workload(w, method, modes) for w in space.workloads])


def predicted_workload(
    workload: Workload,
    method: Method,
    modes: Places,
    reference: Reference | None = None,
    cache: Path | None = None,
) -> Workload:
    """Return a workload as a method sees it; as `predicted_space`.

    `reference`, `cache`: as of `predictor.Context`.
    """
    time_s, power_w = workload.time_s.copy(), workload.power_w.copy()
    others = np.setdiff1d(np.arange(len(workload.modes)), modes)
    for k in range(len(workload.batch_sizes)):
        rows = observed(workload, modes, k)
        seen = np.column_stack([rows.modes, rows.time_s, rows.power_w])
        numbers = seen.tobytes(), workload.modes[others].tobytes()
        expected = _expected(method, rows.workload, *numbers, reference, cache)
        for values, of_others in zip((time_s, power_w), expected, strict=True):
            values[others, k] = np.maximum(of_others, LEAST * values[modes, k].min())
    return replace(workload, time_s=time_s, power_w=power_w)


def observed(workload: Workload, modes: Places, k: int) -> Observations:
    """Return what is observed in some modes at the mini-batch size of place k."""
    columns = workload.modes[modes], workload.time_s[modes, k], workload.power_w[modes, k]
    return _observations(f"{workload.name}, batch {workload.batch_sizes[k]}", *columns)


def _observations(name: str, modes: Numbers, time_s: Numbers, power_w: Numbers) -> Observations:
    rows = [Mode(*mode) for mode in modes.tolist()]
    return observations_from_rows(name, rows, time_s.tolist(), power_w.tolist())


@lru_cache(N_KEPT)  # a network serves alone, and beside others: with the same profiles
def _expected(
    method: Method,
    name: str,
    seen: bytes,
    wanted: bytes,
    reference: Reference | None,
    cache: Path | None,
) -> tuple[Numbers, Numbers]:
    """Return time, s, and power, W, that are expected in modes, (n,) each.

    `name`: of what was profiled
    `seen`: rows (m, 8) of numbers: the parts of each profiled mode, its time and power
    `wanted`: rows (n, 6), parts of the modes
    """
    rows = np.frombuffer(seen).reshape(-1, N_PARTS + 2)
    observations = _observations(name, rows[:, :N_PARTS], *rows[:, N_PARTS:].T)
    fitted = predictors(method, observations, reference=reference, cache=cache)
    others = np.frombuffer(wanted).reshape(-1, N_PARTS)
    return fitted[TIME].predict(others), fitted[POWER].predict(others)


def solve(
    space: Space, problems: Problems, seen: Space, modes: Places | Sequence[Places]
) -> Answers:
    """Return the best choice by prediction, whatever it does in truth.

    `seen`: the space with what is known of each job; `modes`: places of the modes that were
    profiled, of all jobs or of each job
    """
    choice = exhaustive.solve(seen, problems).choice
    return Profiles(space, problems, modes).answers(choice)


def solve_verified(space: Space, problems: Problems, seen: Space, modes: Places) -> Answers:
    """Return the best profiled choice after running the best candidates by prediction.

    Candidates are the other choices that are expected to keep the budgets; the best comes first, of
    equally good ones the one that should draw least. Where a run breaks the power budget, others
    are expected to draw as much more than predicted.

    `seen`: `predicted_space` of the space and `modes`
    """
    is_profiled = np.isin(seen.choices[:, 0], modes)
    others = np.flatnonzero(~is_profiled)
    if problems.power_rule == "highest":  # then the best are among those that few others beat
        not_run = np.setdiff1d(np.arange(len(seen.modes)), modes)
        others = np.intersect1d(others, seen.undominated(MOST_VERIFIED, not_run))
    best = best_among(seen, problems, np.flatnonzero(is_profiled))
    expected = seen.judge(problems, np.maximum(best, 0)[:, None]).cost[:, 0]
    cost = np.where(best == NONE, np.inf, expected)
    candidates = _Candidates(seen, problems, others)
    profiles = Profiles(space, problems, modes)
    factor = np.ones(len(problems))  # of power: what candidates so far drew over what they should
    left, first = np.arange(len(problems)), np.zeros(len(problems), np.intp)
    for _ in range(MOST_VERIFIED):
        most_w = problems.max_power_w[left] / factor[left]
        place = candidates.next(left, first[left], most_w, cost[left])
        left, place = left[place != NONE], place[place != NONE]
        if not left.size:
            break
        row = candidates.row[left], place
        chosen, expected_w = candidates.choice[row], candidates.power_w[row]
        truth = profiles.run(left, chosen)
        gains = truth.holds & (truth.cost < cost[left])
        best[left[gains]], cost[left[gains]] = chosen[gains], truth.cost[gains]
        first[left] = place + 1
        over = np.where(truth.keeps_power, 1.0, truth.power_w / expected_w)
        factor[left] = np.maximum(factor[left], over)
    return profiles.answers(best)


class _Candidates:
    """Choices in the order in which they are tried: one order for all problems of equal streams.

    Attributes
    ----------
    row : (p,), which order is that of each problem
    choice : (g, q), of each order; the best first
    cost, power_w : (g, q + `_AHEAD`), as predicted; infinite: it is too late, or there is none
    """

    def __init__(self, seen: Space, problems: Problems, choices: Places) -> None:
        streams, members = problems.by_streams
        self.row = np.empty(len(problems), np.intp)
        for number, some in enumerate(members):
            self.row[some] = number
        step = max(_AT_ONCE // max(len(choices), 1), 1)
        parts = []
        for start in range(0, len(streams), step):
            judged = seen.judge(streams.only(slice(start, start + step)), choices[None])
            cost = np.where(judged.in_time, judged.cost, np.inf)
            order = np.lexsort((judged.power_w, cost))
            in_order = (np.take_along_axis(one, order, 1) for one in (cost, judged.power_w))
            parts.append((order, *in_order))
        order, cost, power_w = (np.concatenate(some) for some in zip(*parts, strict=True))
        none = ((0, 0), (0, _AHEAD))
        self.choice = choices[order]
        self.cost = np.pad(cost, none, constant_values=np.inf)
        self.power_w = np.pad(power_w, none, constant_values=np.inf)

    def next(self, problems: Places, first: Places, most_w: Numbers, below: Numbers) -> Places:
        """Return the next place of some problems (p,) that is worth a run; `NONE`: there is none.

        `first`: (p,), where to begin
        `most_w`: (p,), power that it may draw
        `below`: (p,), what it has to cost less than
        """
        place, start = np.full(len(problems), NONE), first.copy()
        left = np.arange(len(problems))
        while left.size:
            some = start[left, None] + np.arange(_AHEAD)
            row = self.row[problems[left], None]
            is_worth = self.cost[row, some] < below[left, None]
            fits = is_worth & (self.power_w[row, some] <= most_w[left, None])
            has = fits.any(1)
            place[left[has]] = some[has, fits[has].argmax(1)]
            left = left[~has & is_worth[:, -1]]
            start[left] += _AHEAD
        return place
