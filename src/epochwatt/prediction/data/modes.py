"""Power modes as rows of numbers, and all modes that a board's own tables allow."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.board.device.board_files import Tables
from epochwatt.board.device.frequencies import resolve
from epochwatt.errors import EpochwattError
from epochwatt.text import counted

Numbers = NDArray[np.float64]
N_PARTS = 6  # numbers of a `Mode`
NO_LIMIT = 0.0  # W, of a mode that limits no power
_DEFAULTS = (1.0, NO_LIMIT)  # the last parts, where a row of numbers ends before them
# what a part may be at least and at most: above zero, and no limit below zero; not infinite
_LEAST = np.array([np.nextafter(0.0, 1.0)] * (N_PARTS - 1) + [NO_LIMIT])
_MOST = np.full(N_PARTS, np.finfo(float).max)
_MOST[-2] = 1.0  # the whole GPU


class PredictionError(EpochwattError):
    """A model cannot be fitted to, or asked for, what it was given."""


class Mode(NamedTuple):
    """A power mode: cores online, clocks of CPU, GPU and memory, share of the GPU, power limit.

    `gpu_share` counts the GPU's parts (TPCs) that are on, of those that are on in the board's
    strongest mode. Stock modes of NVIDIA gate some off (`TPC_PG_MASK` of nvpmodel.conf); modes made
    of numbers never do. Without it a mode is taken to gate none. `power_limit_w` is what graphics
    cards keep to by themselves; Jetson boards have no such part of a mode: `NO_LIMIT`.
    """

    cores: int
    cpu_mhz: float
    gpu_mhz: float
    emc_mhz: float
    gpu_share: float = 1.0
    power_limit_w: float = NO_LIMIT

    def __str__(self) -> str:
        return self.of_parts(self._fields)

    def of_parts(self, parts: Collection[str]) -> str:
        """Return the named parts in words; always a gated GPU and a power limit."""
        titles = {"cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "memory"}
        clocks = [
            f"{title} {getattr(self, part):g}" for part, title in titles.items() if part in parts
        ]
        words = [counted(self.cores, "cores")] if "cores" in parts else []
        if clocks:
            words.append(f"{', '.join(clocks)} MHz")
        if self.gpu_share != 1:
            words.append(f"{100 * self.gpu_share:g} % of the GPU on")
        if self.power_limit_w:
            words.append(f"limit {self.power_limit_w:g} W")
        return ", ".join(words) or "the only mode"


class Columns(NamedTuple):
    """The parts of several modes, or the steps of each part."""

    cores: Numbers
    cpu_mhz: Numbers
    gpu_mhz: Numbers
    emc_mhz: Numbers
    gpu_share: Numbers
    power_limit_w: Numbers


class Board(NamedTuple):
    """A board that modes are made for: its kind, number of CPU cores, and clock tables."""

    kind: str
    n_cores: int
    tables: Tables

    def steps(self) -> Columns:
        """Return the steps of each part of a mode, ascending: cores, MHz, share, limit."""
        cpu_khz, gpu_hz, emc_hz = (np.array(steps, float) for steps in self.tables)
        cores, share, limit = np.arange(1.0, self.n_cores + 1), np.ones(1), np.array([NO_LIMIT])
        return Columns(cores, cpu_khz / 1e3, gpu_hz / 1e6, emc_hz / 1e6, share, limit)

    def all_modes(self) -> Numbers:
        """Return every combination, shape (n, 6), cores slowest, memory clock fastest.

        AGX Xavier has 8 x 29 x 14 x 9 = 29,232 of them (SIGMETRICS 2023, section 1). Raises
        PredictionError: a clock's steps are not known.
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
        """Return the nominal mode with the board's own clocks, to within 2 % of the nominal ones.

        Raises ConfigError: a clock that the tables lack. Raises PredictionError: a number of cores
        that the board lacks.
        """
        if mode.cores not in range(1, self.n_cores + 1):
            raise PredictionError(
                f"{self.kind} has no mode of {mode}",
                found=f"{mode.cores:g} cores",
                allowed=f"1 to {self.n_cores}",
            )

        def step(clock: str) -> float:
            return resolve(clock, getattr(mode, clock), getattr(self.steps(), clock).tolist())

        return mode._replace(
            cpu_mhz=step("cpu_mhz"), gpu_mhz=step("gpu_mhz"), emc_mhz=step("emc_mhz")
        )


def as_rows(modes: ArrayLike | Sequence[Mode]) -> Numbers:
    """Return modes as floats, shape (n, 6); the last two parts of rows may be left out.

    Rows of four numbers have the whole GPU on, and rows of five no power limit. Raises
    PredictionError: a mode has other than four to six numbers, one that is not above zero, more
    than the whole GPU, or a limit below zero.
    """
    rows = np.asarray(modes, float)
    if rows.size == 0:
        rows = rows.reshape(-1, N_PARTS)
    n_missing = N_PARTS - rows.shape[1] if rows.ndim == 2 else 0
    if 0 < n_missing <= len(_DEFAULTS):
        missing = np.broadcast_to(_DEFAULTS[-n_missing:], (len(rows), n_missing))
        rows = np.column_stack([rows, missing])
    if rows.ndim != 2 or rows.shape[1] != N_PARTS:
        raise PredictionError(
            f"power modes of shape {rows.shape}",
            allowed=f"for each mode {', '.join(Mode._fields)}; the last two may be left out",
        )
    is_valid = (rows >= _LEAST) & (rows <= _MOST)
    if not is_valid.all():
        raise PredictionError(
            f"a power mode of {Mode(*rows[~is_valid.all(1)][0])}",
            allowed="numbers above zero, no more than the whole GPU, no limit below zero",
        )
    return rows


def logs(modes: Numbers) -> Numbers:
    """Return the logarithm of each part of modes (n, 6); zero for `NO_LIMIT`."""
    return np.log(np.where(modes == NO_LIMIT, 1.0, modes))
