"""The best power mode of a board within budgets, among all that its own tables allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.analysis.pareto import pareto_front
from epochwatt.device.reading import Conf, custom_conf
from epochwatt.prediction.choose_modes import board_design, choose_modes
from epochwatt.prediction.model import FittedModel, bounds
from epochwatt.prediction.modes import Board, Mode, Numbers, PredictionError

OBJECTIVES = ("time", "energy", "edp")
LEAST_MODES = 4  # as many as the paper profiles; with fewer the model is little but belief
UNITS = {"power_w": "W", "epoch_s": "s", "energy_wh": "Wh"}


class Estimate(NamedTuple):
    """What to expect, and the bounds that hold it with the stated probability."""

    value: float
    low: float
    high: float


class FrontMode(NamedTuple):
    """A mode that no other beats in both time and energy."""

    mode: Mode
    epoch_s: float
    power_w: float
    energy_wh: float


@dataclass(frozen=True)
class Recommendation:
    """The mode to take, and why.

    Attributes
    ----------
    mode : one of the board's own
    objective : what it is best in, of the modes within the budgets
    estimates : epoch_s, power_w, energy_wh -> `Estimate`
    risks : budget that was set -> probability that an epoch breaks it
    extrapolated : parts of the mode that lie outside all profiled modes
    n_modes, n_within : modes of the board, and those expected to keep the budgets
    front : modes that none beats in both time and energy, the fastest first; budgets left aside
    """

    mode: Mode
    objective: str
    estimates: dict[str, Estimate]
    risks: dict[str, float]
    extrapolated: tuple[str, ...]
    n_modes: int
    n_within: int
    front: tuple[FrontMode, ...]


def recommend(
    board: Board,
    time: FittedModel,
    power: FittedModel,
    objective: str,
    budgets: Mapping[str, float],
    level: float = 0.9,
) -> Recommendation:
    """Return the best mode of a board.

    Among modes that are equally good the one that needs less energy, then the first of the tables:
    fewest cores and lowest clocks.

    Parameters
    ----------
    board : its tables
    time, power : models of one workload on it
    objective : least `time`, `energy`, or `edp`: energy times time
    budgets : highest expected `power_w`, `epoch_s`, `energy_wh`; those that are set
    level : of the intervals

    Raises
    ------
    EpochwattError : too few profiled modes (names modes to profile), a profiled mode that the
        tables lack, an unknown objective or budget, or budgets that no mode keeps
    """
    _check(board, time, power, objective, budgets)
    modes = board.all_modes()
    epoch_s, power_w = time.predict(modes), power.predict(modes)
    expected = {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}
    energy_wh = expected["energy_wh"]
    within = np.flatnonzero(_within(modes, expected, budgets))
    aim = {"time": epoch_s, "energy": energy_wh, "edp": epoch_s * energy_wh}[objective]
    order = np.lexsort((within, energy_wh[within], np.round(aim[within] / aim.min(), 9)))
    best = int(within[order[0]])
    mode = Mode(*modes[best].tolist())
    samples = _samples(time, power, modes[best : best + 1])
    return Recommendation(
        mode=mode,
        objective=objective,
        estimates={
            name: Estimate(float(of[best]), *(float(b[0]) for b in bounds(samples[name], level)))
            for name, of in expected.items()
        },
        risks={name: float((samples[name] > most).mean()) for name, most in budgets.items()},
        extrapolated=tuple(dict.fromkeys(time.extrapolated(mode) + power.extrapolated(mode))),
        n_modes=len(modes),
        n_within=len(within),
        front=_front(modes, expected),
    )


def _front(modes: Numbers, expected: Mapping[str, Numbers]) -> tuple[FrontMode, ...]:
    places = pareto_front(expected["epoch_s"], expected["energy_wh"])
    columns = (expected[name][places].tolist() for name in ("epoch_s", "power_w", "energy_wh"))
    rows = zip(modes[places].tolist(), *columns, strict=True)
    return tuple(FrontMode(Mode(*mode), *values) for mode, *values in rows)


def _samples(time: FittedModel, power: FittedModel, modes: Numbers) -> dict[str, Numbers]:
    """Return what epochs may be in each mode, shape (d, n) each; time and power independent."""
    epoch_s, power_w = time.sample(modes), power.sample(modes)
    order = np.random.default_rng(1).permutation(len(power_w))  # both start from the same seed
    n_draws = min(len(epoch_s), len(power_w))
    epoch_s, power_w = epoch_s[:n_draws], power_w[order[:n_draws]]
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def _check(
    board: Board,
    time: FittedModel,
    power: FittedModel,
    objective: str,
    budgets: Mapping[str, float],
) -> None:
    if (time.target, power.target) != ("time_s", "power_w"):
        raise PredictionError(
            f"models of {time.target} and {power.target}; needed: of time_s and of power_w"
        )
    if objective not in OBJECTIVES:
        raise PredictionError(f"objective {objective!r}; allowed: {', '.join(OBJECTIVES)}")
    for name, most in budgets.items():
        if name not in UNITS or not 0 < most < np.inf:
            raise PredictionError(
                f"a budget of {name} {most!r}; allowed: {', '.join(UNITS)}, above zero"
            )
    for model in (time, power):
        profiled = [board.resolve(Mode(*row)) for row in model.trained_on.tolist()]
        n_modes = len(profiled)
        if n_modes < LEAST_MODES:
            design = board_design(board, processes=model.processes)
            plan = choose_modes(design, LEAST_MODES - n_modes, already=profiled)
            raise PredictionError(
                f"the model of {model.target} knows {n_modes} power modes of {board.kind}; needed: "
                f"{LEAST_MODES} or more\n  measure next: " + "\n  ".join(map(str, plan.modes))
            )


def _within(
    modes: Numbers, expected: Mapping[str, Numbers], budgets: Mapping[str, float]
) -> NDArray[np.bool_]:
    """Return which modes are expected to keep all budgets. Raises PredictionError: none does."""
    keeps = {name: expected[name] <= most for name, most in budgets.items()}
    for name, kept in keeps.items():
        if not kept.any():
            least = int(expected[name].argmin())
            unit = UNITS[name]
            raise PredictionError(
                f"no mode keeps {name} at or below {budgets[name]:g} {unit}\n  the least is "
                f"{expected[name][least]:.4g} {unit}, expected of {Mode(*modes[least].tolist())}"
            )
    both = np.logical_and.reduce([np.ones(len(modes), bool), *keeps.values()])
    if not both.any():
        told = " and ".join(f"{name} {most:g} {UNITS[name]}" for name, most in budgets.items())
        raise PredictionError(
            f"each budget is kept by some mode, but no mode keeps {told} together; raise one"
        )
    return both


def nvpmodel_block(conf: Conf, board: Board, mode: Mode, says: str) -> str:
    """Return an nvpmodel configuration that holds a mode and nothing else, ready to be set.

    Parameters
    ----------
    conf : the board's own configuration, whose strongest mode it is made of
    board : its tables
    mode : one of its modes
    says : what the first lines say, as comments: where the mode comes from, simulated or measured

    Raises
    ------
    EpochwattError : the board has no such mode, or its nvpmodel cannot set it
    """
    cores, cpu_mhz, gpu_mhz, emc_mhz = board.resolve(mode)
    clocks = (round(1e3 * cpu_mhz), round(1e6 * gpu_mhz), round(1e6 * emc_mhz))
    try:
        text = custom_conf(conf, int(cores), *clocks, board.tables)
    except ValueError as error:
        raise PredictionError(f"{board.kind}, {mode}: {error}") from error
    return "".join(f"# {line}\n" for line in says.splitlines()) + text
