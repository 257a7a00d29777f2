"""Mode table: time and power of one workload on one device, mode by mode.

What predictors, scores and schedulers learn from and are judged on. Tables are CSV files of
`columns.SWEEP_COLUMNS`, compressed where the name ends in .gz; a file may hold several workloads.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.columns import MODE_PARTS, POWER_SCOPES
from epochwatt.errors import ConfigError
from epochwatt.tables import cell_text, checked_rows, filled, write_table

Numbers = NDArray[np.float64]
Provenance = Literal["measured", "public", "simulated", "fake"]
Task = Literal["train", "infer"]
Scope = Literal["", *POWER_SCOPES]  # type: ignore[valid-type]

# the columns of numbers that are above zero where they are known
POSITIVE = (*MODE_PARTS, "batch_size", "n_minibatches", "time_s", "power_w")


class Workload(NamedTuple):
    """Columns that all rows of a table share, named as in `columns.SWEEP_COLUMNS`."""

    sweep: str
    provenance: str
    device: str
    instance: str
    workload: str
    task: str
    batch_size: int | None
    precision: str
    work: str


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """One mode of one workload, measured once: a row of the file, in its order and units."""

    sweep: str
    provenance: Provenance
    device: str
    instance: str = ""
    workload: str
    task: Task
    batch_size: int | None = None
    precision: Literal["", "fp32", "tf32", "fp16", "bf16"] = ""
    work: str = "mini-batch"
    cores: int | None = None
    cpu_mhz: float | None = None
    gpu_mhz: float | None = None
    emc_mhz: float | None = None
    gpu_share: float | None = None
    power_limit_w: float | None = None
    repeat: int = 0
    n_minibatches: int | None = None
    time_s: float
    time_sd_s: float | None = None
    power_w: float | None = None
    power_scope: Scope = ""
    valid: bool = True
    flags: str = ""

    def __post_init__(self) -> None:
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value:g}; a finite number above zero is allowed")
        if not self.sweep or not self.device or not self.workload:
            raise ValueError("sweep, device and workload may not be empty")
        if self.power_w is not None and not self.power_scope:
            raise ValueError("power_w needs a power_scope, which says what it is the power of")

    @property
    def key(self) -> Workload:
        """The workload that it is a row of."""
        return Workload(*(getattr(self, name) for name in Workload._fields))


@dataclass(frozen=True, eq=False)
class ModeTable:
    """One workload on one device, in every mode that was tried."""

    key: Workload  # what the rows share
    rows: tuple[SweepRow, ...]  # in the order of the file

    def column(self, name: str) -> Numbers:
        """Return a column of numbers, shape (n,); NaN where a cell is empty."""
        values = (getattr(row, name) for row in self.rows)
        return np.array([np.nan if value is None else value for value in values], float)

    @property
    def modes(self) -> Numbers:
        """Parts of each row's mode, `columns.MODE_PARTS`, shape (n, 6); NaN where not known."""
        return np.column_stack([self.column(name) for name in MODE_PARTS])

    @property
    def power_scope(self) -> str:
        """Scope of the power; empty: no row has one."""
        return next((row.power_scope for row in self.rows if row.power_scope), "")

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the mode that some row has a number of."""
        return tuple(name for name in MODE_PARTS if not np.isnan(self.column(name)).all())

    def varied(self) -> tuple[str, ...]:
        """Return the parts of a mode that differ among the valid rows, in order."""
        rows = self.valid().rows
        return tuple(name for name in MODE_PARTS if len({getattr(row, name) for row in rows}) > 1)

    def valid(self) -> "ModeTable":
        """Return the table without its invalid rows."""
        return ModeTable(self.key, tuple(row for row in self.rows if row.valid))


def tables_of(rows: Iterable[SweepRow]) -> list[ModeTable]:
    """Group rows into a table per workload, in the order of their first rows.

    Raises ConfigError: a workload has power of several scopes, which are never mixed.
    """
    grouped: dict[Workload, list[SweepRow]] = defaultdict(list)
    for row in rows:
        grouped[row.key].append(row)
    for key, its_rows in grouped.items():
        if len(scopes := {row.power_scope for row in its_rows} - {""}) > 1:
            raise ConfigError(
                "power of several scopes in one table",
                where=f"{key.sweep}: {key.workload}",
                found=", ".join(sorted(scopes)),
                allowed="one",
                do="give each its own sweep",
            )
    return [ModeTable(key, tuple(its_rows)) for key, its_rows in grouped.items()]


def read_mode_tables(path: Path) -> list[ModeTable]:
    """Read the mode tables of a file, one per workload.

    Raises ConfigError: it cannot be read, holds no row, or a cell is not allowed.
    """
    rows = [row for _, _, row in checked_rows(SweepRow, path, filled)]
    if not rows:
        raise ConfigError("a table of modes without a row", where=str(path))
    return tables_of(rows)


def write_mode_tables(path: Path, tables: Sequence[ModeTable]) -> None:
    """Write tables as one file, whole or not at all. Raises RecordWriteError."""
    rows = (row_cells(row) for table in tables for row in table.rows)
    write_table(path, "a table of modes", columns.names(columns.SWEEP_COLUMNS), rows)


def row_cells(row: SweepRow) -> list[object]:
    """Return the cells of a row."""
    return [cell_text(value) for value in astuple(row)]
