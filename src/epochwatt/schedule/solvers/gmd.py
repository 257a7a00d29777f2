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

from dataclasses import dataclass

import numpy as np

from epochwatt.schedule.neighbours import Neighbours, Side, single
from epochwatt.schedule.problem import NONE, Answers, joined
from epochwatt.schedule.solvers.exhaustive import best_of
from epochwatt.schedule.space import Bools, Judged, Places, Problems, Space

N_PROFILES = 15  # choices: the abstract of Fulcrum
TOLERANCE = 0.03  # relative; boards are not quite monotone (SIGMETRICS 2023, section 5.6.4)
PATIENCE = 3  # profiles without a gain
N_SIZES = 3  # that are profiled in the strongest mode, at most
_AT_ONCE = 1 << 14  # problems


def solve(
    space: Space, problems: Problems, n_profiles: int = N_PROFILES, tolerance: float = TOLERANCE
) -> Answers:
    """Return the best profiled choice for each problem.

    Parameters
    ----------
    n_profiles : choices that may be profiled; each runs every job once
    tolerance : by how much a budget has to be missed, relative, for step 3 to count on it
    """
    near = Neighbours(space)
    parts = [
        _Search(space, near, problems.only(slice(i, i + _AT_ONCE)), n_profiles, tolerance).run()
        for i in range(0, len(problems), _AT_ONCE)
    ]
    return joined(parts)


@dataclass(eq=False)
class _Search:
    """The searches of p problems over n choices of d knobs, in lockstep.

    Attributes
    ----------
    most : choices that may be profiled for each problem
    closed : profiled or ruled out, a set of choices for each problem
    low, high : (p, d), the range of each knob
    slope : (p, d), relative time lost per watt saved
    seen : (p, i), choices profiled so far, some of them several times
    n_seen : (p,), how many distinct ones
    """

    space: Space
    near: Neighbours
    problems: Problems
    most: int
    tolerance: float

    def __post_init__(self) -> None:
        p, n_knobs = len(self.problems), self.space.knobs.shape[1]
        self.rows = np.arange(p)
        self.closed = self.near.none(p)
        self.low = np.zeros((p, n_knobs), np.intp)
        self.high = np.broadcast_to(self.space.knobs.max(0), (p, n_knobs)).copy()
        self.slope = np.zeros((p, n_knobs))
        self.seen = np.zeros((p, 0), np.intp)
        self.judged: list[Judged] = []
        self.best = np.full(p, np.inf)
        self.idle = np.zeros(p, int)
        self.n_seen = np.zeros(p, int)
        self.board_s = np.zeros(p)

    def run(self) -> Answers:
        """Search, and return the best profiled choices."""
        n_modes = self.space.n_mode_knobs
        steps = self._first_sizes()
        for _ in range(N_SIZES if self.space.infer else 0):
            fitting = self._profile(self.near.nearest_outside(steps, self.near.none(len(steps))))
            steps[:, n_modes:] = self._fitting_sizes(fitting)
        steps[:, :n_modes] = (self.low[:, :n_modes] + self.high[:, :n_modes]) // 2
        centre = last = self._profile(self._nearest(steps))
        up = self.judged[-1].keeps_power[:, 0]
        for knob in range(n_modes):
            self._set_slope(
                knob, centre, self._profile(self._nearest(self._probe(centre, knob, up)))
            )
        for _ in range(self.most):
            if (self.n_seen == self.most).all():
                break
            last = self._profile(self._nearest(self._next(last)))
        return self._answers()

    # -- mini-batch sizes --------------------------------------------------------------------------

    def _first_sizes(self) -> Places:
        """Return the steps (p, d) of the strongest mode and of the sizes that are tried first."""
        steps = self.high.copy()
        for i, one in enumerate(self.space.infer):
            waits_s = (one.batch_sizes - 1) / self.problems.rates_per_s[:, i, None]
            in_time = waits_s < self.problems.max_latencies_s[:, i, None]
            n_sizes = in_time.sum(1) if self.space.train is not None else 1
            steps[:, self.space.n_mode_knobs + i] = n_sizes - 1
        return steps

    def _fitting_sizes(self, place: Places) -> Places:
        """Return the step of each mini-batch size (p, s) that fits what a profile (p,) took."""
        sizes, streams = self.space.choices[place].T[1:], self.space.infer
        steps = np.empty((len(place), len(streams)), np.intp)
        infer_s = self.space.busy_s(place, trains=False).reshape(-1, 1)
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

    def _profile(self, choice: Places) -> Places:
        """Note what choices (p,) do and return them; the last where nothing is left or allowed."""
        there = (choice != NONE) & (self.n_seen < self.most)
        there &= ~(self.seen == choice[:, None]).any(1)
        self.n_seen = self.n_seen + there
        self.board_s = self.board_s + np.where(there, self.space.board_s(choice), 0.0)
        place = np.where(there, choice, self.seen[:, -1] if self.seen.size else 0)
        judged = self.space.judge(self.problems, place[:, None])
        self.seen = np.column_stack([self.seen, place])
        self.judged.append(judged)
        self._rule_out(place, judged)
        gains = judged.holds[:, 0] & (judged.cost[:, 0] < self.best)
        self.best = np.where(gains, judged.cost[:, 0], self.best)
        self.idle = np.where(gains, 0, self.idle + 1)
        return place

    def _rule_out(self, place: Places, judged: Judged) -> None:
        """Close what needs no profile after those of `place`: step 3."""
        over_w = judged.power_w[:, 0] > self.problems.max_power_w * (1 + self.tolerance)
        no_better: Side = "at_least" if self.space.train is None else "at_most"
        rules: tuple[tuple[Bools, Side, Side], ...] = (
            (over_w, "at_least", "at_least"),
            (~judged.keeps_latency[:, 0], "at_most", "at_least"),
            (~judged.is_stable[:, 0], "at_most", "same"),
            (judged.holds[:, 0], "at_most", no_better),
        )
        for which, modes, sizes in rules:
            rows = np.flatnonzero(which)
            if rows.size:
                self.closed[rows] |= self.near.beside(place[rows], modes, sizes)
        self.closed |= single(place, len(self.space.choices))

    def _set_slope(self, knob: int, one: Places, other: Places) -> None:
        busy = [self.space.busy_s(some) for some in (one, other)]
        drawn = [
            self.space.judge(self.problems, some[:, None]).power_w[:, 0] for some in (one, other)
        ]
        lost = np.abs(np.log(busy[0] / busy[1]))
        saved = np.maximum(np.abs(drawn[0] - drawn[1]), 1e-3)
        moved = one != other
        self.slope[:, knob] = np.where(moved, lost / saved, self.slope[:, knob])

    # -- where to look next ------------------------------------------------------------------------

    def _probe(self, centre: Places, knob: int, up: Bools) -> Places:
        """Return the steps (p, d) of the centre with one knob at an end."""
        steps = self.space.knobs[centre].copy()
        steps[:, knob] = np.where(up, self.high[:, knob], self.low[:, knob])
        return steps

    def _next(self, last: Places) -> Places:
        """Return the steps (p, d) to profile next."""
        weary = self.idle >= PATIENCE
        self._open_again(weary)
        start = np.where(weary, self._best_seen(), last)
        here, up = self.space.knobs[start], self.judged[-1].keeps_power[:, 0]
        resized = here.copy()
        resized[:, self.space.n_mode_knobs :] = self._fitting_sizes(start)
        resizes = up & self.near.is_outside(resized, self.closed)
        steps = self._moved(here, up, ~resizes)
        steps[:, self.space.n_mode_knobs :] = resized[:, self.space.n_mode_knobs :]
        return np.where(resizes[:, None], resized, steps)

    def _moved(self, here: Places, up: Bools, which: Bools) -> Places:
        """Return steps (p, d) with one knob of the mode moved, and narrow its range: step 2.

        `which`: (p,), of which problems ranges are narrowed.
        """
        n_modes = self.space.n_mode_knobs
        room = np.where(up[:, None], here < self.high, here > self.low)[:, :n_modes]
        gain = np.where(up[:, None], self.slope, -self.slope)[:, :n_modes]
        knob = np.where(room, gain, -np.inf).argmax(1)
        at, low, high = here[self.rows, knob], self.low, self.high
        low[self.rows, knob] = np.where(up & which, at + 1, low[self.rows, knob])
        high[self.rows, knob] = np.where(~up & which, at - 1, high[self.rows, knob])
        self._open_again(np.asarray((low > high).any(1)))
        steps = np.clip(here, low, high)
        steps[self.rows, knob] = (low[self.rows, knob] + high[self.rows, knob]) // 2
        return steps

    def _open_again(self, which: Bools) -> None:
        self.low[which] = 0
        self.high[which] = self.space.knobs.max(0)
        self.idle[which] = 0

    def _best_seen(self) -> Places:
        """Return the best profiled choice (p,); where none holds the fastest within the power."""
        judged = self._all()
        place = best_of(judged)
        busy_s = np.where(judged.keeps_power, self.space.busy_s(self.seen), np.inf)
        fastest = np.where(judged.keeps_power.any(1), busy_s.argmin(1), -1)
        return np.asarray(self.seen[self.rows, np.where(place == NONE, fastest, place)])

    def _nearest(self, steps: Places) -> Places:
        """Return the open choice nearest to steps (p, d); `NONE` where none is open."""
        return self.near.nearest_outside(steps, self.closed)

    # -- the answer --------------------------------------------------------------------------------

    def _all(self) -> Judged:
        return Judged(*(np.concatenate(some, axis=1) for some in zip(*self.judged, strict=True)))

    def _answers(self) -> Answers:
        place = best_of(self._all())
        choice = np.where(place == NONE, NONE, self.seen[self.rows, place])
        return Answers(choice, self.n_seen * self.space.profiles_per_choice, self.board_s)
