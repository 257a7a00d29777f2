"""Read and write points below a roof: what workloads ask for, and how long that took in a mode.

A CSV file of the columns of `Point`: measured by this tool, simulated, or measured by others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epochwatt.sweeps.mode_table import Provenance, Scope, Task
from epochwatt.tables import checked_rows, filled, write_entries

Processor = Literal["cpu", "gpu"]
Precision = Literal["fp32", "tf32", "fp16", "bf16"]
POSITIVE = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "batch_size", "time_s", "power_w")


@dataclass(frozen=True, kw_only=True)
class InMode:
    """A row about one mode of a device; of the mode what is known."""

    provenance: Provenance
    device: str
    instance: str = ""
    cores: int | None = None
    cpu_mhz: float | None = None
    gpu_mhz: float | None = None
    emc_mhz: float | None = None

    @property
    def mode(self) -> tuple[float | None, ...]:
        """Cores, CPU, GPU and memory clock, MHz."""
        return (self.cores, self.cpu_mhz, self.gpu_mhz, self.emc_mhz)


@dataclass(frozen=True, kw_only=True)
class RunInMode(InMode):
    """A run with its workload and the mode of its device."""

    run: str  # its id
    epochs: str = ""  # paths of its epochs.csv and of the counted kernels; empty: not needed
    counts: str = ""
    precision: Precision
    workload: str
    task: Task
    batch_size: int


@dataclass(frozen=True, kw_only=True)
class Point(InMode):
    """One workload in one mode: a row of the file, in its order and units."""

    processor: Processor
    precision: Precision
    workload: str  # network, or kernel of one
    task: Task
    batch_size: int | None = None
    flops: float  # of the whole of it, counted; each array read or written once
    bytes: float
    launches: int | None = None  # kernels; None: not known
    time_s: float  # of a mini-batch on the processor, or of the kernel
    power_w: float | None = None  # mean during it; None: not measured
    power_scope: Scope = ""
    source: str = ""  # who measured, where it was not this tool

    def __post_init__(self) -> None:
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} is {value:g}; a finite number above zero is allowed")
        if min(self.flops, self.bytes) < 0:
            raise ValueError("flops and bytes may not be below zero")

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Operations per byte; None where no byte is counted."""
        return self.flops / self.bytes if self.bytes else None


def read_points(path: str | Path) -> list[Point]:
    """Return the points of a file. Raises ConfigError: file, line, column, what is allowed."""
    return [row for _, _, row in checked_rows(Point, Path(path), filled)]


def write_points(path: str | Path, points: Iterable[Point]) -> None:
    """Write points as one file, whole or not at all. Raises RecordWriteError."""
    write_entries(Path(path), "points below a roof", Point, points, ".9g")
