"""Run modes one after the other until another one costs more than it can save.

The answer is a measured mode, but it was measured once. What the next epoch may differ by is the
larger of what is known of repeats, and of what the fitted models call each mode's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows, logs
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Method, Predictor
from epochwatt.prediction.profile.bench import BUSY, Bench, Measured
from epochwatt.prediction.profile.candidates import first_modes, shortlist, untried
from epochwatt.prediction.recommend.recommend import Estimate
from epochwatt.prediction.selection.active import gains
from epochwatt.text import counted

N_FIRST = 8  # modes of the first design, if the time suffices; methods know little from fewer
LEAST_FIRST = 4
SHARE_FIRST = 0.5  # of the time, that the first design may take
N_VERIFIED = 5  # candidates in a row that are no better: what is left is not, either
# ASSUME: the mode is for a training that takes this many times what may be spent to find it
HORIZON = 10.0
LIKELY = 0.5  # probability to keep the limit, of the modes that the best is taken of
TIME_OVER = "the time is over"  # while a mode was running
LEAST_VALID = 2  # modes that methods can be fitted to
HOPELESS = 0.01  # probability to keep the limit, of the likeliest mode, below which none is run
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

    def aim(self, one: Measured) -> float:
        """Return what to minimise; NaN: not measured."""
        return one.time_s if self.objective == "time" else one.energy_j

    def is_kept(self, one: Measured) -> bool:
        """Return whether a mode may be the answer."""
        kept = self.max_power_w is None or one.power_w <= self.max_power_w
        return one.valid and kept and not math.isnan(self.aim(one))


class Fits(NamedTuple):
    """Predictors fitted to the modes that were run; power None: not needed."""

    time: Predictor
    power: Predictor | None


class Outlook(NamedTuple):
    """Values of the next epoch in a measured mode, and the risk that it breaks the limit."""

    # `time_s`, and with power `power_w` and `energy_j`: measured value, 90 % interval
    estimates: dict[str, Estimate]
    risk: float | None  # None: there is no limit of power


def outlook(
    one: Measured, time: Predictor, power: Predictor | None, max_power_w: float | None
) -> Outlook:
    """Return the outlook of a measured mode."""
    time_sd = float(np.hypot(_sd(time, one), one.time_sd_s / one.time_s))
    estimates = {"time_s": _estimate(one.time_s, time_sd)}
    if power is None:
        return Outlook(estimates, None)
    power_sd = _sd(power, one)
    estimates["power_w"] = _estimate(one.power_w, power_sd)
    estimates["energy_j"] = _estimate(one.energy_j, float(np.hypot(time_sd, power_sd)))
    if max_power_w is None:
        return Outlook(estimates, None)
    return Outlook(estimates, NormalDist().cdf(np.log(one.power_w / max_power_w) / power_sd))


def _sd(predictor: Predictor, one: Measured) -> float:
    """Return the relative standard deviation of another measurement of the mode."""
    interval = predictor.interval(as_rows([one.mode]))
    if interval is None:
        return REPEAT_SD
    return max(REPEAT_SD, float(np.log(interval[1] / interval[0])[0]) / (2 * _FAR))


def _estimate(value: float, sd: float) -> Estimate:
    return Estimate(value, float(value * np.exp(-_FAR * sd)), float(value * np.exp(_FAR * sd)))


@dataclass
class Profile:
    """A search: what was run, and why it ended.

    Attributes
    ----------
    spent_s : board time of the question so far
    """

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

    def kept(self) -> list[Measured]:
        """Return the measured modes that keep the limit, the best first."""
        return sorted(filter(self.goal.is_kept, self.measured), key=self.goal.aim)

    @property
    def best(self) -> Measured | None:
        """The best measured mode that keeps the limit."""
        return next(iter(self.kept()), None)

    def outlook(self, one: Measured) -> Outlook:
        """Return intervals and risk of a measured mode."""
        fits = self.fits()
        return outlook(one, fits.time, fits.power, self.goal.max_power_w)

    def fits(self) -> Fits:
        """Fit the method to all valid modes. Raises PredictionError: they are too few."""
        rows = self.bench.observations(self.measured)
        fitted = predictors(self.method, rows, [rows], intervals=True)
        return Fits(fitted[TIME], fitted.get(POWER) if self.goal.needs_power else None)


Say = Callable[[Profile, Measured], None]


def search(profile: Profile, say: Say = lambda profile, one: None) -> None:
    """Run modes until there is a reason not to; `stop` of the profile is that reason.

    Raises EpochwattError: too little time for the first design, no power where it is needed, a
    method that cannot be used here, or what the bench raises; what was run stays in the profile.
    """
    _check_method(profile)
    profile.bench.until_s = profile.goal.max_s
    profile.before = profile.bench.earlier()
    _run(profile, _first(profile), say)
    profile.n_first = len(profile.ran)
    while not profile.stop:
        mode = _next(profile)
        if mode is not None:
            _run(profile, [mode], say)


def _check_method(profile: Profile) -> None:
    method, modes = profile.method, profile.bench.modes
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
    varied = [
        name for name, spread in zip(Mode._fields, np.ptp(modes, axis=0), strict=True) if spread
    ]
    if unknown := [name for name in varied if name not in method.parts]:
        raise PredictionError(
            f"{method.name} does not know what {', '.join(unknown)} does",
            where="--method",
            do="take gaussian_process, which knows every part of a mode",
        )


def _first(profile: Profile) -> list[Mode]:
    """Return the modes of the first design, as many as there is time for."""
    bench, goal = profile.bench, profile.goal
    n_known = sum(one.valid for one in profile.before)
    n_left = len(bench.modes) - len(profile.before)
    n_wanted = min(max(N_FIRST - n_known, 0), n_left)
    if not n_wanted:
        return []
    left_s = goal.max_s - bench.spent_s()
    n_least = max(min(LEAST_FIRST - n_known, n_left), 1)
    least_s = bench.expected_s(None, n_least)
    if least_s > left_s and n_known < LEAST_FIRST:
        raise EpochwattError(
            f"{left_s / 60:.3g} minutes are too few for the first {counted(n_least, 'modes')}",
            where="--max-minutes",
            found=f"they take about {least_s / 60:.2g} minutes",
            do=f"allow {math.ceil((bench.spent_s() + 2 * least_s) / 60)} or more",
        )
    n = n_wanted
    while n > n_least and bench.expected_s(None, n) > SHARE_FIRST * left_s:
        n -= 1
    tried = [one.mode for one in profile.before]
    chosen = first_modes(bench.kind, bench.modes, bench.processes, n, tried)
    # where the time ends before the design does, the slowest modes are those that are missing
    return sorted(chosen, key=lambda mode: -float(logs(as_rows([mode]))[0, :5].sum()))


def _run(profile: Profile, modes: list[Mode], say: Say) -> None:
    if not modes:
        return
    runs = profile.bench.measure(modes)
    try:
        for one in runs:
            if profile.goal.needs_power and math.isnan(one.power_w):
                raise _no_power(profile)
            profile.ran.append(one)
            say(profile, one)
            if all(BUSY in late.flags.split() for late in profile.ran[-N_BUSY:]):
                profile.stop = (
                    "other programs keep this machine busy, so nothing measured now counts; "
                    "end them, then give the same command again"
                )
                return
        if profile.spent_s >= profile.goal.max_s and not profile.stop:
            profile.stop = TIME_OVER
    finally:
        runs.close()  # type: ignore[attr-defined]  # ends the workflow at once, also after Ctrl-C


def _no_power(profile: Profile) -> EpochwattError:
    option = "--objective energy" if profile.goal.max_power_w is None else "--max-power-w"
    return EpochwattError(
        f"no power was measured, and {option} needs it",
        where=profile.bench.title,
        found="no sensor of power, or none that could be read",
        do="`epochwatt doctor` says which sensors there are; without power, ask for the least time "
        "without a limit",
    )


def _next(profile: Profile) -> Mode | None:
    """Return the mode to run next; None, and `stop` says why: none is worth it."""
    bench, goal, best = profile.bench, profile.goal, profile.best
    left = untried(bench.modes, [one.mode for one in profile.measured])
    if not len(left):
        profile.stop = "every mode was run"
        return None
    if sum(one.valid for one in profile.measured) < LEAST_VALID:
        return _another_first(profile)
    if best is not None and _n_in_vain(profile) >= N_VERIFIED:
        profile.stop = f"the last {N_VERIFIED} candidates were no better"
        return None
    fits = profile.fits()
    modes = shortlist(fits.time, fits.power, left, goal.objective, goal.max_power_w)
    rows = bench.observations(profile.measured)
    promise = gains(fits.time, fits.power, modes, rows, goal.max_power_w, goal.objective)
    cost_s = np.array([bench.expected_s(float(t)) for t in fits.time.predict(modes)])
    fit_in = cost_s <= goal.max_s - bench.spent_s()
    if not fit_in.any():
        profile.stop = "the time is over: another mode would not fit in"
        return None
    if best is None:
        return _to_keep(profile, modes, np.where(fit_in, promise.keeps, 0.0), fits)
    saved_s = promise.gain * HORIZON * goal.max_s
    net_s = np.where(fit_in, saved_s - cost_s, -np.inf)
    place = int(net_s.argmax())
    if net_s[place] <= 0:
        profile.stop = (
            f"another mode would take {_minutes(cost_s[place])} and is expected to save "
            f"{_minutes(saved_s[place])} of a training of {HORIZON * goal.max_s / 3600:.3g} h"
        )
        return None
    return Mode(*modes[place].tolist())


def _another_first(profile: Profile) -> Mode | None:
    """Return a mode to learn from, where too few of the first ones count."""
    bench, tried = profile.bench, [one.mode for one in profile.measured]
    if len(profile.ran) >= N_FIRST + N_VERIFIED:
        profile.stop = "fewer than two modes count, so nothing can be said of others"
        return None
    if bench.expected_s(None) > profile.goal.max_s - bench.spent_s():
        profile.stop = "the time is over: another mode would not fit in"
        return None
    return first_modes(bench.kind, bench.modes, bench.processes, 1, tried)[0]


def _n_in_vain(profile: Profile) -> int:
    """Return how many candidates were run after the best mode; the first design does not count."""
    places = [n for n, one in enumerate(profile.ran) if one is profile.best]
    since = max(places[0] + 1 if places else 0, profile.n_first or 0)
    return len(profile.ran) - since


def _to_keep(profile: Profile, modes: Numbers, keeps: Numbers, fits: Fits) -> Mode | None:
    """Return the mode to run while none keeps the limit: the best of those that rather do.

    Parameters
    ----------
    keeps : (n,), probability that each keeps it; 0 where there is no time for it
    """
    aim = fits.time.predict(modes)
    if profile.goal.objective == "energy" and fits.power is not None:
        aim = aim * fits.power.predict(modes)
    likely = keeps >= LIKELY
    place = int(np.where(likely, aim, np.inf).argmin() if likely.any() else keeps.argmax())
    if keeps[place] < HOPELESS:
        profile.stop = "no mode is expected to keep the limit"
        return None
    return Mode(*modes[place].tolist())


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.2g} min"
