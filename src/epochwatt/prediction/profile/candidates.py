"""Choose the modes to run first, and those that are worth a closer look.

First a small design that tells the board's terms apart (`selection.optimal_design`); later modes
are those that promise most (`selection.active`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.predictor import Predictor
from epochwatt.prediction.recommend.recommend import COST_OF_A_MODE
from epochwatt.prediction.selection.optimal_design import (
    Design,
    board_design,
    choose_modes,
    design_of_modes,
)

MOST_CANDIDATES = 1500  # of a design, whose search compares each with each
SHORTLIST = 500  # modes of which it is asked how unsure they are
HOPEFUL = 1.25  # expected power over the limit, up to which a mode is on that list


def first_modes(
    kind: str, modes: Numbers, processes: int, n_modes: int, already: Sequence[Mode] = ()
) -> tuple[Mode, ...]:
    """Return modes to begin with.

    Parameters
    ----------
    modes : (n, 6), all there are
    """
    n_left = len(modes) - len(already)
    if n_left <= n_modes:
        ran = set(already)
        return tuple(mode for row in modes.tolist() if (mode := Mode(*row)) not in ran)
    design = _design(kind, modes, processes)
    for limit in (COST_OF_A_MODE * n_modes, None):
        try:
            chosen = choose_modes(design, n_modes, limit, already).modes
        except EpochwattError:  # all modes are slow beside the strongest: no limit then
            continue
        return tuple(_nearest(modes, mode) for mode in chosen)
    raise AssertionError("a design without a limit needs nothing but modes")


def _design(kind: str, modes: Numbers, processes: int) -> Design:
    design = design_of_modes(kind, modes, processes)
    if len(modes) <= MOST_CANDIDATES:
        return design
    thinned = board_design(design.board, processes).candidates
    there = set(map(tuple, np.round(modes, 3).tolist()))
    some = [tuple(np.round(row, 3).tolist()) in there for row in thinned]
    if sum(some) < MOST_CANDIDATES / 10:  # no product of steps: evenly out of all of them
        places = np.linspace(0, len(modes) - 1, MOST_CANDIDATES).round().astype(int)
        return replace(design, candidates=modes[places])
    return replace(design, candidates=thinned[some])


def _nearest(modes: Numbers, mode: Mode) -> Mode:
    place = int(np.abs(modes - np.array(mode)).sum(1).argmin())
    return Mode(*modes[place].tolist())


def shortlist(
    time: Predictor,
    power: Predictor | None,
    modes: Numbers,
    objective: str,
    max_power_w: float | None,
) -> Numbers:
    """Return those modes (k, 6) that may be the best, by what is expected of them."""
    if len(modes) <= SHORTLIST:
        return modes
    aim = time.predict(modes)
    if power is None:
        return modes[np.argsort(aim, kind="stable")[:SHORTLIST]]
    watts = power.predict(modes)
    aim = aim if objective == "time" else aim * watts
    if max_power_w is None:
        return modes[np.argsort(aim, kind="stable")[:SHORTLIST]]
    far = np.maximum(watts / (HOPEFUL * max_power_w), 1.0)  # beyond: the nearest to the limit first
    return modes[np.lexsort((aim, far))[:SHORTLIST]]


def untried(modes: Numbers, tried: Sequence[Mode]) -> Numbers:
    """Return the modes (k, 6) that were not run."""
    ran = set(map(tuple, as_rows(tried).tolist())) if tried else set()
    return modes[[row not in ran for row in map(tuple, modes.tolist())]]
