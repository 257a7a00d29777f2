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

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.problem import NONE, Answers, joined
from epochwatt.schedule.solvers.gmd import N_PROFILES
from epochwatt.schedule.solvers.roofline_prior import OWN, Prior, roofline_prior
from epochwatt.schedule.space import Bools, Judged, Places, Problems, Space

LEAST_GAIN = 0.005  # relative
LEAST_CHANCE = 1e-4  # of an answer, where there is none yet
ANSWERED = 1.0  # what the first answer is worth beside how good it is: as much as the best one
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)  # of a normal distribution
SHARES = WEIGHTS / WEIGHTS.sum()
SURE = 4  # values, seen to be as far off as believed, that the widths of beliefs are worth
_AT_ONCE = 1 << 25  # numbers of the covariance of what was seen with everything


def solve(
    space: Space,
    problems: Problems,
    n_profiles: int = N_PROFILES,
    least_gain: float = LEAST_GAIN,
    prior: Prior | None = None,
) -> Answers:
    """Return the best profiled choice for each problem.

    Parameters
    ----------
    n_profiles : choices that may be profiled; each runs every job once
    least_gain : expected, relative, below which a search that has an answer ends
    prior : what is believed of the space; None: `roofline_prior`
    """
    prior = roofline_prior(space) if prior is None else prior
    n_seen = 2 * space.profiles_per_choice * n_profiles
    step = max(_AT_ONCE // (len(prior.mean) * n_seen), 1)
    parts = [
        _Search(space, problems.only(slice(i, i + step)), prior, n_profiles, least_gain).run()
        for i in range(0, len(problems), step)
    ]
    return joined(parts)


class Belief:
    """Belief about all runs, for each of p problems.

    Attributes
    ----------
    mean, variance : (p, 2 r), of logarithms of times and powers
    columns : (p, 2 r, i), what i seen values took from the variance
    surprise, n_seen : (p,), sum of squares of how far they were off, in deviations, and their
        number
    """

    def __init__(self, prior: Prior, p: int) -> None:
        self.prior = prior
        self.mean = np.tile(prior.mean, (p, 1))
        self.variance = np.tile(prior.variance, (p, 1))
        self.columns = np.zeros((p, len(prior.mean), 0))
        self.surprise = np.zeros(p)
        self.n_seen = np.zeros(p)

    def learn(self, runs: list[Places], logarithms: Numbers) -> None:
        """Learn times, then powers, (p, 2 j), of one run (p,) of each job."""
        half = len(self.prior.mean) // 2
        rows = np.stack([*runs, *(one + half for one in runs)], 1)[:, :, None]
        before = np.take_along_axis(self.columns, rows, 1)  # (p, 2 j, i)
        shared = self.prior.covariance(runs) - self.columns @ before.transpose(0, 2, 1)
        among = np.take_along_axis(shared, rows, 1)
        among = among + OWN**2 * np.eye(among.shape[1])
        root = np.linalg.inv(np.linalg.cholesky(among))
        new = shared @ root.transpose(0, 2, 1)
        off = logarithms - np.take_along_axis(self.mean, rows[..., 0], 1)
        off = (root @ off[:, :, None])[..., 0]
        self.mean += (new @ off[:, :, None])[..., 0]
        self.variance = np.maximum(self.variance - (new**2).sum(2), 0)
        self.columns = np.concatenate([self.columns, new], 2)
        self.surprise += (off**2).sum(1)
        self.n_seen += off.shape[1]

    def deviation(self) -> Numbers:
        """Return standard deviations of what would be seen, (p, 2 r)."""
        wider = np.maximum((SURE + self.surprise) / (SURE + self.n_seen), 1)
        return np.asarray(np.sqrt(wider[:, None] * self.variance + OWN**2))

    def only(self, which: Bools) -> None:
        """Forget all problems but some."""
        for name in ("mean", "variance", "columns", "surprise", "n_seen"):
            setattr(self, name, getattr(self, name)[which])


@dataclass(eq=False)
class _Search:
    """The searches of p problems over n choices, in lockstep.

    Attributes
    ----------
    most : choices that may be profiled for each problem
    best, cost : (p,), the best profiled choice and its cost; `NONE` and infinite
    left : problems whose search goes on; rows of `belief` and `is_seen` are theirs
    is_seen : (l, n), choices that were profiled
    """

    space: Space
    problems: Problems
    prior: Prior
    most: int
    least_gain: float

    def __post_init__(self) -> None:
        p = len(self.problems)
        self.best, self.cost = np.full(p, NONE), np.full(p, np.inf)
        self.n_seen, self.board_s = np.zeros(p, int), np.zeros(p)
        self.left = np.arange(p)
        self.belief = Belief(self.prior, p)
        self.is_seen = np.zeros((p, len(self.space.choices)), bool)
        mode, *sizes = self.space.choices.T
        if self.space.train is not None:
            sizes.insert(0, np.zeros_like(mode))
        self.runs = [self.prior.runs(job, mode, size) for job, size in enumerate(sizes)]

    def run(self) -> Answers:
        """Search, and return the best profiled choices."""
        for _ in range(self.most):
            gains = np.where(self.is_seen, -1, self._gains())
            choice = gains.argmax(1)
            least = self._least()
            goes_on = gains[np.arange(len(choice)), choice] >= least
            if not goes_on.any():
                break
            if not goes_on.all():
                self.left, self.is_seen = self.left[goes_on], self.is_seen[goes_on]
                self.belief.only(goes_on)
            self._profile(choice[goes_on])
        n_profiles = self.n_seen * self.space.profiles_per_choice
        return Answers(self.best, n_profiles, self.board_s)

    def _least(self) -> Numbers:
        """Return the expected gain below which each search ends, (l,); none before a profile."""
        least = np.where(self.best[self.left] == NONE, LEAST_CHANCE, self.least_gain)
        return np.where(self.n_seen[self.left] == 0, 0.0, least)

    def _profile(self, choice: Places) -> None:
        """Run choices (l,), note what they do, and learn from it."""
        left = self.left
        judged = self.space.judge(self.problems.only(left), choice[:, None])
        gains = judged.holds[:, 0] & (judged.cost[:, 0] < self.cost[left])
        self.best[left] = np.where(gains, choice, self.best[left])
        self.cost[left] = np.where(gains, judged.cost[:, 0], self.cost[left])
        self.n_seen[left] += 1
        self.board_s[left] += self.space.board_s(choice)
        self.is_seen[np.arange(len(left)), choice] = True
        times_s, powers_w = zip(*self.space.measured(choice), strict=True)
        seen = np.log(np.stack([*times_s, *powers_w], 1))
        self.belief.learn([runs[choice] for runs in self.runs], seen)

    def _gains(self) -> Numbers:
        """Return the expected gain of all choices, shape (l, n)."""
        problems, cost = self.problems.only(self.left), self.cost[self.left][:, None]
        mean, off = self.belief.mean, self.belief.deviation()
        half = mean.shape[1] // 2
        times = [(mean[:, runs], off[:, runs]) for runs in self.runs]
        powers = [(mean[:, runs + half], off[:, runs + half]) for runs in self.runs]
        powers_w = [np.exp(one) for one, _ in powers]
        cases = []
        for node in NODES:
            times_s = [np.exp(one + node * sd) for one, sd in times]
            cases.append(self.space.judge_if(problems, list(zip(times_s, powers_w, strict=True))))
        middle = cases[len(cases) // 2]
        over = np.log(problems.max_power_w[:, None] / middle.power_w)
        likely = _normal_cdf(over / reduce(np.maximum, (sd for _, sd in powers)))
        return likely * _gain(cases, likely, cost, self.space.train is not None)


def _gain(cases: list[Judged], likely: Numbers, cost: Numbers, trains: bool) -> Numbers:
    """Return the mean gain of choices (l, n) over cases of their times, if they keep the power.

    Relative to the best plan expected, where something trains; else of the logarithm of latency.

    Parameters
    ----------
    likely : (l, n), how likely they do
    cost : (l, 1), of the best profiled choice; infinite: none
    """
    holds = [case.keeps_latency & case.is_stable for case in cases]
    is_first = np.isinf(cost)
    beaten = np.where(is_first, 0, cost)
    if trains:
        expected = sum(
            share * held * -case.cost
            for share, held, case in zip(SHARES, holds, cases, strict=True)
        )
        best = (likely * expected).max(1, keepdims=True)
        scale = np.maximum(np.maximum(best, -beaten), 1e-9)
        better = [(beaten - case.cost) / scale for case in cases]
    else:
        likeliest = likely * sum(share * held for share, held in zip(SHARES, holds, strict=True))
        place = likeliest.argmax(1)[:, None]
        typical = np.take_along_axis(cases[len(cases) // 2].cost, place, 1)
        beaten = np.where(is_first, typical, cost)
        better = [np.log(beaten / case.cost) for case in cases]
    first = [np.maximum(one, -0.9 * ANSWERED) + ANSWERED for one in better]
    return np.asarray(
        sum(
            share * held * np.where(is_first, one, np.maximum(other, 0))
            for share, held, one, other in zip(SHARES, holds, first, better, strict=True)
        )
    )


def _normal_cdf(values: Numbers) -> NDArray[np.float64]:
    from scipy.special import ndtr  # slow to import

    return np.asarray(ndtr(values))
