"""Run modes one after the other until another one costs more than it can save.

First come modes of a small design that tells the board's terms apart (`selection.optimal_design`),
then the mode from which the best answer is expected to gain most (expected improvement under a
constraint: Gardner et al., 2014). It is small both where a mode is surely slower and where it
surely breaks the limit, and an answer need not wait for more modes once each costs more than it can
gain.

The answer is a measured mode, but it was measured once. What the next epoch may differ by is the
larger of what is known of repeats, and of what the fitted models call each mode's own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows, logs
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.times_power import predictors, time_with_power
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Method, Predictor
from epochwatt.prediction.profile.bench import BUSY, Bench, Measured
from epochwatt.prediction.recommend.recommend import COST_OF_A_MODE, Estimate
from epochwatt.prediction.selection.optimal_design import (
    board_design,
    choose_modes,
    design_of_modes,
)
from epochwatt.text import counted

N_FIRST = 8  # modes of the first design, if the time suffices; methods know little from fewer
LEAST_FIRST = 4
SHARE_FIRST = 0.5  # of the time, that the first design may take
MOST_CANDIDATES = 1500  # of a design, whose search compares each with each
SHORTLIST = 500  # modes of which it is asked how unsure they are
HOPEFUL = 1.25  # expected power over the limit, up to which a mode is on that list
N_VERIFIED = 5  # candidates in a row that are no better: what is left is not, either
# ASSUME: the mode is for a training that takes this many times what may be spent to find it
HORIZON = 10.0
LIKELY = 0.5  # probability to keep the limit, of the modes that the best is taken of
TIME_OVER = "the time is over"  # while a mode was running
NO_FIT = "the time is over: another mode would not fit in"
LEAST_VALID = 2  # modes that methods can be fitted to
HOPELESS = 0.01  # probability to keep the limit, of the likeliest mode, below which none is run
LEAST_SD = 1e-9  # of a logarithm
N_BUSY = 2  # modes in a row that ran beside other programs end the search

# ASSUME: relative standard deviation of one measurement about the next; epochs and units differ by
# about 1 % (SIGMETRICS 2023, section 5.4). What a sensor is off by all the time is in neither.
REPEAT_SD = 0.01
_FAR = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True)
class Goal:
    """Goal of a search: objective, limit of power, board time."""

    objective: str  # minimise `time` or `energy`
    max_power_w: float | None  # mean power that the answer keeps as measured; None: no limit
    max_s: float  # board time

    @property
    def needs_power(self) -> bool:
        """Whether it cannot be reached without power."""
        return self.objective == "energy" or self.max_power_w is not None

    def aim(self, run: Measured) -> float:
        """Return what to minimise; NaN: not measured."""
        return run.time_s if self.objective == "time" else run.energy_j

    def is_kept(self, run: Measured) -> bool:
        """Return whether a mode may be the answer."""
        kept = self.max_power_w is None or run.power_w <= self.max_power_w
        return run.valid and kept and not math.isnan(self.aim(run))


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


def outlook(
    run: Measured, time: Predictor, power: Predictor | None, max_power_w: float | None
) -> Outlook:
    """Return the outlook of a measured mode."""

    def relative_sd(predictor: Predictor) -> float:
        interval = predictor.interval(as_rows([run.mode]))
        if interval is None:
            return REPEAT_SD
        return max(REPEAT_SD, float(np.log(interval[1] / interval[0])[0]) / (2 * _FAR))

    def estimate(value: float, sd: float) -> Estimate:
        return Estimate(value, float(value * np.exp(-_FAR * sd)), float(value * np.exp(_FAR * sd)))

    time_sd = float(np.hypot(relative_sd(time), run.time_sd_s / run.time_s))
    estimates = {"time_s": estimate(run.time_s, time_sd)}
    if power is None:
        return Outlook(estimates, None)
    power_sd = relative_sd(power)
    estimates["power_w"] = estimate(run.power_w, power_sd)
    estimates["energy_j"] = estimate(run.energy_j, float(np.hypot(time_sd, power_sd)))
    if max_power_w is None:
        return Outlook(estimates, None)
    return Outlook(estimates, NormalDist().cdf(np.log(run.power_w / max_power_w) / power_sd))


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

    def kept(self) -> list[Measured]:
        """Return the measured modes that keep the limit, the best first."""
        return sorted(filter(self.goal.is_kept, self.measured), key=self.goal.aim)

    @property
    def best(self) -> Measured | None:
        """The best measured mode that keeps the limit."""
        return next(iter(self.kept()), None)

    def outlook(self, run: Measured) -> Outlook:
        """Return intervals and risk of a measured mode."""
        fits = self.fits()
        return outlook(run, fits.time, fits.power, self.goal.max_power_w)

    def fits(self) -> Fits:
        """Fit the method to all valid modes. Raises PredictionError: they are too few."""
        rows = self.bench.observations(self.measured)
        fitted = predictors(self.method, rows, [rows], intervals=True)
        return Fits(fitted[TIME], fitted.get(POWER) if self.goal.needs_power else None)


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
            profile.ran.append(run)
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


# -- the next mode ---------------------------------------------------------------------------------


def _next_mode(profile: Profile) -> Mode | None:
    """Return the mode to run next; None, and `stop` says why: none is worth it."""
    bench, goal, best = profile.bench, profile.goal, profile.best
    tried = [run.mode for run in profile.measured]
    known = set(map(tuple, as_rows(tried).tolist())) if tried else set()
    untried = bench.modes[[row not in known for row in map(tuple, bench.modes.tolist())]]
    if not len(untried):
        profile.stop = "every mode was run"
        return None
    if sum(run.valid for run in profile.measured) < LEAST_VALID:  # another one to learn from
        if len(profile.ran) >= N_FIRST + N_VERIFIED:
            profile.stop = "fewer than two modes count, so nothing can be said of others"
        elif bench.expected_s(None) > profile.left_s:
            profile.stop = NO_FIT
        return None if profile.stop else first_modes(bench, 1, tried)[0]
    if best is not None:  # how many candidates were run after it; the first design does not count
        since = max([n + 1 for n, run in enumerate(profile.ran) if run is best], default=0)
        if len(profile.ran) - max(since, profile.n_first or 0) >= N_VERIFIED:
            profile.stop = f"the last {N_VERIFIED} candidates were no better"
            return None
    fits = profile.fits()
    modes, aim = _shortlist(fits, untried, goal)
    rows = bench.observations(profile.measured)
    promise = gains(fits, modes, rows, goal)
    cost_s = np.array([bench.expected_s(float(t)) for t in fits.time.predict(modes)])
    fit_in = cost_s <= profile.left_s
    if not fit_in.any():
        profile.stop = NO_FIT
        return None
    if best is None:  # while none keeps the limit: the best of those that rather do
        keeps = np.where(fit_in, promise.keeps, 0.0)
        likely = keeps >= LIKELY
        place = int(np.where(likely, aim, np.inf).argmin() if likely.any() else keeps.argmax())
        if keeps[place] < HOPELESS:
            profile.stop = "no mode is expected to keep the limit"
            return None
        return Mode(*modes[place].tolist())
    saved_s = promise.gain * HORIZON * goal.max_s
    net_s = np.where(fit_in, saved_s - cost_s, -np.inf)
    place = int(net_s.argmax())
    if net_s[place] <= 0:
        profile.stop = (
            f"another mode would take {cost_s[place] / 60:.2g} min and is expected to save "
            f"{saved_s[place] / 60:.2g} min of a training of {HORIZON * goal.max_s / 3600:.3g} h"
        )
        return None
    return Mode(*modes[place].tolist())


def _shortlist(fits: Fits, modes: Numbers, goal: Goal) -> tuple[Numbers, Numbers]:
    """Return the `SHORTLIST` modes (k, 6) most likely to be best, and the expected aim of each.

    First come the modes that may keep the limit of power, then those that exceed it least; among
    equals the lower aim, time or energy.
    """
    aim = fits.time.predict(modes)
    watts = None if fits.power is None else fits.power.predict(modes)
    if goal.objective == "energy" and watts is not None:
        aim = aim * watts
    if len(modes) <= SHORTLIST:
        return modes, aim
    excess = np.ones(len(modes))  # of expected power; 1: it may keep the limit
    if watts is not None and goal.max_power_w is not None:
        excess = np.maximum(watts / (HOPEFUL * goal.max_power_w), 1.0)
    first = np.lexsort((aim, excess))[:SHORTLIST]  # by excess, then by aim
    return modes[first], aim[first]


def gains(fits: Fits, candidates: Numbers, ran: Observations, goal: Goal) -> Gains:
    """Return what a run of each candidate (n, 6) promises over the best mode that was run.

    Keeping the limit and being better count as independent. Raises PredictionError: a predictor
    that states no interval, or modes without the power that is needed.
    """
    from scipy.special import ndtr  # slow to import

    def moments(predictor: Predictor) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of the logarithm of an observation, (n,) each."""
        mean, sd = predictor.log_normal(candidates)
        return mean, np.maximum(sd, LEAST_SD)

    known = set(ran.mode_of_row)
    is_new = np.array([Mode(*row) not in known for row in candidates.tolist()], bool)
    means, keeps = ran.per_mode(), np.ones(len(candidates))
    kept = np.ones(len(means.modes), bool)
    if goal.max_power_w is not None and fits.power is not None:
        means.need_energy()
        watts, watts_sd = moments(fits.power)
        keeps = np.asarray(ndtr((np.log(goal.max_power_w) - watts) / watts_sd))
        kept = means.power_w <= goal.max_power_w
    if not kept.any():
        return Gains(np.where(is_new, np.inf, 0.0), keeps)
    values, (mean, sd) = means.time_s, moments(fits.time)
    if goal.objective == "energy" and fits.power is not None:  # what takes longer draws less
        watts, watts_sd = moments(fits.power)
        both = 2 * time_with_power(fits.time, fits.power) * sd * watts_sd
        mean, values = mean + watts, means.power_w * means.time_s
        sd = np.sqrt(np.maximum(sd**2 + watts_sd**2 + both, LEAST_SD**2))
    # the mean of what a log-normal value lies below the best one, in parts of that
    log_best = float(np.log(values[kept].min()))
    z = (log_best - mean) / sd
    saved = ndtr(z) - np.exp(mean - log_best + sd**2 / 2) * ndtr(z - sd)
    return Gains(np.where(is_new, keeps * saved, 0.0), keeps)
