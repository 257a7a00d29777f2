"""Power modes as rows of numbers, and all modes that a board's own tables allow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.device.frequencies import resolve
from epochwatt.device.reading import Tables
from epochwatt.errors import EpochwattError
from epochwatt.text import counted

Numbers = NDArray[np.float64]


class PredictionError(EpochwattError):
    """A model cannot be fitted to, or asked for, what it was given."""


class Mode(NamedTuple):
    """A power mode: CPU cores online and the clocks of CPU, GPU and memory."""

    cores: int
    cpu_mhz: float
    gpu_mhz: float
    emc_mhz: float

    def __str__(self) -> str:
        return (
            f"{counted(self.cores, 'cores')}, CPU {self.cpu_mhz:g}, GPU {self.gpu_mhz:g}, "
            f"memory {self.emc_mhz:g} MHz"
        )


class Columns(NamedTuple):
    """The parts of several modes, or the steps of each part."""

    cores: Numbers
    cpu_mhz: Numbers
    gpu_mhz: Numbers
    emc_mhz: Numbers


class Board(NamedTuple):
    """What modes of a board are made of: its kind, how many CPU cores, and its clocks."""

    kind: str
    n_cores: int
    tables: Tables

    def steps(self) -> Columns:
        """Return the steps of each part of a mode, ascending: cores, then clocks in MHz."""
        cpu, gpu, emc = (np.array(steps, float) for steps in self.tables)
        return Columns(np.arange(1.0, self.n_cores + 1), cpu / 1e3, gpu / 1e6, emc / 1e6)

    def all_modes(self) -> Numbers:
        """Return every combination, shape (n, 4), cores slowest, memory clock fastest.

        AGX Xavier has 8 x 29 x 14 x 9 = 29,232 of them (SIGMETRICS 2023, section 1).

        Raises
        ------
        PredictionError : a clock's steps are not known
        """
        steps = self.steps()
        if empty := [name for name, of in zip(Mode._fields, steps, strict=True) if not len(of)]:
            raise PredictionError(
                f"{self.kind}: the steps of {', '.join(empty)} are not known\n"
                "  needed: the tables of the board itself (`epochwatt doctor` shows them)"
            )
        return np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, 4)

    def resolve(self, mode: Mode) -> Mode:
        """Return the mode of the board's own steps that a nominal one stands for (to 2 %).

        Raises
        ------
        ConfigError : a clock that the tables lack
        PredictionError : a number of cores that the board lacks
        """
        if mode.cores not in range(1, self.n_cores + 1):
            raise PredictionError(
                f"{self.kind} has no mode of {mode}\n  cores: {mode.cores:g}; it has 1 to "
                f"{self.n_cores}"
            )
        clocks = zip(Mode._fields[1:], mode[1:], self.steps()[1:], strict=True)
        return Mode(mode.cores, *(resolve(name, mhz, of.tolist()) for name, mhz, of in clocks))


def as_rows(modes: ArrayLike | Sequence[Mode]) -> Numbers:
    """Return modes as floats, shape (n, 4).

    Raises
    ------
    PredictionError : a mode has other than four numbers, or one that is not above zero
    """
    rows = np.asarray(modes, float)
    rows = rows.reshape(-1, 4) if rows.size == 0 else rows
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise PredictionError(
            f"power modes of shape {rows.shape}: each has four numbers, {', '.join(Mode._fields)}"
        )
    good = (np.isfinite(rows) & (rows > 0)).all(1)
    if not good.all():
        raise PredictionError(
            f"a power mode of {Mode(*rows[~good][0])}: all four numbers are above zero"
        )
    return rows
