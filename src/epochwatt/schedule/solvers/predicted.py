"""Answer by prediction: from some profiled modes a method of the registry predicts all others.

`solve` takes the best choice by prediction, unverified: it may break its budgets. `solve_verified`
then runs the best few candidates of each problem, corrects what is expected of the rest by what was
seen, and answers with the best profiled choice that keeps all budgets.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from epochwatt.prediction.data.modes import N_PARTS, Mode, Numbers
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.schedule.problem import NONE, Answers, PowerRule
from epochwatt.schedule.profiles import Workload
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.solvers.exhaustive import best_among
from epochwatt.schedule.solvers.profiled import profiles_of
from epochwatt.schedule.space import Judged, Places, Problems, Space

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
    train = None if space.train is None else predicted_workload(space.train, method, modes)
    return Space(train, tuple(predicted_workload(one, method, modes) for one in space.infer))


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
    return observations_from_rows(
        f"{workload.name}, batch {workload.batch_sizes[k]}",
        [Mode(*mode) for mode in workload.modes[modes].tolist()],
        workload.time_s[modes, k].tolist(),
        workload.power_w[modes, k].tolist(),
    )


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

    Parameters
    ----------
    name : of what was profiled
    seen : rows (m, 8) of numbers: the parts of each profiled mode, its time and power
    wanted : rows (n, 6), parts of the modes
    """
    rows = np.frombuffer(seen).reshape(-1, N_PARTS + 2)
    modes, (time_s, power_w) = rows[:, :N_PARTS].tolist(), rows[:, N_PARTS:].T.tolist()
    observations = observations_from_rows(name, [Mode(*mode) for mode in modes], time_s, power_w)
    fitted = predictors(method, observations, reference=reference, cache=cache)
    others = np.frombuffer(wanted).reshape(-1, N_PARTS)
    return fitted[TIME].predict(others), fitted[POWER].predict(others)


def solve(space: Space, problems: Problems, seen: Space, modes: Places) -> Answers:
    """Return the best choice by prediction, whatever it does in truth.

    `seen`: `predicted_space` of the space and `modes`.
    """
    choice = exhaustive.solve(seen, problems).choice
    n_profiles = np.full(len(problems), profiles_of(space, len(modes)))
    board_s = np.full(len(problems), sum(one.board_s(modes) for one in space.workloads))
    return Answers(choice, n_profiles, board_s)


def solve_verified(
    space: Space,
    problems: Problems,
    seen: Space,
    modes: Places,
    most_verified: int = MOST_VERIFIED,
    worth: float = 0.0,
) -> Answers:
    """Return the best profiled choice after running the best candidates by prediction.

    Candidates are the other choices that are expected to keep the budgets; the best comes first, of
    equally good ones the one that should draw least. Where a run breaks the power budget, others
    are expected to draw as much more than predicted.

    Parameters
    ----------
    seen : `predicted_space` of the space and `modes`
    most_verified : candidates that may be run for each problem
    worth : a candidate is run only if it is expected to be better by this much, relative
    """
    choices = _worth_looking_at(seen, modes, most_verified, problems.power_rule)
    is_profiled = np.isin(space.choices[choices, 0], modes)
    best = best_among(seen, problems, choices[is_profiled])
    expected = seen.judge(problems, np.maximum(best, 0)[:, None]).cost[:, 0]
    cost = np.where(best == NONE, np.inf, expected)
    candidates = _Candidates.among(seen, problems, choices[~is_profiled])
    n_profiles = np.full(len(problems), profiles_of(space, len(modes)))
    board_s = np.full(len(problems), sum(one.board_s(modes) for one in space.workloads))
    factor = np.ones(len(problems))  # of power: what candidates so far drew over what they should
    left, first = np.arange(len(problems)), np.zeros(len(problems), np.intp)
    for _ in range(most_verified):
        most_w = problems.max_power_w[left] / factor[left]
        place = candidates.next(left, first[left], most_w, _enough(cost[left], worth))
        left, place = left[place != NONE], place[place != NONE]
        if not left.size:
            break
        chosen, expected_w = candidates.at(left, place)
        truth = space.judge(problems.only(left), chosen[:, None])
        gains = truth.holds[:, 0] & (truth.cost[:, 0] < cost[left])
        best[left[gains]], cost[left[gains]] = chosen[gains], truth.cost[gains, 0]
        n_profiles[left] += space.profiles_per_choice
        board_s[left] += space.board_s(chosen)
        first[left] = place + 1
        over = np.where(truth.keeps_power[:, 0], 1.0, truth.power_w[:, 0] / expected_w)
        factor[left] = np.maximum(factor[left], over)
    return Answers(best, n_profiles, board_s)


def _worth_looking_at(seen: Space, modes: Places, most: int, power_rule: PowerRule) -> Places:
    """Return the choices in profiled modes, and those that may be among the best `most` others."""
    if power_rule == "mean":
        return np.arange(len(seen.choices))
    is_profiled = np.isin(seen.choices[:, 0], modes)
    few = seen.undominated(most, np.setdiff1d(np.arange(len(seen.modes)), modes))
    return np.union1d(np.flatnonzero(is_profiled), few)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Choices in the order in which they are tried: one order for all problems of equal streams."""

    row: Places  # (p,), which order is that of each problem
    choice: Places  # (g, q), of each order; the best first
    cost: Numbers  # (g, q + `_AHEAD`), as predicted; infinite: it is too late, or there is none
    power_w: Numbers

    @classmethod
    def among(cls, seen: Space, problems: Problems, choices: Places) -> "_Candidates":
        """Return some choices (q,) in order."""
        streams, members = problems.by_streams
        row = np.empty(len(problems), np.intp)
        row[np.concatenate(members)] = np.repeat(np.arange(len(members)), list(map(len, members)))
        step = max(_AT_ONCE // max(len(choices), 1), 1)
        parts = [
            _in_order(seen.judge(streams.only(slice(i, i + step)), choices[None]))
            for i in range(0, len(streams), step)
        ]
        order, cost, power_w = (np.concatenate(some) for some in zip(*parts, strict=True))
        none = ((0, 0), (0, _AHEAD))
        padded = (np.pad(one, none, constant_values=np.inf) for one in (cost, power_w))
        return cls(row, choices[order], *padded)

    def at(self, problems: Places, place: Places) -> tuple[Places, Numbers]:
        """Return the choices at places in the orders of some problems, and their powers."""
        row = self.row[problems]
        return self.choice[row, place], self.power_w[row, place]

    def next(self, problems: Places, first: Places, most_w: Numbers, below: Numbers) -> Places:
        """Return the next place of some problems (p,) that is worth a run; `NONE`: there is none.

        Parameters
        ----------
        first : (p,), where to begin
        most_w : (p,), power that it may draw
        below : (p,), what it has to cost less than
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


def _in_order(judged: Judged) -> tuple[Places, Numbers, Numbers]:
    """Return the order of choices, the best first; cost and power in this order, (g, q) each."""
    cost = np.where(judged.keeps_latency & judged.is_stable, judged.cost, np.inf)
    order = np.lexsort((judged.power_w, cost))
    power_w = np.take_along_axis(judged.power_w, order, 1)
    return order, np.take_along_axis(cost, order, 1), power_w


def _enough(cost: Numbers, worth: float) -> Numbers:
    """Return the cost below which a candidate is worth running; infinite: nothing holds yet."""
    return np.where(np.isinf(cost), np.inf, cost - worth * np.abs(np.nan_to_num(cost, posinf=0)))
