"""Choose profiles that serve many problems, by networks that learn as they grow: our ALS.

Fulcrum (arXiv 2509.20205) calls it active-learning based sampling of 50 to 150 modes, whose outcome
is a front of modes that later problems are answered from without further profiles. Which modes come
first, how the next are chosen and when it ends is not printed. Ours, for one network:

1. Profile the modes with the least and the most of everything, and random others: ten.
2. PowerTrain's networks learn time and power from all profiles so far, at each mini-batch size, and
   predict every other mode. Of those that no other beats in both, profile ten whose powers are
   spread evenly from the least to the most; mini-batch sizes take turns.
3. End at 50 modes, or when the profiled fronts gained less than 1 % of their area in two rounds.

A mode runs at every mini-batch size. A problem is answered by a look at profiled modes alone. Jobs
that share a board need modes that are profiled for each of them: the front of either network is
profiled for the other one, too.
"""

import numpy as np

from epochwatt.analysis.pareto import pareto_front
from epochwatt.prediction.predictor import Method
from epochwatt.schedule.problem import Indices, Numbers, Workload
from epochwatt.schedule.solvers.predicted import predicted_workload

N_ROUND = 10  # modes of the first round, and of each other
MOST_MODES = 50
LEAST_GAIN = 0.01  # of the area of a front, relative
PATIENCE = 2  # rounds that gain less


def profiled_modes(workload: Workload, method: Method, seed: int) -> Indices:
    """Choose the modes to profile for a network, round by round; their indices, in order.

    `method`: learns from the profiles so far; `seed`: of the random modes of the first round

    Raises PredictionError: the method cannot be fitted to so few modes.
    """
    modes = _first(workload, seed)
    # areas are measured from the worst corner of the first round
    worst = [column[modes].max(0) for column in (workload.time_s, workload.power_w)]
    area, n_poor = _area(workload, modes, worst), 0
    while len(modes) < min(MOST_MODES, len(workload.modes)) and n_poor < PATIENCE:
        modes = np.append(modes, _next(predicted_workload(workload, method, modes), modes))
        before, area = area, _area(workload, modes, worst)
        n_poor = n_poor + 1 if area <= (1 + LEAST_GAIN) * before else 0
    return modes


def _first(workload: Workload, seed: int) -> Indices:
    """Return the modes of the first round: weakest, strongest, and random others."""
    order = np.random.default_rng(seed).permutation(len(workload.modes))
    steps = np.stack([np.unique(part, return_inverse=True)[1] for part in workload.modes.T], 1)
    ends = np.array([steps.sum(1).argmin(), steps.sum(1).argmax()])
    return np.append(ends, order[~np.isin(order, ends)][: N_ROUND - len(ends)])


def _next(seen: Workload, modes: Indices) -> Indices:
    """Return the modes to profile next: spread evenly over the power of each predicted front.

    `seen`: observed in the profiled `modes`, predicted in all others
    """
    candidates = np.setdiff1d(np.arange(len(seen.modes)), modes)
    chosen: list[int] = []
    n_sizes = len(seen.batch_sizes)
    shares = np.linspace(0, 1, -(-N_ROUND // n_sizes))  # of the front's range of power
    for step, k in np.ndindex(len(shares), n_sizes):
        front = candidates[pareto_front(seen.time_s[candidates, k], seen.power_w[candidates, k])]
        power_w = seen.power_w[front, k]
        target_w = power_w.min() + shares[step] * np.ptp(power_w)
        chosen.append(int(front[np.abs(power_w - target_w).argmin()]))
        candidates = np.setdiff1d(candidates, chosen)
        if len(chosen) == N_ROUND or not candidates.size:
            break
    return np.array(chosen)


def _area(workload: Workload, modes: Indices, worst: list[Numbers]) -> float:
    """Sum the areas under the profiled fronts, in logarithms of time and power.

    `worst`: greatest time and power at each mini-batch size, the corner that areas end at.
    """
    area = 0.0
    for k in range(len(workload.batch_sizes)):
        time, power = (
            np.log(most[k] / column[modes, k])
            for most, column in zip(worst, (workload.time_s, workload.power_w), strict=True)
        )
        order = np.argsort(-time)
        highest = np.maximum.accumulate(np.maximum(power[order], 0))
        area += float(np.abs(np.diff(np.append(time[order], 0))) @ highest)
    return area
