"""Draw the spread between epochs of a run and between units of a board, put in by hand."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.numbers import Factors, Values


class Spread(NamedTuple):
    """Factors of one run's epochs: of its unit, and drawn for each."""

    time: NDArray[np.floating]  # (epochs,)
    power: NDArray[np.floating]  # (epochs,)


def of_unit(instance: str, board: Board) -> tuple[float, float]:
    """Return time and power of a unit of a board, relative to the one of the parameters."""
    time, power = board.units.get(instance, (1.0, 1.0))
    return time, power


def spread_of(
    factors: Factors, n_epochs: int, board: Board, random: np.random.Generator, p: Values
) -> Spread:
    """Return the factors of a run's epochs: of the unit they share, and of each its own."""
    time, power = of_unit(factors["instance"], board)
    return Spread(
        time * np.exp(p["noise_epoch"] * random.normal(size=n_epochs)),
        power * np.exp(p["noise_epoch"] * random.normal(size=n_epochs)),
    )
