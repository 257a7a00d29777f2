"""The types of the simulation's equations: numbers, or arrays with one per configuration."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = float | NDArray[np.floating[Any]]
Values: TypeAlias = Mapping[str, float]  # parameters by name


def number(value: Array) -> float:
    """Return the number of the one configuration that there is; ValueError when there are more."""
    return float(np.squeeze(value))
