"""Answer with the best of choices that are profiled for all problems alike: all, or some modes.

The best of all, which looks at everything, is what every other solver is judged by.
"""

import numpy as np

from epochwatt.schedule.problem import (
    NONE,
    SLACK,
    Answers,
    Indices,
    Judged,
    Numbers,
    Problems,
    Profiles,
    Space,
)

EQUAL = 1e-12  # relative; costs that differ by less are equal
_AT_ONCE = 1 << 16  # pairs of problem and choice that are judged at once: they fit a cache


def solve(space: Space, problems: Problems, draw: int = 0) -> Answers:
    """Return the best of all choices for each problem; `draw` is not used.

    With training the one of most throughput, else of least latency relative to its budget; of
    equally good ones the one that draws least.
    """
    all_choices = np.arange(len(space.choices))
    if problems.power_rule == "mean":
        best = best_among(space, problems, all_choices)
    else:  # undominated choices suffice, except where the best plan trains nothing
        best = best_among(space, problems, space.undominated())
        unsolved = np.flatnonzero(best == NONE)
        if space.train is not None and space.infer and len(unsolved):
            best[unsolved] = best_among(space, problems.subset(unsolved), all_choices)
    return Profiles(space, problems, np.arange(len(space.modes))).answers(best)


def solve_in_modes(space: Space, problems: Problems, modes: Indices) -> Answers:
    """Return the best choice for each problem in `modes`, profiled at every mini-batch size."""
    modes = np.unique(modes)
    choices = np.flatnonzero(np.isin(space.choices[:, 0], modes))
    return Profiles(space, problems, modes).answers(best_among(space, problems, choices))


def random_modes(space: Space, n_modes: int, seed: int) -> Indices:
    """Draw the indices of `n_modes` distinct modes; of all modes where there are fewer."""
    n = len(space.modes)
    return np.random.default_rng(seed).choice(n, min(n_modes, n), replace=False)


def best_among(space: Space, problems: Problems, choices: Indices) -> Indices:
    """Return the best of `choices` (q,) for each problem, or `NONE`.

    Problems that differ in the power budget alone are answered together: of choices in the order of
    their power, the best of the first few is known for any number of them.
    """
    streams, members = problems.by_streams
    budgets_w = problems.max_power_w * (1 + SLACK)
    best = np.full(len(problems), NONE)
    step = max(_AT_ONCE // len(choices), 1)
    for start in range(0, len(streams), step):
        judged = space.judge(streams.subset(slice(start, start + step)), choices[None])
        gain = np.where(judged.in_time, -judged.cost, -np.inf)
        order = np.argsort(judged.power_w, axis=1, kind="stable")
        power_w = np.take_along_axis(judged.power_w, order, 1)
        best_gain = np.maximum.accumulate(np.take_along_axis(gain, order, 1), axis=1)
        for i, group in enumerate(members[start : start + step]):
            rank = _first_best(power_w[i], best_gain[i], budgets_w[group])
            best[group] = np.where(rank == NONE, NONE, choices[order[i, rank]])
    return best


def _first_best(power_w: Numbers, best_gain: Numbers, budgets_w: Numbers) -> Indices:
    """Return the rank of the best choice within each power budget (p,), or `NONE`.

    `power_w`: (q,), of choices, ascending; `best_gain`: (q,), running maximum of their gains; -inf:
    no choice so far is in time
    """
    n_within = np.searchsorted(power_w, budgets_w, side="right")
    gain = np.append(-np.inf, best_gain)[n_within]
    rank = np.searchsorted(best_gain, gain - EQUAL * np.abs(gain))
    return np.where(np.isinf(gain), NONE, rank)


def best_of(judged: Judged) -> Indices:
    """Return the column of the best judged choice (p, q) of each problem, or `NONE`.

    Of equal costs the one that draws least.
    """
    holds = judged.holds
    cost: Numbers = np.where(holds, judged.cost, np.inf)
    least = cost.min(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        is_least = cost <= least + EQUAL * np.abs(least)
    columns = np.where(is_least & holds, judged.power_w, np.inf).argmin(1)
    return np.where(holds.any(1), columns, NONE)
