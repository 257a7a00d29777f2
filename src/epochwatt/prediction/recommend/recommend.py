"""The best power mode of a board within budgets, among all that its own tables allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.analysis.pareto import pareto_front
from epochwatt.device.board_files import Conf, custom_conf
from epochwatt.prediction.data.modes import Board, Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.models.residual_gp import distances
from epochwatt.prediction.models.times_power import sample_both
from epochwatt.prediction.predictor import LEVEL, Predictor, bounds
from epochwatt.prediction.recommend.risk import fastest_within
from epochwatt.prediction.selection.optimal_design import board_design, choose_modes
from epochwatt.text import counted

LEAST_MODES = 4  # as many as the paper profiles; with fewer the model is little but belief
COST_OF_A_MODE = 2.5  # limit for modes to profile, on average, in epochs of the strongest mode
EQUAL = 1e-3  # far below the error of any model: modes that differ by less are as good
UNITS = {"power_w": "W", "epoch_s": "s", "energy_wh": "Wh"}
OPTIONS = {name: f"--max-{name.replace('_', '-')}" for name in UNITS}  # of the command


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


@dataclass(frozen=True)
class Recommendation:
    """The mode to take, and why."""

    mode: Mode  # one of the board's own
    objective: str  # what it is best in, of the modes within the budgets
    # epoch_s and, with a model of power, power_w, energy_wh -> `Estimate`
    estimates: dict[str, Estimate]
    # budget that was set -> probability that an epoch breaks it: of the mode itself where it was
    # profiled, else of a choice that is made as this one was (`_choices`); none without intervals
    risks: dict[str, float]
    extrapolated: tuple[str, ...]  # parts of the mode that lie outside all profiled modes
    # n_modes, n_within: modes of the board, and those expected to keep the budgets
    n_modes: int
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
    """Return the best mode of a board.

    Among equally good modes the one that needs less energy; among those that are equal in both (to
    `EQUAL`) the one nearest to what was profiled, where models are most accurate: best of all a
    profiled one.

    Raises EpochwattError: too few profiled modes (names modes to profile), a profiled mode that the
    tables lack, an objective or budget that needs energy that was not measured, or budgets that no
    mode keeps.

    Parameters
    ----------
    time, power : predictors of one workload on it; None: its energy was not measured
    max_risk : highest probability that the budget of power is broken; None: it is expected to hold
    """
    if power is None:
        _need_no_energy(objective, budgets)
    models = [_on_steps(board, model) for model in (time, power) if model is not None]
    modes = board.all_modes()
    best = choose(models, modes, objective, budgets, max_risk)
    mode = Mode(*modes[best.place].tolist())
    samples = _samples(models, modes[best.place : best.place + 1])
    return Recommendation(
        mode=mode,
        objective=objective,
        estimates={
            name: _estimate(float(values[best.place]), samples.get(name), level)
            for name, values in best.expected.items()
        },
        risks=best.risks,
        extrapolated=tuple(dict.fromkeys(p for model in models for p in model.extrapolated(mode))),
        n_modes=len(modes),
        n_within=best.n_within,
        front=_front(modes, best.expected),
    )


class Choice(NamedTuple):
    """The best of some modes: its place, what is expected of all, risks as `Recommendation` has."""

    place: int
    expected: dict[str, Numbers]
    n_within: int
    risks: dict[str, float]


def choose(
    models: Sequence[Predictor],
    modes: Numbers,
    objective: str,
    budgets: Mapping[str, float],
    max_risk: float | None = None,
) -> Choice:
    """Return the best of some modes (n, 6) within budgets; `max_risk` as of `recommend`.

    Raises PredictionError: no mode keeps the budgets.
    """
    if max_risk is not None:
        return choose_safely(models, modes, objective, budgets, max_risk)
    fits = [model.some_fits(modes) for model in models]
    expected = _with_energy(*(fit.mean(1) for fit in fits))
    place, n_within = place_of_best(modes, expected, models[0].trained_on, objective, budgets)
    is_profiled = modes[place].tolist() in models[0].trained_on.tolist()
    places = [place] if is_profiled else _choices(objective, fits, budgets) or [place]
    samples = _samples(models, modes[places])
    risks = {
        name: float((samples[name] > most).mean())
        for name, most in budgets.items()
        if name in samples
    }
    return Choice(place, expected, n_within, risks)


def choose_safely(
    models: Sequence[Predictor],
    modes: Numbers,
    objective: str,
    budgets: Mapping[str, float],
    max_risk: float,
) -> Choice:
    """Return the fastest mode (n, 6) that keeps a budget of power as surely as is asked.

    Raises PredictionError: another objective or another budget, or no mode is safe enough.
    """
    if objective != "time" or budgets.keys() != {"power_w"} or len(models) == 1:
        raise PredictionError(
            "--max-risk is a risk of the fastest mode within a limit of power",
            found=" and ".join([f"least {objective}", *(OPTIONS[name] for name in budgets)]),
            allowed=f"{OPTIONS['power_w']}, no other limit, and the objective time",
        )
    safe = fastest_within(models[0], models[1], modes, budgets["power_w"], max_risk)
    expected = _with_energy(*(model.mean(modes) for model in models))
    return Choice(safe.place, expected, safe.n_within, {"power_w": safe.risk})


def place_of_best(
    modes: Numbers,
    expected: Mapping[str, Numbers],
    profiled: Numbers,
    objective: str,
    budgets: Mapping[str, float],
) -> tuple[int, int]:
    """Return the place of the best of some modes within budgets, and how many keep them.

    Raises PredictionError: no mode keeps the budgets.

    Parameters
    ----------
    modes : (n, 6)
    expected : `epoch_s`, and where they are known `power_w` and `energy_wh`, of each mode, (n,)
    profiled : (m, 6), modes that it is best to be near of where several are equally good
    """
    within = np.flatnonzero(_within(modes, expected, budgets))
    equal = _equal(objective, expected, within)
    return int(equal[distances(modes[equal], profiled).argmin()]), len(within)


def _choices(objective: str, fits: Sequence[Numbers], budgets: Mapping[str, float]) -> list[int]:
    """Return the place of the mode that each fit alone would choose, for fits that choose one.

    The best of many modes is one that the models are optimistic about, and so is its own risk. So
    the risk is that of the choices of all fits that agree about as well: each fit chooses, all
    others judge the choice.

    Parameters
    ----------
    fits : what each fit expects of each mode, shape (n, d): of time, and of power
    """
    places: list[int] = []
    if not budgets:
        return places
    n_fits = min((fit.shape[1] for fit in fits if fit.shape[1] > 1), default=1)
    rows = [np.broadcast_to(fit[:, :n_fits].T, (n_fits, len(fit))) for fit in fits]
    for values in zip(*rows, strict=True):
        expected = _with_energy(*values)
        keeps = np.logical_and.reduce([expected[name] <= most for name, most in budgets.items()])
        if keeps.any():
            places.append(int(np.where(keeps, _aim(objective, expected), np.inf).argmin()))
    return places


def _aim(objective: str, expected: Mapping[str, Numbers]) -> Numbers:
    """Return what to minimise, shape (n,)."""
    epoch_s, energy_wh = expected["epoch_s"], expected.get("energy_wh", expected["epoch_s"])
    return {"time": epoch_s, "energy": energy_wh, "edp": epoch_s * energy_wh}[objective]


def _equal(
    objective: str, expected: Mapping[str, Numbers], within: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the places of those modes within the budgets that equal the best, the best first."""
    epoch_s = expected["epoch_s"]
    energy_wh = expected.get("energy_wh", np.zeros(len(epoch_s)))  # of no account where not known
    aim = _aim(objective, expected)
    order = within[np.lexsort((energy_wh[within], np.round(aim[within] / aim.min(), 9)))]
    equal = [values[order] <= (1 + EQUAL) * values[order[0]] for values in (aim, energy_wh)]
    return order[equal[0] & equal[1]]


def _estimate(value: float, sample: Numbers | None, level: float) -> Estimate:
    if sample is None:
        return Estimate(value, None, None)
    low, high = bounds(sample, level)
    return Estimate(value, float(low[0]), float(high[0]))


def _with_energy(epoch_s: Numbers, power_w: Numbers | None = None) -> dict[str, Numbers]:
    """Return time alone, or time, power and their product."""
    if power_w is None:
        return {"epoch_s": epoch_s}
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def _front(modes: Numbers, expected: Mapping[str, Numbers]) -> tuple[FrontMode, ...]:
    if "energy_wh" not in expected:
        return ()
    places = pareto_front(expected["epoch_s"], expected["energy_wh"])
    columns = (expected[name][places].tolist() for name in ("epoch_s", "power_w", "energy_wh"))
    rows = zip(modes[places].tolist(), *columns, strict=True)
    return tuple(FrontMode(Mode(*mode), *values) for mode, *values in rows)


def _samples(models: Sequence[Predictor], modes: Numbers) -> dict[str, Numbers]:
    """Return what epochs may be in each mode, shape (d, n) each; empty without intervals."""
    if len(models) == 1:
        seconds = models[0].sample(modes)
        return {} if seconds is None else _with_energy(seconds)
    both = sample_both(models[0], models[1], modes)
    return {} if both is None else _with_energy(*both)


def _need_no_energy(objective: str, budgets: Mapping[str, float]) -> None:
    """Refuse what needs power where only time is predicted. Raises PredictionError."""
    needing = [f"the objective {objective}"] * (objective != "time")
    needing += [OPTIONS[name] for name in budgets if name != "epoch_s"]
    if needing:
        raise PredictionError(
            "energy was not measured in every epoch of this workload, and "
            f"{' and '.join(needing)} {'need' if len(needing) > 1 else 'needs'} it",
            allowed=f"--objective time and {OPTIONS['epoch_s']}",
        )


def _on_steps(board: Board, model: Predictor) -> Predictor:
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
    n_modes = LEAST_MODES - len(profiled)
    design = board_design(board, processes=processes)
    return choose_modes(design, n_modes, max_cost=COST_OF_A_MODE * n_modes, already=profiled).modes


def _within(
    modes: Numbers, expected: Mapping[str, Numbers], budgets: Mapping[str, float]
) -> NDArray[np.bool_]:
    """Return which modes are expected to keep all budgets. Raises PredictionError: none does."""
    keeps = {name: expected[name] <= most for name, most in budgets.items()}
    for name, kept in keeps.items():
        if not kept.any():
            place = int(expected[name].argmin())
            raise PredictionError(
                f"no mode keeps {OPTIONS[name]} {budgets[name]:g}",
                allowed=f"{expected[name][place]:.4g} {UNITS[name]} or more, expected of "
                f"{Mode(*modes[place].tolist())}",
            )
    together = np.logical_and.reduce([np.ones(len(modes), bool), *keeps.values()])
    if not together.any():
        options = " and ".join(f"{OPTIONS[name]} {most:g}" for name, most in budgets.items())
        raise PredictionError(
            f"each budget is kept by some mode, but no mode keeps {options} together",
            do=_alternatives(expected, keeps),
        )
    return together


def _alternatives(expected: Mapping[str, Numbers], keeps: Mapping[str, NDArray[np.bool_]]) -> str:
    """Return for each budget the lowest value that modes may have that keep all others."""
    words = []
    for name in keeps:
        others = [kept for other, kept in keeps.items() if other != name]
        values = expected[name][np.logical_and.reduce(others)]
        if len(values):
            words.append(f"raise {OPTIONS[name]} to {values.min():.4g} or more")
    return ", or ".join(words) or "raise two of them or more"


def nvpmodel_block(conf: Conf, board: Board, mode: Mode, comment: str) -> str:
    """Return an nvpmodel configuration that holds a mode and nothing else, ready to be set.

    Raises EpochwattError: the board has no such mode, or its nvpmodel cannot set it.
    """
    cores, cpu_mhz, gpu_mhz, emc_mhz, *_ = board.resolve(mode)
    clocks = (round(1e3 * cpu_mhz), round(1e6 * gpu_mhz), round(1e6 * emc_mhz))
    try:
        text = custom_conf(conf, int(cores), *clocks, board.tables)
    except ValueError as error:
        raise PredictionError(str(error), where=f"{board.kind}, {mode}") from error
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text
