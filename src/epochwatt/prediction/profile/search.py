"""Run modes one after the other until another one costs more than it can save.

First come modes of a small design that tells the board's terms apart (`selection.optimal_design`),
then the run from which the best answer is expected to gain most (expected improvement under a
constraint: Gardner et al., 2014): of a mode that was not run, or once more of one that was. It is
small both where a mode is surely slower and where it surely breaks the limit, and an answer need
not wait for more modes once each costs more than it can gain.

One measurement says little about the next one, and the best of many that lie just below a limit is
one that was lucky. So a mode is an answer only where the next measurement breaks the limit with a
probability of `max_risk` at most (`power_risks`), and it is run again until that is clear.

Where few runs are allowed (`Goal.max_runs`), none is left to explore with: a mode in the middle
comes first and each of its parts alone at an end (`star`), then whatever is expected to be best.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows, logs
from epochwatt.prediction.models.times_power import predictors, time_with_power
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Method, Predictor
from epochwatt.prediction.profile.bench import BUSY, Bench, Measured
from epochwatt.prediction.recommend.recommend import COST_OF_A_MODE, REPEAT_SD, Estimate
from epochwatt.prediction.selection.optimal_design import (
    board_design,
    choose_modes,
    design_of_modes,
)
from epochwatt.sweeps.other_power import NOTHING_ELSE, PACED, OtherPower
from epochwatt.text import counted

N_FIRST = 8  # modes of the first design, if the time suffices; methods know little from fewer
LEAST_FIRST = 4
SHARE_FIRST = 0.5  # of the time, that the first design may take
MOST_CANDIDATES = 1500  # of a design, whose search compares each with each
SHORTLIST = 500  # modes of which it is asked how unsure they are
HOPEFUL = 1.25  # expected power over the limit, up to which a mode is on that list
LEAST_KNOBS = 3  # parts that vary, from which on a star is run first where runs are few
MIDDLE = 0.6  # of a star's clocks, from the lowest to the highest, of logarithms
N_VERIFIED = 12  # candidates in a row that are no better: what is left is not, either
# ASSUME: the mode is for a training that takes this many times what may be spent to find it
HORIZON = 10.0
LIKELY = 0.5  # probability to keep the limit, of the modes that the best is taken of
TIME_OVER = "the time is over"  # while a mode was running
NO_FIT = "the time is over: another mode would not fit in"
LEAST_VALID = 2  # modes that methods can be fitted to
HOPELESS = 0.01  # probability to keep the limit, of the likeliest mode, below which none is run
LEAST_SD = 1e-9  # of a logarithm
N_BUSY = 2  # modes in a row that ran beside other programs end the search

CORES = Mode._fields.index("cores")
ENDLESS_S = 1e9  # board time where there is no limit of it

MAX_RISK = 0.1  # where none is asked for
REPEAT_WEIGHT = 5  # repeats that the belief in `REPEAT_SD` is worth
N_PASSES = 20  # of the fit of a scale
OWN_WEIGHT = 1  # what all modes show, in repeats, beside what a mode itself does
FREE = 4  # degrees of freedom: repeats have outliers
LEAST_REPEATS, MOST_REPEATS = 3, 6  # of the answer to a limit; of one mode


@dataclass(frozen=True)
class Goal:
    """Goal of a search: objective, limits, board time."""

    objective: str  # minimise `time` or `energy`
    max_power_w: float | None  # mean power that the answer keeps; None: no limit
    max_s: float  # board time
    max_risk: float = MAX_RISK  # highest probability that its next measurement does not
    max_runs: int | None = None  # of modes, again included; None: as many as there is time for
    max_time_s: float | None = None  # that the answer takes; None: no limit
    other: OtherPower = NOTHING_ELSE  # that counts as energy besides

    @property
    def needs_power(self) -> bool:
        """Whether it cannot be reached without power."""
        return self.objective == "energy" or self.max_power_w is not None

    def aim(self, run: Measured) -> float:
        """Return what to minimise; NaN: not measured."""
        if self.objective == "time":
            return run.time_s
        return self.other.energy_j(run.time_s, run.power_w)

    def in_time(self, run: Measured) -> bool:
        """Return whether a mode was as fast as it has to be."""
        return self.max_time_s is None or run.time_s <= self.max_time_s


class Fits(NamedTuple):
    """Predictors fitted to the modes that were run; power None: not needed."""

    time: Predictor
    power: Predictor | None


class Gains(NamedTuple):
    """Expected gain from running candidates."""

    # (n,), by which part of itself the best answer is expected to fall; infinite while no mode that
    # was run is an answer, zero for those that were run
    gain: Numbers
    keeps: Numbers  # (n,), probability that each keeps the limit; 1 without a limit


class Outlook(NamedTuple):
    """Values of the next epoch in a measured mode, and the risk that it breaks the limit."""

    # `time_s`, and with power `power_w` and `energy_j`: measured value, 90 % interval
    estimates: dict[str, Estimate]
    risk: float | None  # None: there is no limit of power


class Scatter(NamedTuple):
    """Scatter of repeats about each mode's mean: scales of Student's t, relative."""

    scale: Numbers  # (k,)
    n: Numbers  # (k,), runs of each mode

    def next(self, more: int = 0) -> Numbers:
        """Return that of the next run about the mean of those there are, and of `more`."""
        return np.asarray(self.scale * np.sqrt(1 + 1 / (self.n + more)))


def scatter_of(values: Sequence[Numbers]) -> Scatter:
    """Return the scatter of repeats, of the runs of each mode (n,).

    What is believed before any repeat counts, then what all modes show, then what a mode does. The
    likeliest scale of a t distribution, so that a few outliers do not widen it for all.
    """
    n = np.array([len(runs) for runs in values], float)
    off = [np.log(runs / np.exp(np.log(runs).mean())) for runs in values]
    free = [o * np.sqrt(len(o) / (len(o) - 1)) for o in off if len(o) > 1]
    counts = [np.full(len(o), 1 - 1 / len(o)) for o in free]
    empty = np.empty(0)
    pooled = student_scale(
        np.concatenate([empty, *free]),
        REPEAT_SD,
        REPEAT_WEIGHT,
        np.concatenate([empty, *counts]),
    )
    own = np.array([o @ o for o in off])
    own = np.sqrt((OWN_WEIGHT * pooled**2 + own) / (OWN_WEIGHT + n - 1))
    return Scatter(np.maximum(own, pooled), n)


def student_scale(
    off: Numbers, believed: float, weight: float, counts: Numbers | float = 1.0
) -> float:
    """Return the likeliest scale of Student's t of values (m,) about zero, of which each counts.

    What is believed of it counts as much as `weight` values.
    """
    counts = np.broadcast_to(counts, off.shape)
    squared = believed**2
    for _ in range(N_PASSES):
        heavy = counts * (FREE + 1) / (FREE + off**2 / squared)
        squared = (weight * believed**2 + heavy @ off**2) / (weight + counts.sum())
    return float(np.sqrt(squared))


def margin(risk: float) -> float:
    """Return how many scales a limit must be away to be broken with a probability."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(FREE, 1 - risk))


@dataclass
class Profile:
    """A search: what was run, and why it ended."""

    bench: Bench
    goal: Goal
    method: Method
    # modes that were run before, for other questions
    before: list[Measured] = field(default_factory=list)
    ran: list[Measured] = field(default_factory=list)  # modes that were run for this one, in order
    n_first: int | None = None  # how many of these were of the first design; None: it has not ended
    since: int = 0  # how many of these there were when the best mode changed last
    _fitted: tuple[int, Fits] | None = None  # how many modes were known, and their fits
    stop: str = ""  # why no other mode is run, in words; empty: it goes on

    @property
    def measured(self) -> list[Measured]:
        """All modes that are known."""
        return [*self.before, *self.ran]

    @property
    def spent_s(self) -> float:
        """Board time that the question took so far, s."""
        return self.bench.spent_s()

    @property
    def left_s(self) -> float:
        """Board time that is left, s."""
        return self.goal.max_s - self.spent_s

    def modes(self) -> list[Measured]:
        """Return the valid modes, each by the mean of its runs, in the order of the first."""
        return [_mean(runs) for runs in self._runs()]

    def _runs(self) -> list[list[Measured]]:
        by_mode: dict[Mode, list[Measured]] = {}
        for run in self.measured:
            if run.valid:
                by_mode.setdefault(run.mode, []).append(run)
        return list(by_mode.values())

    def scatter(self, name: str = "power_w") -> Scatter:
        """Return how far the next `power_w` or `time_s` of each of the `modes` may be off."""
        return scatter_of([np.array([getattr(run, name) for run in runs]) for runs in self._runs()])

    def risks(self) -> Numbers:
        """Return the probability that the next run of each of the `modes` breaks the limit."""
        from scipy.special import stdtr  # slow to import

        limit_w = self.goal.max_power_w
        if limit_w is None:
            return np.zeros(len(self.modes()))
        mean, scale = self.next_power()
        return np.asarray(stdtr(FREE, (mean - math.log(limit_w)) / scale))

    def next_power(self) -> tuple[Numbers, Numbers]:
        """Return centre and scale of the logarithm of the next power in each of the `modes`.

        A mode's own runs count, and what the model expects of it from all others: each by how sure
        it is. So a mode that was low for once is not believed at once.
        """
        modes, scatter = self.modes(), self.scatter()
        mean, variance = np.log([run.power_w for run in modes]), scatter.scale**2 / scatter.n
        if self.n_first is not None and len(modes) >= LEAST_VALID:
            power = self.fits().power
            left_out = None if power is None else power.left_out()
            if left_out is not None:
                off, sd = left_out
                share = np.minimum(variance / sd**2, 1.0)  # of what it is off that is chance
                mean, variance = mean - share * off, variance * (1 - share)
        return mean, np.sqrt(scatter.scale**2 + variance)

    def kept(self) -> list[Measured]:
        """Return the modes that keep the limit as surely as asked, the best first."""
        most_w = self.goal.max_power_w or math.inf
        pairs = zip(self.modes(), self.risks().tolist(), strict=True)
        kept = [
            run
            for run, risk in pairs
            if risk <= self.goal.max_risk and not run.power_w > most_w and self.goal.in_time(run)
        ]
        return sorted((r for r in kept if not math.isnan(self.goal.aim(r))), key=self.goal.aim)

    @property
    def best(self) -> Measured | None:
        """The best mode that keeps the limit as surely as asked."""
        return next(iter(self.kept()), None)

    def racing_saves(self) -> float | None:
        """Return what it saves to end early and idle until the deadline, beside just meeting it.

        In parts of the answer's energy, as the models expect of the modes that just meet it; None:
        the answer is one of these or costs more, there are none, or nothing idles until a deadline.
        """
        goal, best = self.goal, self.best
        deadline_s = goal.max_time_s
        if best is None or deadline_s is None or not goal.other.idle_w:
            return None
        fits, modes = self.fits(), self.bench.modes
        assert fits.power is not None  # idling counts in an energy
        time_s, power_w = fits.time.predict(modes), fits.power.predict(modes)
        paced = (time_s > PACED * deadline_s) & (time_s <= deadline_s)
        if best.time_s > PACED * deadline_s or not paced.any():
            return None
        saves = float(goal.other.energy_j(time_s, power_w)[paced].min()) / goal.aim(best) - 1
        return saves if saves > 0 else None

    def outlook(self, mode: Mode) -> Outlook:
        """Return intervals of the next run of a measured mode, and its risk."""
        modes = self.modes()
        place = [run.mode for run in modes].index(mode)
        time, run = self.scatter("time_s"), modes[place]
        time_sd = float(np.hypot(time.next()[place], run.time_sd_s / run.time_s))
        sds = {"time_s": time_sd}
        if not math.isnan(run.power_w):
            sds["power_w"] = float(self.scatter().next()[place])
            sds["energy_j"] = math.hypot(*sds.values())
        far, estimates = margin((1 - LEVEL) / 2), {}
        for name, sd in sds.items():
            value = getattr(run, name)
            if name == "energy_j":
                value = self.goal.other.energy_j(run.time_s, run.power_w)
            low, high = (float(value * np.exp(side * far * sd)) for side in (-1, 1))
            estimates[name] = Estimate(value, low, high)
        limited = self.goal.max_power_w is not None
        return Outlook(estimates, float(self.risks()[place]) if limited else None)

    def fits(self) -> Fits:
        """Fit the method to all valid modes. Raises PredictionError: they are too few."""
        if self._fitted is None or self._fitted[0] != len(self.measured):
            rows = self.bench.observations(self.modes())
            fitted = predictors(self.method, rows, [rows], intervals=True)
            fits = Fits(fitted[TIME], fitted.get(POWER) if self.goal.needs_power else None)
            self._fitted = len(self.measured), fits
        return self._fitted[1]


def _mean(runs: Sequence[Measured]) -> Measured:
    """Return the runs of one mode as one: power is that of their energy."""
    time_s = sum(run.time_s for run in runs) / len(runs)
    power_w = sum(run.energy_j for run in runs) / len(runs) / time_s
    time_sd_s = math.hypot(*(run.time_sd_s for run in runs)) / len(runs)
    return runs[0]._replace(time_s=time_s, power_w=power_w, time_sd_s=time_sd_s, n=len(runs))


Say = Callable[[Profile, Measured], None]


def search(profile: Profile, say: Say = lambda profile, run: None) -> None:
    """Run modes until there is a reason not to; `stop` of the profile is that reason.

    Raises EpochwattError: too little time for the first design, no power where it is needed, a
    method that cannot be used here, or what the bench raises; what was run stays in the profile.
    """
    method, bench = profile.method, profile.bench
    reason = ""
    if method.needs_prior:
        reason = "needs a simulation"
    elif method.needs_reference:
        reason = "needs a reference"
    elif profile.goal.needs_power and not {TIME, POWER} <= {*method.targets}:
        reason = "does not predict power"
    if reason:
        raise PredictionError(
            f"{method.name} cannot choose modes to run: it {reason}",
            where="--method",
            do="leave --method out",
        )
    spreads = dict(zip(Mode._fields, np.ptp(bench.modes, axis=0), strict=True))
    if unknown := [name for name, s in spreads.items() if s and name not in method.parts]:
        raise PredictionError(
            f"{method.name} does not know what {', '.join(unknown)} does",
            where="--method",
            do="take gaussian_process, which knows every part of a mode",
        )
    bench.until_s = profile.goal.max_s
    profile.before = bench.earlier()
    _run(profile, _first_design(profile), say)
    profile.n_first = len(profile.ran)
    while not profile.stop:
        if len(profile.ran) >= (profile.goal.max_runs or math.inf):
            profile.stop = f"{counted(len(profile.ran), 'runs')} were allowed"
            return
        mode = _next_mode(profile)
        if mode is not None:
            _run(profile, [mode], say)


def _run(profile: Profile, modes: list[Mode], say: Say) -> None:
    """Run modes one after the other; note why the search stops, if it does."""
    if not modes:
        return
    runs = profile.bench.measure(modes)
    try:
        for run in runs:
            if profile.goal.needs_power and math.isnan(run.power_w):
                limit = profile.goal.max_power_w
                option = "--objective energy" if limit is None else "--max-power-w"
                raise EpochwattError(
                    f"no power was measured, and {option} needs it",
                    where=profile.bench.title,
                    found="no sensor of power, or none that could be read",
                    do="`epochwatt doctor` says which sensors there are; without power, ask for "
                    "the least time without a limit",
                )
            before = profile.best
            profile.ran.append(run)
            best = profile.best
            if best is None or before is None or best.mode != before.mode:
                profile.since = len(profile.ran)
            say(profile, run)
            if all(BUSY in late.flags.split() for late in profile.ran[-N_BUSY:]):
                profile.stop = (
                    "other programs keep this machine busy, so nothing measured now counts; "
                    "end them, then give the same command again"
                )
                return
        if profile.left_s <= 0 and not profile.stop:
            profile.stop = TIME_OVER
    finally:
        runs.close()  # type: ignore[attr-defined]  # ends the workflow at once, also after Ctrl-C


# -- the first modes -------------------------------------------------------------------------------


def _first_design(profile: Profile) -> list[Mode]:
    """Return the modes of the first design, as many as there is time for."""
    bench = profile.bench
    n_known = sum(run.valid for run in profile.before)
    n_left = len(bench.modes) - len(profile.before)
    n = min(max(N_FIRST - n_known, 0), n_left)
    if profile.goal.max_runs is not None:
        n = min(n, max(profile.goal.max_runs // 2, LEAST_FIRST - n_known), profile.goal.max_runs)
        if not profile.before and (np.ptp(bench.modes, axis=0) > 0).sum() >= LEAST_KNOBS:
            return star(bench.modes)[:n]
        n = min(n, LEAST_FIRST)
    if not n:
        return []
    left_s, n_least = profile.left_s, max(min(LEAST_FIRST - n_known, n_left), 1)
    least_s = bench.expected_s(None, n_least)
    if least_s > left_s and n_known < LEAST_FIRST:
        raise EpochwattError(
            f"{left_s / 60:.3g} minutes are too few for the first {counted(n_least, 'modes')}",
            where="--max-minutes",
            found=f"they take about {least_s / 60:.2g} minutes",
            do=f"allow {math.ceil((profile.spent_s + 2 * least_s) / 60)} or more",
        )
    while n > n_least and bench.expected_s(None, n) > SHARE_FIRST * left_s:
        n -= 1
    chosen = first_modes(bench, n, [run.mode for run in profile.before])
    # where the time ends before the design does, the slowest modes are those that are missing
    return sorted(chosen, key=lambda mode: -float(logs(as_rows([mode]))[0, :5].sum()))


def first_modes(bench: Bench, n_modes: int, already: Sequence[Mode] = ()) -> tuple[Mode, ...]:
    """Return modes to begin with, beside those that were run already."""
    modes = bench.modes
    if len(modes) - len(already) <= n_modes:
        ran = set(already)
        return tuple(mode for row in modes.tolist() if (mode := Mode(*row)) not in ran)
    design = design_of_modes(bench.kind, modes, bench.processes)
    if len(modes) > MOST_CANDIDATES:
        thinned = board_design(design.board, bench.processes).candidates
        there = set(map(tuple, np.round(modes, 3).tolist()))
        is_there = [tuple(np.round(row, 3).tolist()) in there for row in thinned]
        if sum(is_there) < MOST_CANDIDATES / 10:  # no product of steps: evenly out of all of them
            places = np.linspace(0, len(modes) - 1, MOST_CANDIDATES).round().astype(int)
            design = replace(design, candidates=modes[places])
        else:
            design = replace(design, candidates=thinned[is_there])
    try:
        chosen = choose_modes(design, n_modes, COST_OF_A_MODE * n_modes, already).modes
    except EpochwattError:  # all modes are slow beside the strongest: no limit then
        chosen = choose_modes(design, n_modes, None, already).modes
    nearest = [int(np.abs(modes - np.array(mode)).sum(1).argmin()) for mode in chosen]
    return tuple(Mode(*modes[place].tolist()) for place in nearest)


def star(modes: Numbers) -> list[Mode]:
    """Return a mode with all cores and clocks in the middle, and each part alone at an end.

    Cores at their fewest, all else at its highest: energy over clocks is a U, and what more or
    fewer cores do to it nobody knows beforehand. The nearest of modes (n, 6) that there are, with
    the whole range of each part as a unit.
    """
    rows = logs(modes)
    low, high = rows.min(0), rows.max(0)
    middle, ends = low + MIDDLE * (high - low), high.copy()
    middle[CORES], ends[CORES] = high[CORES], low[CORES]
    varies = np.flatnonzero(high > low)
    wanted = [middle, *(np.where(np.arange(len(high)) == k, ends, middle) for k in varies)]
    units = np.where(high > low, high - low, 1.0)
    places = [int((((rows - row) / units) ** 2).sum(1).argmin()) for row in wanted]
    return [Mode(*modes[place].tolist()) for place in dict.fromkeys(places)]


# -- the next mode ---------------------------------------------------------------------------------


def _next_mode(profile: Profile) -> Mode | None:
    """Return the mode to run next; None, and `stop` says why: none is worth it.

    Before the end the answer is run again until it is clear of the limit: it was chosen for being
    low, so its first run says too little.
    """
    mode, best = _most_promising(profile), profile.best
    if mode is None and best is not None and profile.goal.max_power_w is not None:
        is_time = profile.bench.expected_s(best.time_s) <= profile.left_s
        if best.n < LEAST_REPEATS and is_time:
            profile.stop, mode = "", best.mode
    return mode


def _most_promising(profile: Profile) -> Mode | None:
    """Return the mode whose next run is worth most; None, and `stop` says why: none is."""
    bench, goal, best = profile.bench, profile.goal, profile.best
    tried = [run.mode for run in profile.measured]
    is_tried = np.zeros(len(bench.modes), bool)
    for mode in tried:
        is_tried |= (bench.modes == np.array(mode)).all(1)
    untried = bench.modes[~is_tried]
    seen = profile.modes()
    if len(seen) < LEAST_VALID:  # another one to learn from
        if len(profile.ran) >= N_FIRST + N_VERIFIED:
            profile.stop = "fewer than two modes count, so nothing can be said of others"
        elif not len(untried):
            profile.stop = "every mode was run"
        elif bench.expected_s(None) > profile.left_s:
            profile.stop = NO_FIT
        return None if profile.stop else first_modes(bench, 1, tried)[0]
    if not len(untried) and goal.max_power_w is None:
        profile.stop = "every mode was run"
        return None
    once = best if best is not None and best.n == 1 and goal.max_power_w is not None else None
    if once is not None and bench.expected_s(once.time_s) <= profile.left_s:
        return once.mode  # once more: it was chosen for one low number
    fits = profile.fits()
    modes, aim = _shortlist(fits, untried, goal)
    promise = gains(fits, modes, profile)
    again = gains_of_repeats(profile)
    times_s = np.concatenate(
        [fits.time.predict(modes) if len(modes) else [], [r.time_s for r in seen]]
    )
    modes = np.concatenate([modes, as_rows([run.mode for run in seen])])
    aim = np.concatenate([aim, [goal.aim(run) for run in seen]])
    gain, keeps = (np.concatenate(both) for both in zip(promise, again, strict=True))
    cost_s = np.array([bench.expected_s(float(t)) for t in times_s])
    left_s = profile.left_s
    if best is not None and goal.max_power_w is not None:  # the answer's own repeats are kept free
        left_s -= bench.expected_s(best.time_s) * max(LEAST_REPEATS - best.n, 0)
    fit_in = cost_s <= left_s
    if not fit_in.any():
        profile.stop = NO_FIT
        return None
    if best is None:  # while none keeps the limit: the best of those that rather do
        keeps = np.where(fit_in, keeps, 0.0)
        likely = keeps >= LIKELY
        place = int(np.where(likely, aim, np.inf).argmin() if likely.any() else keeps.argmax())
        if keeps[place] < HOPELESS:
            profile.stop = "no mode is expected to keep the limit"
            return None
        return Mode(*modes[place].tolist())
    likely = fit_in[: len(promise.keeps)] & (promise.keeps >= LIKELY)
    if goal.max_runs is not None and likely.any():
        return Mode(*modes[int(np.where(likely, aim[: len(likely)], np.inf).argmin())].tolist())
    # candidates that were run since it is the best; the first design does not count
    verified = len(profile.ran) - max(profile.since, profile.n_first or 0) >= N_VERIFIED
    saved_s = gain * HORIZON * goal.max_s
    net_s = np.where(fit_in, saved_s - cost_s, -np.inf)
    if verified:  # what was run may still become an answer
        net_s[: len(promise.gain)] = -np.inf
    place = int(net_s.argmax())
    if net_s[place] > 0:
        return Mode(*modes[place].tolist())
    if verified:
        profile.stop = f"the last {N_VERIFIED} candidates were no better"
    elif goal.max_s == ENDLESS_S:
        profile.stop = "no other mode is expected to be better"
    else:
        profile.stop = (
            f"another mode would take {cost_s[place] / 60:.2g} min and is expected to save "
            f"{saved_s[place] / 60:.2g} min of a training of {HORIZON * goal.max_s / 3600:.3g} h"
        )
    return None


def _expected_aim(fits: Fits, modes: Numbers, goal: Goal) -> Numbers:
    aim = fits.time.predict(modes)
    if goal.objective == "energy" and fits.power is not None:
        aim = np.maximum(goal.other.energy_j(aim, fits.power.predict(modes)), LEAST_SD)
    return aim


def _shortlist(fits: Fits, modes: Numbers, goal: Goal) -> tuple[Numbers, Numbers]:
    """Return the `SHORTLIST` modes (k, 6) most likely to be best, and the expected aim of each.

    First come the modes that may keep the limit of power, then those that exceed it least; among
    equals the lower aim, time or energy.
    """
    if not len(modes):
        return modes, np.empty(0)
    aim = _expected_aim(fits, modes, goal)
    if len(modes) <= SHORTLIST:
        return modes, aim
    excess = np.ones(len(modes))  # of expected power; 1: it may keep the limit
    if fits.power is not None and goal.max_power_w is not None:
        watts = fits.power.predict(modes)
        excess = np.maximum(watts / (HOPEFUL * goal.max_power_w), 1.0)
    first = np.lexsort((aim, excess))[:SHORTLIST]  # by excess, then by aim
    return modes[first], aim[first]


def gains(fits: Fits, candidates: Numbers, profile: Profile) -> Gains:
    """Return what a run of each candidate (n, 6), not run yet, promises over the best answer.

    Keeping the limit, once it is run twice, and being better count as independent. Raises
    PredictionError: a predictor that states no interval, or modes without the power that is needed.
    """
    from scipy.special import ndtr  # slow to import

    def moments(predictor: Predictor) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of the logarithm of an observation, (n,) each."""
        mean, sd = predictor.log_t(candidates)
        return mean, np.maximum(sd, LEAST_SD)

    goal, best, keeps = profile.goal, profile.best, np.ones(len(candidates))
    if not len(candidates):
        return Gains(keeps, keeps)
    if goal.max_power_w is not None and fits.power is not None:
        watts, watts_sd = moments(fits.power)
        scatter = profile.scatter()
        usual = float(np.median(scatter.scale)) * np.sqrt(1 + 1 / 2)
        limit = np.log(goal.max_power_w) - margin(goal.max_risk) * usual
        keeps = np.asarray(ndtr((limit - watts) / watts_sd))
    mean, sd = moments(fits.time)
    if goal.max_time_s is not None:
        keeps = keeps * ndtr((math.log(goal.max_time_s) - mean) / sd)
    if best is None:
        return Gains(np.full(len(candidates), np.inf), keeps)
    if goal.objective == "energy" and fits.power is not None:  # what takes longer draws less
        watts, watts_sd = moments(fits.power)
        seconds, drawn_w = np.exp(mean), np.exp(watts)
        energy_j = np.maximum(goal.other.energy_j(seconds, drawn_w), LEAST_SD)
        by_power = seconds * drawn_w / energy_j * watts_sd  # what each leaves open of the energy
        by_time = (seconds * (drawn_w + goal.other.per_s_w) / energy_j) * sd
        both = 2 * time_with_power(fits.time, fits.power) * by_time * by_power
        mean = np.log(energy_j)
        sd = np.sqrt(np.maximum(by_time**2 + by_power**2 + both, LEAST_SD**2))
    # the mean of what a log-normal value lies below the best one, in parts of that
    log_best = math.log(goal.aim(best))
    z = (log_best - mean) / sd
    saved = ndtr(z) - np.exp(mean - log_best + sd**2 / 2) * ndtr(z - sd)
    return Gains(keeps * saved, keeps)


def gains_of_repeats(profile: Profile) -> Gains:
    """Return what another run of each of the `modes` promises: that it becomes an answer."""
    from scipy.special import ndtr  # slow to import

    goal, best, modes = profile.goal, profile.best, profile.modes()
    none = np.zeros(len(modes))
    if goal.max_power_w is None:
        return Gains(none, none)
    scatter = profile.scatter()
    n = scatter.n
    limit = math.log(goal.max_power_w) - margin(goal.max_risk) * scatter.next(1)
    far = limit - profile.next_power()[0]
    # the mean of one run more lies about the one there is
    keeps = np.where(n < MOST_REPEATS, ndtr(far / (scatter.scale / np.sqrt(n * (n + 1)))), 0.0)
    keeps = np.where(profile.risks() <= goal.max_risk, 0.0, keeps)
    keeps = np.where([goal.in_time(run) for run in modes], keeps, 0.0)
    if best is None:
        return Gains(np.full(len(modes), np.inf), keeps)
    aims = np.array([goal.aim(run) for run in modes])
    return Gains(keeps * np.maximum(1 - aims / goal.aim(best), 0.0), keeps)
