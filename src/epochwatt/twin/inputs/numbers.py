"""Name the types of the simulation's equations: numbers, or arrays with one per configuration."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = float | NDArray[np.floating[Any]]
Values: TypeAlias = Mapping[str, float]  # parameters by name
Factors: TypeAlias = Mapping[str, Any]  # of a run by name, as the run table has them


def number(value: Array) -> float:
    """Return the number of the one configuration that there is; ValueError when there are more."""
    return float(np.squeeze(value))


class Clocks(NamedTuple):
    """The settings of a power mode: online cores, and clocks in MHz."""

    cores: Array
    cpu_mhz: Array
    gpu_mhz: Array
    emc_mhz: Array


Modes = Mapping[str, Mapping[str, Clocks]]  # device -> label of a power mode -> its clocks
