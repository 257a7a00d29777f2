"""Choose the best power mode of a board within budgets, of all that its own tables allow.

`best_mode` takes the mode whose expected values keep the budgets. Of a limit of power that is not
enough: the best of thousands of modes that are expected to keep it is one about which the model is
too hopeful (the winner's curse), and on real boards every second one breaks it. So `safe_mode`
keeps it with a probability, `MAX_RISK` where none is asked for: that of a mode which was chosen of
many (`Predictor.risk`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.analysis.pareto import pareto_front
from epochwatt.columns import CLOCKS, unit
from epochwatt.prediction.data.modes import Board, Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.models.residual_gp import distances
from epochwatt.prediction.models.times_power import TimesPower, sample_both
from epochwatt.prediction.predictor import LEVEL, Predictor, bounds
from epochwatt.sweeps.other_power import PACED, OtherPower
from epochwatt.text import counted

LEAST_MODES = 4  # as many as the paper profiles; with fewer the model is little but belief
COST_OF_A_MODE = 2.5  # limit for modes to profile, on average, in epochs of the strongest mode
EQUAL = 1e-3  # far below the error of any model: modes that differ by less are as good
MAX_RISK = 0.1  # where none is asked for
AS_EXPECTED = 0.5  # the risk at which expected values keep the budgets
# ASSUME: relative standard deviation of one measurement about the next; epochs and units differ by
# about 1 % (SIGMETRICS 2023, section 5.4). A mode of which one repeat is known is not known better.
# What a sensor is off by all the time is not in it.
REPEAT_SD = 0.01
# How many times below the lowest profiled memory clock a mode may be. What memory costs hides
# behind other parts at high clocks: from four modes, times at a quarter of the lowest clock and
# below were half off in the median, and intervals of 90 % held half of them (synthetic boards whose
# times differ by a factor of 16 to 47).
REACH = 2.0
MEMORY = CLOCKS.index("emc_mhz")
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


class LeastEnergy(NamedTuple):
    """The mode that costs least energy, beside the fastest one within the budgets."""

    mode: Mode
    energy_part: float  # of its energy over the fastest mode's
    time_part: float  # of its time over the fastest mode's


class Choice(NamedTuple):
    """The mode that was chosen of those that were given."""

    place: int
    n_within: int  # how many keep the budgets
    # budget -> probability that an epoch breaks it, as of `Predictor.risk`; none without intervals
    risks: Mapping[str, float]


@dataclass(frozen=True)
class Recommendation:
    """The mode to take, and why."""

    mode: Mode  # one of the board's own
    estimates: Mapping[str, Estimate]  # epoch_s and, with a model of power, power_w, energy_wh
    risks: Mapping[str, float]  # as of `Choice`
    extrapolated: tuple[str, ...]  # parts of the mode that lie outside all profiled modes
    fixed: tuple[str, ...]  # parts that are the same in all profiled modes, and so in the answer
    n_modes: int  # that were considered
    n_out_of_reach: int  # that were not, for their low memory clock
    n_within: int
    # modes that none beats in both time and energy, the fastest first; budgets left aside; none
    # without a model of power
    front: tuple[FrontMode, ...]
    # by which part the aim is worse than that of the mode that is expected to keep all budgets, and
    # the risk of that mode; None: it is that mode
    costs: tuple[float, float] | None = None
    is_safe: bool = True  # whether its risk is as low as was asked for
    least: "LeastEnergy | None" = None  # beside the mode that costs least energy; None: not known
    # by which part more energy than the least, until a deadline, a mode costs that just meets it;
    # None: that is the least, or there is no deadline
    racing_saves: float | None = None


def recommend(
    board: Board,
    time: Predictor,
    power: Predictor | None,
    objective: str,
    budgets: Mapping[str, float],
    level: float = LEVEL,
    max_risk: float | None = None,
    idle_w: float = 0.0,
    rest_w: float = 0.0,
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
    max_risk : highest probability that the budget of power is broken; None: `MAX_RISK`, or the
        safest mode where none is as safe; `AS_EXPECTED`: expected values keep the budgets
    idle_w : power while nothing runs, until the limit of time is reached (`OtherPower`)
    rest_w : power of what the sensor does not see
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
    fixed = _fixed_parts(models)
    modes = board.all_modes()
    for part, value in fixed.items():
        modes = modes[modes[:, part] == value]
    lowest_mhz = max(float(model.trained_on[:, MEMORY].min()) for model in models) / REACH
    n_out_of_reach = int((modes[:, MEMORY] < lowest_mhz).sum())
    modes = modes[modes[:, MEMORY] >= lowest_mhz]
    expected = _with_energy(*(model.mean(modes) for model in models))
    extra_w = OtherPower(rest_w, idle_w).per_s_w
    choice = best_mode(modes, expected, models[0].trained_on, objective, budgets, extra_w)
    choice = choice._replace(risks=_risks(models, modes[[choice.place]], budgets))
    costs, is_safe = None, True
    knows_risk = power is not None and power.interval(modes[:1]) is not None
    if max_risk not in (None, AS_EXPECTED) and "power_w" not in budgets:
        raise PredictionError(
            "--max-risk is the risk of exceeding a power limit", do="add --max-power-w"
        )
    if "power_w" in budgets and max_risk != AS_EXPECTED and (knows_risk or max_risk is not None):
        hoped, rest = choice, {name: most for name, most in budgets.items() if name != "power_w"}
        keeps = [expected[name] <= most for name, most in rest.items()]
        open_to = np.logical_and.reduce([np.ones(len(modes), bool), *keeps])
        asked = budgets["power_w"], MAX_RISK if max_risk is None else max_risk
        choice = safe_mode(
            models[0],
            models[1],
            modes,
            *asked,
            objective=objective,
            within=open_to,
            extra_w=extra_w,
            safest=max_risk is None,
        )
        is_safe = choice.risks["power_w"] <= asked[1]
        others = {name: risk for name, risk in hoped.risks.items() if name in rest}
        choice = choice._replace(risks={**others, **choice.risks})
        aim = _aim(objective, expected, extra_w)
        if choice.place != hoped.place:
            costs = float(aim[choice.place] / aim[hoped.place] - 1), hoped.risks["power_w"]
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
        fixed=tuple(Mode._fields[part] for part in fixed),
        n_modes=len(modes),
        n_out_of_reach=n_out_of_reach,
        n_within=choice.n_within,
        front=tuple(front),
        costs=costs,
        is_safe=is_safe,
        least=_least_energy(modes, expected, budgets, extra_w),
        racing_saves=_racing_saves(expected, budgets, idle_w + rest_w, idle_w),
    )


def _fixed_parts(models: Sequence[Predictor]) -> dict[int, float]:
    """Return number -> value of the parts of a mode that are the same in all profiled modes.

    Nothing is known of what another value does, so none is recommended.
    """
    profiled = np.concatenate([model.trained_on for model in models])
    parts = enumerate(profiled.T[: len(CLOCKS)])
    return {part: float(values[0]) for part, values in parts if not np.ptp(values)}


def _racing_saves(
    expected: Expected, budgets: Mapping[str, float], after_w: float, idle_w: float
) -> float | None:
    """Return what it saves to end early and idle until the deadline, beside just meeting it."""
    if not idle_w or "epoch_s" not in budgets or "energy_wh" not in expected:
        return None
    deadline_s = budgets["epoch_s"]
    keeps = np.logical_and.reduce([expected[name] <= most for name, most in budgets.items()])
    total = _aim("energy", expected, -idle_w) + deadline_s * after_w / 3600
    total = np.where(keeps, total, np.inf)
    paced = total[expected["epoch_s"] > PACED * deadline_s].min(initial=np.inf)
    is_early = expected["epoch_s"][total.argmin()] <= PACED * deadline_s
    return float(paced / total.min() - 1) if is_early and np.isfinite(paced) else None


def _least_energy(
    modes: Numbers, expected: Expected, budgets: Mapping[str, float], extra_w: float
) -> LeastEnergy | None:
    if "energy_wh" not in expected:
        return None
    keeps = np.logical_and.reduce([expected[name] <= most for name, most in budgets.items()])
    time, energy = (np.where(keeps, _aim(n, expected, extra_w), np.inf) for n in ("time", "energy"))
    least, fastest = int(energy.argmin()), int(time.argmin())
    parts = (float(values[least] / values[fastest]) for values in (energy, time))
    return LeastEnergy(Mode(*modes[least].tolist()), *parts)


def best_mode(
    modes: Numbers,
    expected: Expected,
    profiled: Numbers,
    objective: str,
    budgets: Mapping[str, float],
    extra_w: float = 0.0,
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
    aim = _aim(objective, expected, extra_w)
    order = within[np.lexsort((energy_wh[within], np.round(aim[within] / aim.min(), 9)))]
    is_equal = np.logical_and.reduce(
        [values[order] <= (1 + EQUAL) * values[order[0]] for values in (aim, energy_wh)]
    )
    equal = order[is_equal]
    return Choice(int(equal[distances(modes[equal], profiled).argmin()]), len(within), {})


def _aim(objective: str, expected: Expected, extra_w: float = 0.0) -> Numbers:
    """Return what to minimise, shape (n,)."""
    epoch_s, energy_wh = expected["epoch_s"], expected.get("energy_wh", expected["epoch_s"])
    energy_wh = energy_wh + epoch_s * extra_w / 3600
    return {"time": epoch_s, "energy": energy_wh, "edp": epoch_s * energy_wh}[objective]


def _risks(
    models: Sequence[Predictor], mode: Numbers, budgets: Mapping[str, float]
) -> dict[str, float]:
    """Return the risks of a chosen mode (1, 6), of budgets of which intervals are known."""
    by_name: dict[str, Predictor] = dict(zip(("epoch_s", "power_w"), models, strict=False))
    if len(models) > 1:
        by_name["energy_wh"] = TimesPower(models[0], models[1])
    return {
        name: float(by_name[name].risk(mode, most, REPEAT_SD)[0])
        for name, most in budgets.items()
        if by_name[name].interval(mode) is not None
    }


def safe_mode(
    time: Predictor,
    power: Predictor,
    modes: Numbers,
    max_power_w: float,
    max_risk: float,
    over_w: float = 0.0,
    objective: str = "time",
    within: NDArray[np.bool_] | None = None,
    safest: bool = False,
    extra_w: float = 0.0,
) -> Choice:
    """Choose the best mode (n, 6) that keeps a limit of power as surely as asked.

    Its risk is that it breaks the limit by more than `over_w`. `within`: modes that may be chosen,
    (n,). Where none is safe enough, `safest` takes the safest one. Raises PredictionError: none is
    safe enough, the predictor of power knows no intervals, or `max_risk` is not above 0 and up to
    0.5.
    """
    if not 0 < max_risk <= 0.5:
        raise PredictionError(
            f"a risk of {max_risk:g}", allowed="above 0, up to 0.5; 0.05 is one answer in twenty"
        )
    within = np.ones(len(modes), bool) if within is None else within
    risks = np.where(within, power.risk(modes, max_power_w + over_w, REPEAT_SD), np.inf)
    kept = np.flatnonzero(risks <= max_risk)
    if len(kept):
        aim = _aim(objective, _with_energy(time.mean(modes), power.mean(modes)), extra_w)
        place = int(kept[aim[kept].argmin()])
    elif safest:
        place = int(risks.argmin())
    else:
        raise PredictionError(
            f"no mode keeps {max_power_w:g} W with a risk of {max_risk:g}",
            found=f"{risks.min():.2g} is the least risk of any mode",
            do="profile more modes, raise the limit, or accept a higher risk",
        )
    return Choice(place, len(kept), {"power_w": float(risks[place])})


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
