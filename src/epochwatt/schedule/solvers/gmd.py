"""Search by a few profiles, one knob at a time: our reading of Fulcrum's GMD.

Fulcrum (arXiv 2509.20205) calls it a gradient-descent based multi-dimensional search of 15
profiles, and prints neither its steps nor its rules of pruning. Ours:

1. In the strongest mode, profile mini-batch sizes until one fits, at most three: the first is the
   largest whose requests can be in time where a job trains beside them, else the smallest.
   A profile says which sizes fit: the largest that is in time, if times grow with the size; or, of
   each stream, the smallest whose period holds the time of all streams.
2. Profile the middle of all modes; then each knob of the mode at one end, the others left: up where
   the middle keeps the power budget, else down. This gives each a slope, time lost per watt saved.
   Where the last profile breaks the power budget, lower the knob that loses least time per watt;
   where it keeps it, raise the one that gains most, by half of what is left of its range. Sizes
   follow: they are those that fit the last profile, and where it keeps the power budget and others
   fit, they move first, in the same mode.
3. A profile says something of other choices, mini-batch sizes among the knobs. No less power: at
   least as high in every knob. No less late: modes at most as high, sizes at least. No faster
   served: modes at most as high, of the same sizes. Below one that holds none is better: modes at
   most as high, and smaller sizes where a job trains, else larger ones. These are never profiled.
4. Where nothing is left within the ranges, or three profiles in a row gained nothing, all ranges
   are open again, and the search goes on beside the best so far; where none holds, beside the
   fastest that keeps the power budget.

Other readings were tried on the study's problems: sizes by bisection (twice the loss of training
beside inference, and half of the problems of two streams without an answer), slopes of training's
time alone, smaller sizes tried below each answer, sizes that move only after profiles without a
gain. None of them was better in all kinds of jobs.

The answer is the best profiled choice that keeps all budgets; so it keeps them as measured. Many
problems are searched beside each other. Nothing is drawn: the same problem has the same answer.
"""

from collections.abc import Callable

import numpy as np

from epochwatt.schedule.problem import (
    NONE,
    Answers,
    Bools,
    Indices,
    Judged,
    Problems,
    Profiles,
    Space,
    joined,
)
from epochwatt.schedule.solvers.exhaustive import best_of

N_PROFILES = 15  # choices: the abstract of Fulcrum
TOLERANCE = 0.03  # relative, by how much a budget has to be missed for step 3 to count on it;
# boards are not quite monotone (SIGMETRICS 2023, section 5.6.4)
PATIENCE = 3  # profiles without a gain
N_SIZES = 3  # that are profiled in the strongest mode, at most
_AT_ONCE = 1 << 14  # problems
Side = Callable[[Indices, Indices], Bools]
AT_LEAST: Side = np.greater_equal
AT_MOST: Side = np.less_equal
SAME: Side = np.equal


def solve(space: Space, problems: Problems, draw: int = 0, n_profiles: int = N_PROFILES) -> Answers:
    """Search knob by knob; return the best profiled choice for each problem.

    `draw`: not used
    `n_profiles`: choices that may be profiled; each runs every job once
    """
    neighbours = _Neighbours(space)
    chunks = (problems.subset(slice(i, i + _AT_ONCE)) for i in range(0, len(problems), _AT_ONCE))
    return joined([_Search(space, neighbours, chunk, n_profiles).run() for chunk in chunks])


class _Neighbours:
    """Find choices near each other, and those at least as high in every knob.

    Both are worked out when they are first asked for, and kept: searches of many problems ask for
    the same ones again and again. Sets of choices are (p, n): one set for each of p problems.
    """

    def __init__(self, space: Space) -> None:
        self._knobs, self._n_modes = space.knobs, space.n_mode_knobs
        self._sizes = tuple(self._knobs.max(0) + 1)
        self._choice_by_steps = np.full(self._sizes, NONE)
        self._choice_by_steps[tuple(self._knobs.T)] = np.arange(len(self._knobs))
        self._orders: dict[int, Indices] = {}
        self._beside: dict[tuple[Side, Side, int], Bools] = {}

    def beside(self, choices: Indices, modes: Side, sizes: Side) -> Bools:
        """Return which choices compare so with each choice (p,), (p, n).

        `modes`, `sizes`: comparison that every knob of the mode, and every size, has to meet
        """
        distinct, row = np.unique(choices, return_inverse=True)
        for choice in distinct.tolist():
            if (modes, sizes, choice) not in self._beside:
                n, here = self._n_modes, self._knobs[choice]
                in_mode = modes(self._knobs[:, :n], here[:n]).all(1)
                in_sizes = sizes(self._knobs[:, n:], here[n:]).all(1)
                self._beside[modes, sizes, choice] = np.asarray(in_mode & in_sizes)
        return np.stack([self._beside[modes, sizes, choice] for choice in distinct.tolist()])[row]

    def is_open(self, steps: Indices, closed: Bools) -> Bools:
        """Return whether the choice of steps (p, d) exists and is not closed, (p,)."""
        choice = self._choice_by_steps[tuple(steps.T)]
        return (choice != NONE) & ~closed[np.arange(len(steps)), choice]

    def nearest_open(self, steps: Indices, closed: Bools) -> Indices:
        """Return the choice nearest to steps (p, d) that is not closed, in steps of all knobs.

        `NONE` where all are closed. Of equally near ones the first in the space's order.
        """
        choices = self._choice_by_steps[tuple(steps.T)]
        unresolved = np.flatnonzero(~self.is_open(steps, closed))
        keys = np.ravel_multi_index(tuple(steps[unresolved].T), self._sizes)
        for key in np.unique(keys).tolist():
            if key not in self._orders:
                target = np.array(np.unravel_index(key, self._sizes))
                distance = np.abs(self._knobs - target).sum(1)
                self._orders[key] = np.argsort(distance, kind="stable")
            order, rows = self._orders[key], unresolved[keys == key]
            is_open = ~closed[rows][:, order]
            choices[rows] = np.where(is_open.any(1), order[is_open.argmax(1)], NONE)
        return choices


class _Search:
    """The searches of p problems over n choices of d knobs, in lockstep.

    `closed`: (p, n), choices that were profiled or ruled out
    `low`, `high`: (p, d), the range of each knob
    `slope`: (p, d), relative time lost per watt saved
    `seen`: (p, i), choices profiled so far, some of them several times
    `judged`: what each of them does, (p, 1)
    `best`: (p,), the least cost so far
    `idle`: (p,), profiles without a gain
    """

    def __init__(
        self, space: Space, neighbours: _Neighbours, problems: Problems, n_profiles: int
    ) -> None:
        """Begin with all ranges open and nothing profiled; at most `n_profiles` choices will be."""
        p, n_knobs = len(problems), space.knobs.shape[1]
        self.space, self.neighbours, self.problems = space, neighbours, problems
        self.n_profiles = n_profiles
        self.profiles = Profiles(space, problems)
        self.rows = np.arange(p)
        self.closed = np.zeros((p, len(space.choices)), bool)
        self.low = np.zeros((p, n_knobs), np.intp)
        self.high = np.broadcast_to(space.knobs.max(0), (p, n_knobs)).copy()
        self.slope = np.zeros((p, n_knobs))
        self.seen = np.zeros((p, 0), np.intp)
        self.judged: list[Judged] = []
        self.best = np.full(p, np.inf)
        self.idle = np.zeros(p, int)

    @property
    def has_ended(self) -> Bools:
        """True where as many choices were profiled as may be, (p,)."""
        return self.profiles.n_profiles >= self.n_profiles * len(self.space.workloads)

    def run(self) -> Answers:
        """Profile sizes, the centre, an end of each knob, then narrow; return the best."""
        n_modes = self.space.n_mode_knobs
        steps = self._first_sizes()
        for _ in range(N_SIZES if self.space.infer else 0):
            nothing_closed = np.zeros_like(self.closed)
            profiled = self._profile(self.neighbours.nearest_open(steps, nothing_closed))
            steps[:, n_modes:] = self._fitting_sizes(profiled)
        steps[:, :n_modes] = (self.low[:, :n_modes] + self.high[:, :n_modes]) // 2
        centre = last = self._profile(self.neighbours.nearest_open(steps, self.closed))
        up = self.judged[-1].keeps_power[:, 0]
        for knob in range(n_modes):
            steps = self.space.knobs[centre].copy()
            steps[:, knob] = np.where(up, self.high[:, knob], self.low[:, knob])
            end = self._profile(self.neighbours.nearest_open(steps, self.closed))
            self._set_slope(knob, centre, end)
        for _ in range(self.n_profiles):
            if self.has_ended.all():
                break
            steps = self._next(last)
            last = self._profile(self.neighbours.nearest_open(steps, self.closed))
        column = best_of(self._all_judged())
        return self.profiles.answers(np.where(column == NONE, NONE, self.seen[self.rows, column]))

    # -- mini-batch sizes --------------------------------------------------------------------------

    def _first_sizes(self) -> Indices:
        """Return the steps (p, d) of the strongest mode and of the sizes that are tried first."""
        steps = self.high.copy()
        for i, one in enumerate(self.space.infer):
            waits_s = (one.batch_sizes - 1) / self.problems.rates_per_s[:, i, None]
            in_time = waits_s < self.problems.max_latencies_s[:, i, None]
            n_sizes = in_time.sum(1) if self.space.train is not None else 1
            steps[:, self.space.n_mode_knobs + i] = n_sizes - 1
        return steps

    def _fitting_sizes(self, choice: Indices) -> Indices:
        """Return the step of each stream's mini-batch size, (p, s), that fits a profile (p,)."""
        sizes, streams = self.space.choices[choice].T[1:], self.space.infer
        steps = np.empty((len(choice), len(streams)), np.intp)
        infer_s = self.space.busy_s(choice, trains=False).reshape(-1, 1)
        for i, (one, size) in enumerate(zip(streams, sizes, strict=True)):
            period_s = one.batch_sizes / self.problems.rates_per_s[:, i, None]
            if self.space.train is None:
                fits = period_s >= infer_s
                steps[:, i] = np.where(fits.any(1), fits.argmax(1), fits.shape[1] - 1)
            else:
                waits_s = period_s * (1 - 1 / one.batch_sizes)
                share = one.batch_sizes / one.batch_sizes[size][:, None]
                in_time = waits_s + infer_s * share <= self.problems.max_latencies_s[:, i, None]
                steps[:, i] = np.maximum(in_time.sum(1) - 1, 0)
        return steps

    # -- profiles --------------------------------------------------------------------------------

    def _profile(self, choice: Indices) -> Indices:
        """Profile choices (p,), record what they do, rule out others; return the profiled choices.

        Where the choice is `NONE` or seen, or no profile is left, the last one stands again.
        """
        is_new = (choice != NONE) & ~self.has_ended & ~(self.seen == choice[:, None]).any(1)
        self.profiles.count(np.flatnonzero(is_new), choice[is_new])
        choice = np.where(is_new, choice, self.seen[:, -1] if self.seen.size else 0)
        judged = self.space.judge(self.problems, choice[:, None])
        self.seen = np.column_stack([self.seen, choice])
        self.judged.append(judged)
        self._rule_out(choice, judged)
        gains = judged.holds[:, 0] & (judged.cost[:, 0] < self.best)
        self.best = np.where(gains, judged.cost[:, 0], self.best)
        self.idle = np.where(gains, 0, self.idle + 1)
        return choice

    def _rule_out(self, choice: Indices, judged: Judged) -> None:
        """Close choices that a profile shows to be too hungry, late, slow or no better: step 3."""
        over_w = judged.power_w[:, 0] > self.problems.max_power_w * (1 + TOLERANCE)
        no_better = AT_LEAST if self.space.train is None else AT_MOST
        for applies, modes, sizes in (
            (over_w, AT_LEAST, AT_LEAST),
            (~judged.keeps_latency[:, 0], AT_MOST, AT_LEAST),
            (~judged.is_stable[:, 0], AT_MOST, SAME),
            (judged.holds[:, 0], AT_MOST, no_better),
        ):
            rows = np.flatnonzero(applies)
            if rows.size:
                self.closed[rows] |= self.neighbours.beside(choice[rows], modes, sizes)
        self.closed[self.rows, choice] = True

    def _set_slope(self, knob: int, *ends: Indices) -> None:
        """Set a knob's slope, time lost per watt saved, from two profiled choices (p,)."""
        busy_s = [self.space.busy_s(choice) for choice in ends]
        drawn_w = [self.space.judge(self.problems, end[:, None]).power_w[:, 0] for end in ends]
        lost = np.abs(np.log(busy_s[0] / busy_s[1]))
        saved = np.maximum(np.abs(drawn_w[0] - drawn_w[1]), 1e-3)
        self.slope[:, knob] = np.where(ends[0] != ends[1], lost / saved, self.slope[:, knob])

    # -- where to look next ------------------------------------------------------------------------

    def _next(self, last: Indices) -> Indices:
        """Choose the steps (p, d) to profile next; moves the ranges of knobs.

        `last`: (p,), the last profiled choice
        """
        restarts = self.idle >= PATIENCE
        self._open_again(restarts)
        start = np.where(restarts, self._best_seen(), last)
        here, up = self.space.knobs[start], self.judged[-1].keeps_power[:, 0]
        resized = here.copy()
        resized[:, self.space.n_mode_knobs :] = self._fitting_sizes(start)
        resizes = up & self.neighbours.is_open(resized, self.closed)
        steps = self._moved(here, up, ~resizes)
        steps[:, self.space.n_mode_knobs :] = resized[:, self.space.n_mode_knobs :]
        return np.where(resizes[:, None], resized, steps)

    def _moved(self, here: Indices, up: Bools, narrows: Bools) -> Indices:
        """Return steps (p, d) with one knob of the mode moved up or down: step 2.

        Narrows the range of that knob for the problems that `narrows` (p,) names.
        """
        n_modes = self.space.n_mode_knobs
        room = np.where(up[:, None], here < self.high, here > self.low)[:, :n_modes]
        gain = np.where(up[:, None], self.slope, -self.slope)[:, :n_modes]
        knob = np.where(room, gain, -np.inf).argmax(1)
        step, low, high = here[self.rows, knob], self.low, self.high
        low[self.rows, knob] = np.where(up & narrows, step + 1, low[self.rows, knob])
        high[self.rows, knob] = np.where(~up & narrows, step - 1, high[self.rows, knob])
        self._open_again(np.asarray((low > high).any(1)))
        steps = np.clip(here, low, high)
        steps[self.rows, knob] = (low[self.rows, knob] + high[self.rows, knob]) // 2
        return steps

    def _open_again(self, restarts: Bools) -> None:
        """Open all ranges of the problems (p,) that restart, and forget their idle profiles."""
        self.low[restarts] = 0
        self.high[restarts] = self.space.knobs.max(0)
        self.idle[restarts] = 0

    def _best_seen(self) -> Indices:
        """Return the best profiled choice (p,); where none holds the fastest within the power."""
        judged = self._all_judged()
        column = best_of(judged)
        busy_s = np.where(judged.keeps_power, self.space.busy_s(self.seen), np.inf)
        fastest = np.where(judged.keeps_power.any(1), busy_s.argmin(1), -1)
        return np.asarray(self.seen[self.rows, np.where(column == NONE, fastest, column)])

    def _all_judged(self) -> Judged:
        columns = zip(*self.judged, strict=True)
        return Judged(*(np.concatenate(column, axis=1) for column in columns))
