"""Search by a few profiles, one knob at a time: our reading of Fulcrum's GMD.

Fulcrum (arXiv 2509.20205) calls it a gradient-descent based multi-dimensional search of 15
profiles, and prints neither its steps nor its rules of pruning. Ours:

1. In the strongest mode, profile the middle mini-batch size, then up to two more: a larger one
   where requests arrive faster than they are served, a smaller one where they wait too long. The
   best of them, power aside, is where the search begins.
2. Profile the middle of all modes; then each knob of the mode at one end, the others left: up where
   the middle keeps the power budget, else down. This gives each a slope, time lost per watt saved.
   Where the last profile breaks the power budget, lower the knob that loses least time per watt;
   where it keeps it, raise the one that gains most. Where it is too slow all the same, a mini-batch
   size moves as in step 1. A knob moves half of what is left of its range.
3. A profile says something of choices that are at least as high in every knob, or at most: above
   one that breaks the power budget all do, below one that is too slow all are, and below one that
   holds none is better. These are never profiled.
4. Where nothing is left within the ranges, or two profiles in a row gained nothing, all ranges are
   open again, and the search goes on beside the best so far.

The answer is the best profiled choice that keeps all budgets; so it keeps them as measured. Many
problems are searched beside each other. Nothing is drawn: the same problem has the same answer.
"""

from dataclasses import dataclass

import numpy as np

from epochwatt.schedule.neighbours import Neighbours, single
from epochwatt.schedule.solution import NONE, Answers
from epochwatt.schedule.solvers.exhaustive import best_of
from epochwatt.schedule.space import Bools, Judged, Places, Problems, Space

N_PROFILES = 15  # choices: the abstract of Fulcrum
TOLERANCE = 0.03  # relative; boards are not quite monotone (SIGMETRICS 2023, section 5.6.4)
PATIENCE = 2  # profiles without a gain
N_SIZES = 3  # mini-batch sizes that are profiled in the strongest mode
_FIRST, _LAST = 1e9, -1e9  # gains beyond those of any mode's knob
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
        _Search(space, near, problems.only(slice(i, i + _AT_ONCE)), tolerance).run(n_profiles)
        for i in range(0, len(problems), _AT_ONCE)
    ]
    return Answers(*(np.concatenate(some) for some in zip(*parts, strict=True)))


@dataclass(eq=False)
class _Search:
    """The searches of p problems over n choices of d knobs, in lockstep.

    Attributes
    ----------
    closed : profiled or ruled out, a set of choices for each problem
    low, high : (p, d), the range of each knob
    slope : (p, d), relative time lost per watt saved
    seen : (p, i), choices profiled so far
    """

    space: Space
    near: Neighbours
    problems: Problems
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

    def run(self, n_profiles: int) -> Answers:
        """Search, and return the best profiled choices."""
        steps = self._sizes()
        n_modes = self.space.n_mode_knobs
        steps[:, :n_modes] = (self.low[:, :n_modes] + self.high[:, :n_modes]) // 2
        centre = last = self._profile(self._nearest(steps))
        judged = self.judged[-1]
        for knob in range(n_modes):
            if self.seen.shape[1] < n_profiles:
                self._profile(self._nearest(self._probe(centre, knob, judged)))
                self._set_slope(knob, centre, self.seen[:, -1])
        while self.seen.shape[1] < n_profiles:
            last = self._profile(self._nearest(self._next(last)))
        return self._answers()

    def _sizes(self) -> Places:
        """Search mini-batch sizes in the strongest mode; return the steps (p, d) of the best."""
        n_modes = self.space.n_mode_knobs
        steps = self.high.copy()
        if steps.shape[1] == n_modes:
            return steps
        low, high = self.low[:, n_modes:].copy(), self.high[:, n_modes:].copy()
        for _ in range(N_SIZES):
            steps[:, n_modes:] = at = (low + high) // 2
            self._profile(self.near.nearest_outside(steps, self.near.none(len(steps))))
            up = self._grows(self.judged[-1])[:, None]
            low = np.where(up, np.minimum(at + 1, high), low)
            high = np.where(up, high, np.maximum(at - 1, low))
        places = best_of(self._all()._replace(keeps_power=np.ones(self.seen.shape, bool)))
        best = self.space.knobs[self.seen[self.rows, np.where(places == NONE, -1, places)]]
        steps[:, n_modes:] = best[:, n_modes:]
        return steps

    def _grows(self, judged: Judged) -> Bools:
        """Return whether a mini-batch size is to be raised after a profile."""
        wants = judged.keeps_latency[:, 0] if self.space.train is not None else False
        return np.asarray(~judged.is_stable[:, 0] | wants)

    # -- profiles --------------------------------------------------------------------------------

    def _profile(self, choice: Places) -> Places:
        """Note what choices (p,) do, `NONE` where nothing is left; return them."""
        there = choice != NONE
        place = np.where(there, choice, self.seen[:, 0] if self.seen.size else 0)
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
        too_slow = ~judged.keeps_latency[:, 0] | ~judged.is_stable[:, 0]
        for which, ruled_out in (
            (over_w, self.near.above),
            (too_slow | judged.holds[:, 0], self.near.below),
        ):
            rows = np.flatnonzero(which)
            if rows.size:
                self.closed[rows] |= ruled_out(place[rows])
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

    def _probe(self, centre: Places, knob: int, judged: Judged) -> Places:
        """Return the steps (p, d) of the centre with one knob at an end."""
        steps = self.space.knobs[centre].copy()
        up = judged.keeps_power[:, 0]
        steps[:, knob] = np.where(up, self.high[:, knob], self.low[:, knob])
        return steps

    def _next(self, last: Places) -> Places:
        """Return the steps (p, d) to profile next."""
        judged, here = self.judged[-1], self.space.knobs[last]
        weary = self.idle >= PATIENCE
        self._open_again(weary)
        here = np.where(weary[:, None], self.space.knobs[self._best_seen()], here)
        knob, is_up = self._move(judged, here)
        at = here[self.rows, knob]
        self.low[self.rows, knob] = np.where(is_up, at + 1, self.low[self.rows, knob])
        self.high[self.rows, knob] = np.where(is_up, self.high[self.rows, knob], at - 1)
        self._open_again(np.asarray((self.low > self.high).any(1)))
        steps = np.clip(here, self.low, self.high)
        steps[self.rows, knob] = (self.low[self.rows, knob] + self.high[self.rows, knob]) // 2
        return steps

    def _move(self, judged: Judged, here: Places) -> tuple[Places, Bools]:
        """Return which knob (p,) moves after a profile, and whether up: step 2."""
        n_modes = self.space.n_mode_knobs
        keeps_power = judged.keeps_power[:, 0]
        up = np.broadcast_to(keeps_power[:, None], here.shape).copy()
        up[:, n_modes:] = self._grows(judged)[:, None]
        gain = np.where(up, self.slope, -self.slope)
        is_late = ~judged.is_stable[:, 0] | ~judged.keeps_latency[:, 0]
        gain[:, n_modes:] = np.where(is_late & keeps_power, _FIRST, _LAST)[:, None]
        room = np.where(up, here < self.high, here > self.low)
        knob = np.where(room, gain, -np.inf).argmax(1)
        return knob, up[self.rows, knob]

    def _open_again(self, which: Bools) -> None:
        self.low[which] = 0
        self.high[which] = self.space.knobs.max(0)
        self.idle[which] = 0

    def _best_seen(self) -> Places:
        """Return the best profiled choice (p,), or the last where none holds."""
        place = best_of(self._all())
        return self.seen[self.rows, np.where(place == NONE, -1, place)]

    def _nearest(self, steps: Places) -> Places:
        """Return the open choice nearest to steps (p, d); `NONE` where none is open."""
        return self.near.nearest_outside(steps, self.closed)

    # -- the answer --------------------------------------------------------------------------------

    def _all(self) -> Judged:
        return Judged(*(np.concatenate(some, axis=1) for some in zip(*self.judged, strict=True)))

    def _answers(self) -> Answers:
        place = best_of(self._all())
        choice = np.where(place == NONE, NONE, self.seen[self.rows, place])
        ordered = np.sort(self.seen, axis=1)
        distinct = 1 + (np.diff(ordered, axis=1) > 0).sum(1)
        return Answers(choice, distinct * self.space.profiles_per_choice)
