"""Modes of a sweep, as they are named, set and computed with."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.columns import CLOCKS


class SweepMode(NamedTuple):
    """Settings of a machine for one row of a sweep; None: left as it is.

    On a host `cores` is the number of threads of the training process, and of the clocks only that
    of the CPU can be set.
    """

    cores: int | None = None
    cpu_mhz: float | None = None
    gpu_mhz: float | None = None
    emc_mhz: float | None = None

    def settings(self) -> dict[str, float]:
        """Return the parts that are set, as the measuring side takes them."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def mode_rows(modes: Iterable[SweepMode]) -> NDArray[np.float64]:
    """Return modes as numbers, shape (n, 5): `SweepMode` and the whole GPU; NaN: left alone."""
    rows = [[math.nan if part is None else float(part) for part in mode] + [1.0] for mode in modes]
    return np.array(rows, float).reshape(-1, len(CLOCKS) + 1)
