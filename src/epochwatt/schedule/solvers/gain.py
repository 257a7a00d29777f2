"""Search by expected gain: one profile at a time, where a roofline belief expects most of it.

1. Before any profile, times and powers of all jobs in all modes are believed to be those of some
   roofline over clocks (`roofline_prior`, which says what it knows). Nothing of the jobs is known.
2. For each choice: how much better would its plan be than the best profiled so far, on average over
   what is believed of its times, and how likely does it keep the power budget? Latency, stability
   and whole mini-batches of training count as they would come out. While no profiled choice keeps
   all budgets, any that does is a gain of its own.
3. The choice of most gain is profiled: each job runs once. What is seen corrects what is believed
   of all other modes, sizes and of the other job (Gaussian conditioning, on logarithms). Where
   profiles are further off than they should be, all that is believed gets wider.
4. It ends when the most gain is below `LEAST_GAIN`; without an answer so far, when one is next to
   impossible (`LEAST_CHANCE`); or after as many profiles as GMD.

The answer is the best profiled choice that keeps all budgets; so it keeps them as measured. Many
problems are searched beside each other. The belief is drawn once, with a seed: the same problem has
the same answer.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from epochwatt.schedule.problem import (
    NONE,
    Answers,
    Indices,
    Judged,
    Numbers,
    Problems,
    Profiles,
    Space,
    joined,
)
from epochwatt.schedule.solvers.gmd import N_PROFILES
from epochwatt.schedule.solvers.roofline_prior import Belief, Prior, roofline_prior

LEAST_GAIN = 0.005  # relative
LEAST_CHANCE = 1e-4  # of an answer, where there is none yet
ANSWERED = 1.0  # what the first answer is worth beside how good it is: as much as the best one
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # of a normal distribution
SHARES = WEIGHTS / WEIGHTS.sum()
_AT_ONCE = 1 << 25  # numbers of the covariance of what was seen with everything


def solve(
    space: Space,
    problems: Problems,
    draw: int = 0,
    n_profiles: int = N_PROFILES,
    prior: Prior | None = None,
) -> Answers:
    """Search by expected gain; return the best profiled choice for each problem.

    `draw`: not used
    `n_profiles`: choices that may be profiled; each runs every job once
    `prior`: what is believed of the space; None: `roofline_prior`
    """
    prior = roofline_prior(space) if prior is None else prior
    step = max(_AT_ONCE // (len(prior.mean) * 2 * len(space.workloads) * n_profiles), 1)
    chunks = (problems.subset(slice(i, i + step)) for i in range(0, len(problems), step))
    return joined([_search(space, chunk, prior, n_profiles) for chunk in chunks])


def _search(space: Space, problems: Problems, prior: Prior, n_profiles: int) -> Answers:
    """Profile the choice of most expected gain until none is large; p problems in lockstep."""
    p = len(problems)
    profiles, belief = Profiles(space, problems), Belief(prior, p)
    best, cost = np.full(p, NONE), np.full(p, np.inf)
    runs = [
        prior.runs(job, mode, size) for job, (_, mode, size) in enumerate(space.runs(slice(None)))
    ]
    active = np.arange(
        p
    )  # problems whose search goes on; rows of `belief` and `is_seen` are theirs
    is_seen = np.zeros((p, len(space.choices)), bool)
    for number in range(n_profiles):
        gains = _expected_gains(space, problems.subset(active), belief, runs, cost[active])
        gains = np.where(is_seen, -1, gains)
        choice = gains.argmax(1)
        least = np.where(best[active] == NONE, LEAST_CHANCE, LEAST_GAIN)
        if number == 0:  # always profile once
            least = np.zeros(p)
        goes_on = gains[np.arange(len(active)), choice] >= least
        if not goes_on.any():
            break
        active, is_seen, choice = active[goes_on], is_seen[goes_on], choice[goes_on]
        if not goes_on.all():
            belief.keep(goes_on)
        judged = profiles.run(active, choice)
        improves = judged.holds & (judged.cost < cost[active])
        best[active] = np.where(improves, choice, best[active])
        cost[active] = np.where(improves, judged.cost, cost[active])
        is_seen[np.arange(len(active)), choice] = True
        times_s, powers_w = zip(*space.costs(choice), strict=True)
        seen = np.log(np.stack([*times_s, *powers_w], 1))
        belief.learn([job_runs[choice] for job_runs in runs], seen)
    return profiles.answers(best)


def _expected_gains(
    space: Space, problems: Problems, belief: Belief, runs: list[Indices], cost: Numbers
) -> Numbers:
    """Return the expected gain of profiling each choice, (l, n): mean gain times its probability.

    `runs`: of each job, the index of each choice's run in the belief; `cost`: (l,), of the best
    profiled choice; infinite: none
    """
    from scipy.special import ndtr  # slow to import

    mean, sd = belief.mean, belief.deviation()
    half = mean.shape[1] // 2
    powers_w = [np.exp(mean[:, job_runs + half]) for job_runs in runs]
    all_choices = np.arange(len(space.choices))[None]
    cases = []
    for node in NODES:
        times_s = [np.exp(mean[:, job_runs] + node * sd[:, job_runs]) for job_runs in runs]
        cases.append(space.judge(problems, all_choices, list(zip(times_s, powers_w, strict=True))))
    middle = cases[len(cases) // 2]
    margin = np.log(problems.max_power_w[:, None] / middle.power_w)
    power_sd = reduce(np.maximum, (sd[:, job_runs + half] for job_runs in runs))
    likely = ndtr(margin / power_sd)
    return likely * _gains(cases, likely, cost[:, None], space.train is not None)


def _gains(cases: list[Judged], likely: Numbers, cost: Numbers, trains: bool) -> Numbers:
    """Return the mean gain of choices (l, n) over cases of their times, given that power holds.

    Relative to the best plan expected, where something trains; else of the logarithm of latency.

    `likely`: (l, n), probability that they keep the power budget
    `cost`: (l, 1), of the best profiled choice; infinite: none
    """
    in_time = [case.in_time for case in cases]
    is_first = np.isinf(cost)

    def mean(values: Iterator[Numbers]) -> Numbers:
        """Return the mean over cases; one that is not in time counts as 0."""
        cases_of = zip(SHARES, in_time, values, strict=True)
        return np.asarray(sum(share * is_met * value for share, is_met, value in cases_of))

    if trains:
        beaten = np.where(is_first, 0, cost)
        best = (likely * mean(-case.cost for case in cases)).max(1, keepdims=True)
        scale = np.maximum(np.maximum(best, -beaten), 1e-9)
        better = [(beaten - case.cost) / scale for case in cases]
    else:
        likeliest = (likely * mean(np.ones(1) for _ in cases)).argmax(1)[:, None]
        typical = np.take_along_axis(cases[len(cases) // 2].cost, likeliest, 1)
        beaten = np.where(is_first, typical, cost)
        better = [np.log(beaten / case.cost) for case in cases]
    least_first = -0.9 * ANSWERED  # a first answer, however poor, stays a gain
    return mean(
        np.where(is_first, np.maximum(gain, least_first) + ANSWERED, np.maximum(gain, 0))
        for gain in better
    )
