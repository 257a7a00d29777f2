"""The one type of the simulation's equations: a number, or an array with one per configuration."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = float | NDArray[np.floating[Any]]


def number(value: Array) -> float:
    """Return the number of the one configuration that there is; ValueError when there are more."""
    return float(np.squeeze(value))
