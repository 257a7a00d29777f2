"""Answer with the best of choices that are profiled for all problems alike: all, or some modes.

The best of all, which looks at everything, is what every other solver is judged by.
"""

import numpy as np

from epochwatt.schedule.problem import (
    NONE,
    SLACK,
    Answers,
    Judged,
    Numbers,
    Places,
    Problems,
    Profiles,
    Space,
)

EQUAL = 1e-12  # relative; costs that differ by less are equal
_AT_ONCE = 1 << 16  # pairs of problem and choice that are judged at once: they fit a cache


def solve(space: Space, problems: Problems, draw: int = 0) -> Answers:
    """Return the best choice for each problem; `draw` does not matter.

    With training the one of most throughput, else of least latency relative to its budget; of
    equally good ones the one that draws least.
    """
    every = np.arange(len(space.choices))
    if problems.power_rule == "mean":
        best = best_among(space, problems, every)
    else:  # first those that nothing beats, then all, where a plan trains nothing
        best = best_among(space, problems, space.undominated())
        if space.train is not None and space.infer and len(none := np.flatnonzero(best == NONE)):
            best[none] = best_among(space, problems.only(none), every)
    return Profiles(space, problems, np.arange(len(space.modes))).answers(best)


def solve_in_modes(space: Space, problems: Problems, modes: Places) -> Answers:
    """Return the best choice in profiled modes, at any mini-batch size.

    `modes`: places of the modes that are profiled, at every mini-batch size.
    """
    modes = np.unique(modes)
    choices = np.flatnonzero(np.isin(space.choices[:, 0], modes))
    return Profiles(space, problems, modes).answers(best_among(space, problems, choices))


def random_modes(space: Space, n_modes: int, seed: int) -> Places:
    """Return the places of some modes, drawn."""
    n = len(space.modes)
    return np.random.default_rng(seed).choice(n, min(n_modes, n), replace=False)


def best_among(space: Space, problems: Problems, choices: Places) -> Places:
    """Return the best of some choices (q,) for each problem, or `NONE`.

    Problems that differ in the power budget alone are answered together: of choices in the order of
    their power, the best of the first few is known for any number of them.
    """
    streams, members = problems.by_streams
    budgets_w = problems.max_power_w * (1 + SLACK)
    best = np.full(len(problems), NONE)
    step = max(_AT_ONCE // len(choices), 1)
    for start in range(0, len(streams), step):
        judged = space.judge(streams.only(slice(start, start + step)), choices[None])
        gain = np.where(judged.in_time, -judged.cost, -np.inf)
        order = np.argsort(judged.power_w, axis=1, kind="stable")
        power_w = np.take_along_axis(judged.power_w, order, 1)
        most = np.maximum.accumulate(np.take_along_axis(gain, order, 1), axis=1)
        for i, some in enumerate(members[start : start + step]):
            place = _first_best(power_w[i], most[i], budgets_w[some])
            best[some] = np.where(place == NONE, NONE, choices[order[i, place]])
    return best


def _first_best(power_w: Numbers, most: Numbers, budgets_w: Numbers) -> Places:
    """Return the place of the best choice within each budget (p,), or `NONE`.

    `power_w`: (q,), of choices, ascending; `most`: (q,), the greatest gain of each and all before
    it; -inf: none is in time
    """
    n_within = np.searchsorted(power_w, budgets_w, side="right")
    gain = np.append(-np.inf, most)[n_within]
    place = np.searchsorted(most, gain - EQUAL * np.abs(gain))
    return np.where(np.isinf(gain), NONE, place)


def best_of(judged: Judged) -> Places:
    """Return the best of the judged choices (p, q) of each problem: its column, or `NONE`."""
    holds = judged.holds
    cost: Numbers = np.where(holds, judged.cost, np.inf)
    least = cost.min(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        is_least = cost <= least + EQUAL * np.abs(least)
    places = np.where(is_least & holds, judged.power_w, np.inf).argmin(1)
    return np.where(holds.any(1), places, NONE)
