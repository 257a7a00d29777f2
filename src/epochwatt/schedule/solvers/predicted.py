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
    Indices,
    Numbers,
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


def predicted_space(space: Space, method: Method, modes: Indices) -> Space:
    """Return a space as a method sees it: observed in profiled modes, predicted in all others.

    `modes`: places of the modes that are profiled, of each job at every mini-batch size.

    Raises PredictionError: the method cannot be fitted to them.
    """
    return space.with_workloads([predicted_workload(w, method, modes) for w in space.workloads])


def predicted_workload(
    workload: Workload,
    method: Method,
    modes: Indices,
    reference: Reference | None = None,
    cache: Path | None = None,
) -> Workload:
    """Return a workload as a method sees it; as `predicted_space`.

    `reference`, `cache`: as of `predictor.Context`.
    """
    time_s, power_w = workload.time_s.copy(), workload.power_w.copy()
    others = np.setdiff1d(np.arange(len(workload.modes)), modes)
    for size in range(len(workload.batch_sizes)):
        rows = observed(workload, modes, size)
        seen = np.column_stack([rows.modes, rows.time_s, rows.power_w])
        wanted = workload.modes[others]
        expected = _expected(  # bytes can be keys of its cache, arrays cannot
            method, rows.workload, seen.tobytes(), wanted.tobytes(), reference, cache
        )
        for values, predictions in zip((time_s, power_w), expected, strict=True):
            values[others, size] = np.maximum(predictions, LEAST * values[modes, size].min())
    return replace(workload, time_s=time_s, power_w=power_w)


def observed(workload: Workload, modes: Indices, size: int) -> Observations:
    """Return times and powers in `modes` at the mini-batch size of index `size`."""
    columns = workload.modes[modes], workload.time_s[modes, size], workload.power_w[modes, size]
    return _observations(f"{workload.name}, batch {workload.batch_sizes[size]}", *columns)


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
    """Fit a method to profiled modes; predict time, s, and power, W, of others, (n,) each.

    `name`: of what was profiled
    `seen`: rows (m, 8) of numbers: the parts of each profiled mode, its time and power
    `wanted`: rows (n, 6) of numbers: parts of the modes to predict
    """
    rows = np.frombuffer(seen).reshape(-1, N_PARTS + 2)
    observations = _observations(name, rows[:, :N_PARTS], *rows[:, N_PARTS:].T)
    fitted = predictors(method, observations, reference=reference, cache=cache)
    others = np.frombuffer(wanted).reshape(-1, N_PARTS)
    return fitted[TIME].predict(others), fitted[POWER].predict(others)


def solve(
    space: Space, problems: Problems, seen: Space, modes: Indices | Sequence[Indices]
) -> Answers:
    """Return the best choice by prediction, whatever it does in truth.

    `seen`: `predicted_space` of the space; `modes`: indices of the modes that were profiled, for
    all jobs or for each job
    """
    choice = exhaustive.solve(seen, problems).choice
    return Profiles(space, problems, modes).answers(choice)


def solve_verified(space: Space, problems: Problems, seen: Space, modes: Indices) -> Answers:
    """Run the candidates that are predicted to be best; return the best profiled choice.

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
    power_factor = np.ones(len(problems))  # greatest ratio of drawn to predicted power so far
    active, first = np.arange(len(problems)), np.zeros(len(problems), np.intp)
    for _ in range(MOST_VERIFIED):
        most_w = problems.max_power_w[active] / power_factor[active]
        rank = candidates.next(active, first[active], most_w, cost[active])
        active, rank = active[rank != NONE], rank[rank != NONE]
        if not active.size:
            break
        cell = candidates.row[active], rank
        chosen, expected_w = candidates.choice[cell], candidates.power_w[cell]
        truth = profiles.run(active, chosen)
        gains = truth.holds & (truth.cost < cost[active])
        best[active[gains]], cost[active[gains]] = chosen[gains], truth.cost[gains]
        first[active] = rank + 1
        ratio = np.where(truth.keeps_power, 1.0, truth.power_w / expected_w)
        power_factor[active] = np.maximum(power_factor[active], ratio)
    return profiles.answers(best)


class _Candidates:
    """Choices in the order in which they are tried: one order for all problems of equal streams.

    `row`: (p,), index of the order that is each problem's
    `choice`: (g, q), of each order; the best first
    `cost`, `power_w`: (g, q + `_AHEAD`), as predicted; infinite: it is too late, or there is none
    """

    def __init__(self, seen: Space, problems: Problems, choices: Indices) -> None:
        streams, members = problems.by_streams
        self.row = np.empty(len(problems), np.intp)
        for number, group in enumerate(members):
            self.row[group] = number
        step = max(_AT_ONCE // max(len(choices), 1), 1)
        parts = []
        for start in range(0, len(streams), step):
            judged = seen.judge(streams.subset(slice(start, start + step)), choices[None])
            cost = np.where(judged.in_time, judged.cost, np.inf)
            order = np.lexsort((judged.power_w, cost))
            cost = np.take_along_axis(cost, order, 1)
            parts.append((order, cost, np.take_along_axis(judged.power_w, order, 1)))
        order, cost, power_w = map(np.concatenate, zip(*parts, strict=True))
        padding = ((0, 0), (0, _AHEAD))  # `next` looks so far beyond the end
        self.choice = choices[order]
        self.cost = np.pad(cost, padding, constant_values=np.inf)
        self.power_w = np.pad(power_w, padding, constant_values=np.inf)

    def next(self, problems: Indices, first: Indices, most_w: Numbers, below: Numbers) -> Indices:
        """Return the rank of the next candidate of each problem (p,) worth a run, or `NONE`.

        `first`: (p,), rank to begin at
        `most_w`: (p,), power that it may draw
        `below`: (p,), cost that it has to be below
        """
        rank, start = np.full(len(problems), NONE), first.copy()
        searching = np.arange(len(problems))
        while searching.size:
            window = start[searching, None] + np.arange(_AHEAD)
            row = self.row[problems[searching], None]
            is_better = self.cost[row, window] < below[searching, None]
            fits = is_better & (self.power_w[row, window] <= most_w[searching, None])
            is_found = fits.any(1)
            rank[searching[is_found]] = window[is_found, fits[is_found].argmax(1)]
            searching = searching[~is_found & is_better[:, -1]]
            start[searching] += _AHEAD
        return rank
