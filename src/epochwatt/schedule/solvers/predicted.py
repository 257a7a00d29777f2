"""Answers by prediction: from some profiled modes a method of the registry predicts all others.

`solve` takes the best choice by prediction, unverified: it may break its budgets. `solve_verified`
then runs the best few candidates of each problem, corrects what is expected of the rest by what was
seen, and answers with the best profiled choice that keeps all budgets.
"""

from dataclasses import replace

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import Observations, observations_from_rows
from epochwatt.prediction.evaluation.cross_validation import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.schedule.problem import PowerRule
from epochwatt.schedule.profiles import Workload
from epochwatt.schedule.solution import NONE, Answers, joined
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.solvers.exhaustive import best_of
from epochwatt.schedule.solvers.profiled import profiles_of
from epochwatt.schedule.space import Bools, Judged, Places, Problems, Space

MOST_VERIFIED = 5  # candidates of a problem
N_CANDIDATES = 64  # that are ranked again after each profile
LEAST = 1e-3  # of the least observed value: no prediction is below it
_AT_ONCE = 1 << 21  # pairs of problem and choice


def predicted_space(space: Space, method: Method, modes: Places) -> Space:
    """Return a space as a method sees it: observed in profiled modes, predicted in all others.

    Parameters
    ----------
    modes : places of the modes that are profiled, of each job at every mini-batch size

    Raises
    ------
    PredictionError : the method cannot be fitted to them
    """
    train = None if space.train is None else predicted_workload(space.train, method, modes)
    return Space(train, tuple(predicted_workload(one, method, modes) for one in space.infer))


def predicted_workload(
    workload: Workload, method: Method, modes: Places, reference: Reference | None = None
) -> Workload:
    """Return a workload as a method sees it; as `predicted_space`.

    Parameters
    ----------
    reference : that the method transfers from
    """
    time_s, power_w = workload.time_s.copy(), workload.power_w.copy()
    others = np.setdiff1d(np.arange(len(workload.modes)), modes)
    for k in range(len(workload.batch_sizes)):
        fitted = predictors(method, observed(workload, modes, k), reference=reference)
        for target, values in ((TIME, time_s), (POWER, power_w)):
            expected = fitted[target].predict(workload.modes[others])
            values[others, k] = np.maximum(expected, LEAST * values[modes, k].min())
    return replace(workload, time_s=time_s, power_w=power_w)


def observed(workload: Workload, modes: Places, k: int) -> Observations:
    """Return what is observed in some modes at the mini-batch size of place k."""
    return observations_from_rows(
        f"{workload.name}, batch {workload.batch_sizes[k]}",
        [Mode(*mode) for mode in workload.modes[modes].tolist()],
        workload.time_s[modes, k].tolist(),
        workload.power_w[modes, k].tolist(),
    )


def solve(space: Space, problems: Problems, seen: Space, modes: Places) -> Answers:
    """Return the best choice by prediction, whatever it does in truth.

    Parameters
    ----------
    seen : `predicted_space` of the space and `modes`
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

    Parameters
    ----------
    seen : `predicted_space` of the space and `modes`
    most_verified : candidates that may be run for each problem
    worth : a candidate is run only if it is expected to be better by this much, relative
    """
    choices = _worth_looking_at(seen, modes, most_verified, problems.power_rule)
    step = max(_AT_ONCE // len(choices), 1)
    parts = [
        _verified(
            space, problems.only(slice(i, i + step)), seen, modes, choices, most_verified, worth
        )
        for i in range(0, len(problems), step)
    ]
    return joined(parts)


def _worth_looking_at(seen: Space, modes: Places, most: int, power_rule: PowerRule) -> Places:
    """Return the choices in profiled modes, and those that may be among the best `most` others."""
    if power_rule == "mean":
        return np.arange(len(seen.choices))
    is_profiled = np.isin(seen.choices[:, 0], modes)
    few = seen.undominated(most, np.setdiff1d(np.arange(len(seen.modes)), modes))
    return np.union1d(np.flatnonzero(is_profiled), few)


def _verified(
    space: Space,
    problems: Problems,
    seen: Space,
    modes: Places,
    choices: Places,
    most: int,
    worth: float,
) -> Answers:
    rows = np.arange(len(problems))
    is_profiled = np.isin(space.choices[choices, 0], modes)
    expected = seen.judge(problems, choices[None])
    best = best_of(expected, np.broadcast_to(is_profiled, expected.cost.shape))
    candidates = _candidates(expected, is_profiled)
    cost = np.where(best == NONE, np.inf, expected.cost[rows, best])
    best = np.where(best == NONE, NONE, choices[best])
    n_profiles = np.full(len(problems), profiles_of(space, len(modes)))
    board_s = np.full(len(problems), sum(one.board_s(modes) for one in space.workloads))
    few = expected.only(candidates)
    is_left = np.ones(candidates.shape, bool)
    factor = np.ones(len(problems))  # of power: what candidates so far drew over what they should
    for _ in range(most):
        keeps = few.power_w * factor[:, None] <= problems.max_power_w[:, None]
        is_open = is_left & keeps & few.keeps_latency & few.is_stable
        enough = _enough(cost, worth)
        is_open &= few.cost < enough[:, None]
        place = np.where(is_open, few.cost, np.inf).argmin(1)
        runs = is_open[rows, place]
        if not runs.any():
            break
        chosen = choices[candidates[rows, place]]
        truth = space.judge(problems, chosen[:, None])
        gains = runs & truth.holds[:, 0] & (truth.cost[:, 0] < cost)
        best, cost = np.where(gains, chosen, best), np.where(gains, truth.cost[:, 0], cost)
        n_profiles = n_profiles + runs * space.profiles_per_choice
        board_s = board_s + np.where(runs, space.board_s(chosen), 0.0)
        is_left[rows, place] = False
        over = truth.power_w[:, 0] / few.power_w[rows, place]
        factor = np.where(runs & ~truth.keeps_power[:, 0], np.maximum(factor, over), factor)
    return Answers(best, n_profiles, board_s)


def _enough(cost: Numbers, worth: float) -> Numbers:
    """Return the cost below which a candidate is worth running; infinite: nothing holds yet."""
    return np.where(np.isinf(cost), np.inf, cost - worth * np.abs(np.nan_to_num(cost, posinf=0)))


def _candidates(expected: Judged, is_profiled: Bools) -> Places:
    """Return the places of the best unprofiled choices by prediction, (p, c), in no order."""
    n = min(N_CANDIDATES, int((~is_profiled).sum()))
    cost = np.where(expected.holds & ~is_profiled, expected.cost, np.inf)
    tie = 1e-9 * expected.power_w / expected.power_w.max()
    return np.argpartition(cost + tie, n - 1, axis=1)[:, :n]
