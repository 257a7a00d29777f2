"""Choose the best power mode of a board within budgets, of all that its own tables allow.

`best_mode` takes the mode whose expected values keep the budgets. The best of thousands of modes
that are expected to keep a limit is one about which the model is too hopeful (the winner's curse):
on real boards every second one breaks it. So its risk is judged as that of a selection: each fit
that agrees with the observations about as well chooses as it alone would, and all others judge its
choice. `safe_mode` keeps a limit of power with a probability, by intervals that hold. Where the
choices of all fits break the limit more often than is allowed, each mode must be safer than that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.analysis.pareto import pareto_front
from epochwatt.columns import unit
from epochwatt.prediction.data.modes import Board, Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.models.residual_gp import distances
from epochwatt.prediction.models.times_power import sample_both
from epochwatt.prediction.predictor import LEVEL, Predictor, bounds
from epochwatt.text import counted

LEAST_MODES = 4  # as many as the paper profiles; with fewer the model is little but belief
COST_OF_A_MODE = 2.5  # limit for modes to profile, on average, in epochs of the strongest mode
EQUAL = 1e-3  # far below the error of any model: modes that differ by less are as good
STRICTER = tuple(0.5**n for n in range(7))  # than what is allowed, of each mode
OPTIONS = {  # budget -> option of the command
    name: f"--max-{name.replace('_', '-')}" for name in ("power_w", "epoch_s", "energy_wh")
}

Expected = Mapping[str, Numbers]  # epoch_s, and where known power_w and energy_wh, each (n,)


class Estimate(NamedTuple):
    """Expected value, and bounds that hold a run's mean as probably as stated, where known."""

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> str:
        """The bounds in words."""
        return "none" if self.low is None else f"{self.low:.4g} to {self.high:.4g}"


class FrontMode(NamedTuple):
    """A mode that no other beats in both time and energy."""

    mode: Mode
    epoch_s: float
    power_w: float
    energy_wh: float


class Choice(NamedTuple):
    """The mode that was chosen of those that were given."""

    place: int
    n_within: int  # how many keep the budgets
    # budget -> probability that an epoch breaks it: of the mode itself where it was profiled, else
    # of modes that are chosen as it was; none without intervals
    risks: Mapping[str, float]


@dataclass(frozen=True)
class Recommendation:
    """The mode to take, and why."""

    mode: Mode  # one of the board's own
    estimates: Mapping[str, Estimate]  # epoch_s and, with a model of power, power_w, energy_wh
    risks: Mapping[str, float]  # as of `Choice`
    extrapolated: tuple[str, ...]  # parts of the mode that lie outside all profiled modes
    n_modes: int  # of the board
    n_within: int
    # modes that none beats in both time and energy, the fastest first; budgets left aside; none
    # without a model of power
    front: tuple[FrontMode, ...]


def recommend(
    board: Board,
    time: Predictor,
    power: Predictor | None,
    objective: str,
    budgets: Mapping[str, float],
    level: float = LEVEL,
    max_risk: float | None = None,
) -> Recommendation:
    """Recommend the best mode of a board.

    Raises EpochwattError: too few profiled modes (names modes to profile), a profiled mode that the
    tables lack, an objective or budget that needs energy that was not measured, or budgets that no
    mode keeps.

    Parameters
    ----------
    power : None: energy was not measured
    objective : minimise `time`, `energy`, or `edp`: energy times time
    budgets : highest expected `power_w`, `epoch_s`, `energy_wh`; those that are set
    level : of the intervals
    max_risk : highest probability that the budget of power is broken; None: it is expected to hold
    """
    needing = [] if objective == "time" else [f"the objective {objective}"]
    needing += [OPTIONS[name] for name in budgets if name != "epoch_s"]
    if power is None and needing:
        raise PredictionError(
            "energy was not measured in every epoch of this workload, and "
            f"{' and '.join(needing)} {'need' if len(needing) > 1 else 'needs'} it",
            allowed=f"--objective time and {OPTIONS['epoch_s']}",
        )
    models = [on_steps(board, model) for model in (time, power) if model is not None]
    modes = board.all_modes()
    if max_risk is None:
        fits = [model.fits(modes) for model in models]
        expected = _with_energy(*(fit.mean(1) for fit in fits))
        choice = best_mode(modes, expected, models[0].trained_on, objective, budgets)
        choice = choice._replace(risks=_risks(choice, models, modes, fits, objective, budgets))
    else:
        if objective != "time" or budgets.keys() != {"power_w"} or power is None:
            raise PredictionError(
                "--max-risk works only for the fastest mode within a limit of power",
                found=" and ".join([f"least {objective}", *(OPTIONS[name] for name in budgets)]),
                allowed=f"{OPTIONS['power_w']}, no other limit, and the objective time",
            )
        choice = safe_mode(models[0], models[1], modes, budgets["power_w"], max_risk)
        expected = _with_energy(*(model.mean(modes) for model in models))
    mode = Mode(*modes[choice.place].tolist())
    samples = _samples(models, modes[choice.place : choice.place + 1])
    estimates = {}
    for name, values in expected.items():
        low_high = bounds(samples[name], level) if name in samples else None
        ends = (None, None) if low_high is None else (float(end[0]) for end in low_high)
        estimates[name] = Estimate(float(values[choice.place]), *ends)
    low = np.max([model.trained_on.min(0) for model in models], axis=0)
    high = np.min([model.trained_on.max(0) for model in models], axis=0)
    parts = zip(Mode._fields, mode, low, high, strict=True)
    front: list[FrontMode] = []
    if "energy_wh" in expected:
        places = pareto_front(expected["epoch_s"], expected["energy_wh"])
        columns = (expected[name][places].tolist() for name in ("epoch_s", "power_w", "energy_wh"))
        rows = zip(modes[places].tolist(), *columns, strict=True)
        front = [FrontMode(Mode(*parts_of_mode), *values) for parts_of_mode, *values in rows]
    return Recommendation(
        mode=mode,
        estimates=estimates,
        risks=choice.risks,
        extrapolated=tuple(name for name, part, a, b in parts if not a <= part <= b),
        n_modes=len(modes),
        n_within=choice.n_within,
        front=tuple(front),
    )


def best_mode(
    modes: Numbers,
    expected: Expected,
    profiled: Numbers,
    objective: str,
    budgets: Mapping[str, float],
) -> Choice:
    """Choose the best of some modes (n, 6) within budgets.

    Among equally good modes the one that needs less energy; among those that are equal in both (to
    `EQUAL`) the one nearest to what was profiled (m, 6), where models are most accurate: best of
    all a profiled one. Raises PredictionError: no mode keeps the budgets.
    """
    keeps = {name: expected[name] <= most for name, most in budgets.items()}
    for name, kept in keeps.items():
        if not kept.any():
            place = int(expected[name].argmin())
            raise PredictionError(
                f"no mode keeps {OPTIONS[name]} {budgets[name]:g}",
                allowed=f"{expected[name][place]:.4g} {unit(name)} or more, expected of "
                f"{Mode(*modes[place].tolist())}",
            )
    within = np.flatnonzero(np.logical_and.reduce([np.ones(len(modes), bool), *keeps.values()]))
    if not len(within):
        options = " and ".join(f"{OPTIONS[name]} {most:g}" for name, most in budgets.items())
        raises = []
        for name in keeps:  # the lowest value of modes that keep all others
            others = [kept for other, kept in keeps.items() if other != name]
            values = expected[name][np.logical_and.reduce(others)]
            if len(values):
                raises.append(f"raise {OPTIONS[name]} to {values.min():.4g} or more")
        raise PredictionError(
            f"each budget is kept by some mode, but no mode keeps {options} together",
            do=", or ".join(raises) or "raise two of them or more",
        )
    energy_wh = expected.get("energy_wh", np.zeros(len(modes)))  # of no account where not known
    aim = _aim(objective, expected)
    order = within[np.lexsort((energy_wh[within], np.round(aim[within] / aim.min(), 9)))]
    is_equal = np.logical_and.reduce(
        [values[order] <= (1 + EQUAL) * values[order[0]] for values in (aim, energy_wh)]
    )
    equal = order[is_equal]
    return Choice(int(equal[distances(modes[equal], profiled).argmin()]), len(within), {})


def _aim(objective: str, expected: Expected) -> Numbers:
    """Return what to minimise, shape (n,)."""
    epoch_s, energy_wh = expected["epoch_s"], expected.get("energy_wh", expected["epoch_s"])
    return {"time": epoch_s, "energy": energy_wh, "edp": epoch_s * energy_wh}[objective]


def _risks(
    choice: Choice,
    models: Sequence[Predictor],
    modes: Numbers,
    fits: Sequence[Numbers],
    objective: str,
    budgets: Mapping[str, float],
) -> dict[str, float]:
    """Return the risks of a choice; `fits`: what each expects of each mode (n, d), time and power.

    They are those of the mode itself where it was profiled, else of the choices of all fits.
    """
    places: list[int] = []
    if budgets and modes[choice.place].tolist() not in models[0].trained_on.tolist():
        for values in zip(*(fit.T for fit in _as_many(fits)), strict=True):
            expected = _with_energy(*values)
            keeps = np.logical_and.reduce([expected[n] <= most for n, most in budgets.items()])
            if keeps.any():
                places.append(int(np.where(keeps, _aim(objective, expected), np.inf).argmin()))
    samples = _samples(models, modes[places or [choice.place]])
    there = {name: most for name, most in budgets.items() if name in samples}
    return {name: float((samples[name] > most).mean()) for name, most in there.items()}


def _as_many(fits: Sequence[Numbers]) -> list[Numbers]:
    """Return as many fits (n, d) of each quantity; one that has a single fit repeats it."""
    n_fits = min((fit.shape[1] for fit in fits if fit.shape[1] > 1), default=1)
    return [np.broadcast_to(fit[:, :n_fits], (len(fit), n_fits)) for fit in fits]


def safe_mode(
    time: Predictor,
    power: Predictor,
    modes: Numbers,
    max_power_w: float,
    max_risk: float,
    over_w: float = 0.0,
) -> Choice:
    """Choose the mode (n, 6) of least expected time that keeps a limit of power as surely as asked.

    Its risk is that it breaks the limit by more than `over_w`, or that modes chosen as it was do:
    the larger one. Raises PredictionError: no mode is safe enough, the predictor of power knows no
    intervals, or `max_risk` is not above 0 and up to 0.5.
    """
    from scipy.special import ndtr  # slow to import

    if not 0 < max_risk <= 0.5:
        raise PredictionError(
            f"a risk of {max_risk:g}", allowed="above 0, up to 0.5; 0.05 is one answer in twenty"
        )
    mean, sd = power.log_normal(modes)
    limit = float(np.log(max_power_w + over_w))
    risks = np.asarray(ndtr(-((limit - mean) / np.maximum(sd, np.finfo(float).tiny))))
    seconds, watts = _as_many([time.fits(modes), power.fits(modes)])
    allowed, of_choices = max_risk, 0.0
    for part in STRICTER:
        allowed = part * max_risk
        far = NormalDist().inv_cdf(1 - allowed) * sd[:, None]
        safe = np.log(watts) + far <= limit
        places = np.where(safe, seconds, np.inf).argmin(0)[safe.any(0)]
        of_choices = float(risks[places].mean()) if len(places) else 0.0
        if of_choices <= max_risk:
            break
    within = np.flatnonzero(risks <= allowed)
    if not len(within):
        raise PredictionError(
            f"no mode keeps {max_power_w:g} W with a risk of {max_risk:g}",
            found=f"{risks.min():.2g} is the least risk of any mode",
            do="profile more modes, raise the limit, or accept a higher risk",
        )
    place = int(within[time.mean(modes)[within].argmin()])
    return Choice(place, len(within), {"power_w": float(max(risks[place], of_choices))})


def _with_energy(epoch_s: Numbers, power_w: Numbers | None = None) -> dict[str, Numbers]:
    """Return time alone, or time, power and their product."""
    if power_w is None:
        return {"epoch_s": epoch_s}
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def _samples(models: Sequence[Predictor], modes: Numbers) -> dict[str, Numbers]:
    """Return what epochs may be in each mode, shape (d, n) each; empty without intervals."""
    if len(models) == 1:
        seconds = models[0].sample(modes)
        return {} if seconds is None else _with_energy(seconds)
    both = sample_both(models[0], models[1], modes)
    return {} if both is None else _with_energy(*both)


def on_steps(board: Board, model: Predictor) -> Predictor:
    """Return a predictor whose profiled modes are the board's own: runs may state nominal clocks.

    Raises EpochwattError: they are too few, or none of the board's.
    """
    profiled = [board.resolve(Mode(*row)) for row in model.trained_on.tolist()]
    distinct = list(dict.fromkeys(profiled))
    if len(distinct) < LEAST_MODES:
        further = "\n    ".join(map(str, modes_to_measure(board, profiled=distinct)))
        raise PredictionError(
            f"the predictor of {model.target} knows too few power modes of {board.kind}",
            found=counted(len(distinct), "modes"),
            allowed=f"{LEAST_MODES} or more",
            do=f"profile\n    {further}",
        )
    return replace(model, trained_on=as_rows(profiled))  # type: ignore[type-var]


def modes_to_measure(
    board: Board, processes: int = PROCESSES, profiled: Sequence[Mode] = ()
) -> tuple[Mode, ...]:
    """Return modes to profile besides those that are, until there are enough to recommend one."""
    from epochwatt.prediction.selection.optimal_design import board_design, choose_modes

    n_modes = LEAST_MODES - len(profiled)
    design = board_design(board, processes=processes)
    return choose_modes(design, n_modes, max_cost=COST_OF_A_MODE * n_modes, already=profiled).modes
