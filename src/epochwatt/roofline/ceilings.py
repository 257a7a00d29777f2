"""Read and write tables of ceilings: what a device reached with micro-kernels of known work.

A CSV file of `columns.CEILING_COLUMNS`, one row per mode, precision, kernel and size. How they are
measured: `epochwatt.board.training.ceilings`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from epochwatt import columns
from epochwatt.errors import ConfigError
from epochwatt.roofline.points import InMode, Precision, Processor
from epochwatt.sweeps.mode_table import Scope
from epochwatt.tables import cell_text, checked_rows, filled, write_table

CEILING_NAMES = columns.names(columns.CEILING_COLUMNS)
POSITIVE = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "size", "repeats", "time_s", "best_s")
NOT_NEGATIVE = ("flops", "bytes", "time_sd_s", "power_w", "clock_mhz")


@dataclass(frozen=True, kw_only=True)
class CeilingRow(InMode):
    """One micro-kernel of one size in one mode: a row of the file, in its order and units."""

    processor: Processor
    precision: Precision
    kernel: Literal["copy", "triad", "matmul", "fma", "launch"]
    size: int
    flops: float
    bytes: float
    repeats: int
    time_s: float
    time_sd_s: float | None = None
    best_s: float
    power_w: float | None = None
    power_scope: Scope = ""
    clock_mhz: float | None = None
    valid: bool = True
    flags: str = ""

    def __post_init__(self) -> None:
        for name in (*POSITIVE, *NOT_NEGATIVE):
            value = getattr(self, name)
            lowest = "above zero" if name in POSITIVE else "of zero or more"
            if value is None:
                continue
            if not np.isfinite(value) or value < 0 or (value == 0 and name in POSITIVE):
                raise ValueError(f"{name} is {value:g}; a finite number {lowest} is allowed")
        if not self.device:
            raise ValueError("device may not be empty")
        if self.best_s > self.time_s:
            raise ValueError(f"best_s is {self.best_s:g}, above time_s ({self.time_s:g})")
        if self.power_w is not None and not self.power_scope:
            raise ValueError("power_w needs a power_scope, which says what it is the power of")

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Operations per byte; None: it moves none."""
        return self.flops / self.bytes if self.bytes else None


def read_ceilings(path: str | Path) -> list[CeilingRow]:
    """Return the rows of a file, in its order, those that are not valid too.

    Raises ConfigError: it cannot be read, holds no row, or a cell is wrong: file, line, column,
    allowed.
    """
    rows = [row for _, _, row in checked_rows(CeilingRow, Path(path), filled)]
    if not rows:
        raise ConfigError("a table of ceilings without a row", where=str(path))
    return rows


def write_ceilings(path: str | Path, rows: Iterable[CeilingRow]) -> None:
    """Write rows as one file, whole or not at all. Raises RecordWriteError."""
    cells = ([cell_text(getattr(row, name)) for name in CEILING_NAMES] for row in rows)
    write_table(Path(path), "a table of ceilings", CEILING_NAMES, cells)
