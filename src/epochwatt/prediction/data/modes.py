"""Power modes as rows of numbers, and all modes that a board's own tables allow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.device.board_files import Tables
from epochwatt.device.frequencies import resolve
from epochwatt.errors import EpochwattError
from epochwatt.text import counted

Numbers = NDArray[np.float64]
N_PARTS = 5  # numbers of a `Mode`


class PredictionError(EpochwattError):
    """A model cannot be fitted to, or asked for, what it was given."""


class Mode(NamedTuple):
    """A power mode: CPU cores online, the clocks of CPU, GPU and memory, how much of the GPU is on.

    `gpu_share` counts the GPU's parts (TPCs) that are on, of those that are on in the board's
    strongest mode. Stock modes of NVIDIA gate some off (`TPC_PG_MASK` of nvpmodel.conf); modes made
    of numbers never do. Without it a mode is taken to gate none.
    """

    cores: int
    cpu_mhz: float
    gpu_mhz: float
    emc_mhz: float
    gpu_share: float = 1.0

    def __str__(self) -> str:
        gated = "" if self.gpu_share == 1 else f", {100 * self.gpu_share:g} % of the GPU on"
        return (
            f"{counted(self.cores, 'cores')}, CPU {self.cpu_mhz:g}, GPU {self.gpu_mhz:g}, "
            f"memory {self.emc_mhz:g} MHz{gated}"
        )


class Columns(NamedTuple):
    """The parts of several modes, or the steps of each part."""

    cores: Numbers
    cpu_mhz: Numbers
    gpu_mhz: Numbers
    emc_mhz: Numbers
    gpu_share: Numbers


class Board(NamedTuple):
    """What modes of a board are made of: its kind, how many CPU cores, and its clocks."""

    kind: str
    n_cores: int
    tables: Tables

    def steps(self) -> Columns:
        """Return the steps of each part of a mode, ascending: cores, MHz, the whole GPU."""
        cpu, gpu, emc = (np.array(steps, float) for steps in self.tables)
        cores = np.arange(1.0, self.n_cores + 1)
        return Columns(cores, cpu / 1e3, gpu / 1e6, emc / 1e6, np.ones(1))

    def all_modes(self) -> Numbers:
        """Return every combination, shape (n, 5), cores slowest, memory clock fastest.

        AGX Xavier has 8 x 29 x 14 x 9 = 29,232 of them (SIGMETRICS 2023, section 1).

        Raises
        ------
        PredictionError : a clock's steps are not known
        """
        steps = self.steps()
        if empty := [name for name, s in zip(Mode._fields, steps, strict=True) if not len(s)]:
            raise PredictionError(
                f"the steps of {', '.join(empty)} are not known",
                where=self.kind,
                do="ask on the board, whose own tables count (`epochwatt doctor` shows them)",
            )
        return np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, N_PARTS)

    def resolve(self, mode: Mode) -> Mode:
        """Return the mode of the board's own steps that a nominal one stands for (to 2 %).

        Raises
        ------
        ConfigError : a clock that the tables lack
        PredictionError : a number of cores that the board lacks
        """
        if mode.cores not in range(1, self.n_cores + 1):
            raise PredictionError(
                f"{self.kind} has no mode of {mode}",
                found=f"{mode.cores:g} cores",
                allowed=f"1 to {self.n_cores}",
            )
        clocks = zip(Mode._fields[1:4], mode[1:4], self.steps()[1:4], strict=True)
        steps = (resolve(name, mhz, table.tolist()) for name, mhz, table in clocks)
        return Mode(mode.cores, *steps)._replace(gpu_share=mode.gpu_share)


def as_rows(modes: ArrayLike | Sequence[Mode]) -> Numbers:
    """Return modes as floats, shape (n, 5); rows of four numbers have the whole GPU on.

    Raises
    ------
    PredictionError : a mode has other than four or five numbers, one that is not above zero, or
        more than the whole GPU
    """
    rows = np.asarray(modes, float)
    rows = rows.reshape(-1, N_PARTS) if rows.size == 0 else rows
    if rows.ndim == 2 and rows.shape[1] == N_PARTS - 1:
        rows = np.column_stack([rows, np.ones(len(rows))])
    if rows.ndim != 2 or rows.shape[1] != N_PARTS:
        raise PredictionError(
            f"power modes of shape {rows.shape}",
            allowed=f"for each mode {', '.join(Mode._fields)}; the last may be left out",
        )
    good = (np.isfinite(rows) & (rows > 0)).all(1) & (rows[:, -1] <= 1)
    if not good.all():
        raise PredictionError(
            f"a power mode of {Mode(*rows[~good][0])}",
            allowed="numbers above zero, and no more than the whole GPU",
        )
    return rows
