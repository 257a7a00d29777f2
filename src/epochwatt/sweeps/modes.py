"""Modes of a sweep, as they are named, set and computed with, and what its jobs are told."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    import numpy as np

    rows = [[math.nan if part is None else float(part) for part in mode] + [1.0] for mode in modes]
    return np.array(rows, float).reshape(-1, len(CLOCKS) + 1)


@dataclass(frozen=True, kw_only=True)
class SweepFacts:
    """One sweep; the names are those of the columns of its table."""

    name: str  # in config/sweeps.yaml: the `sweep` of the table
    id: str  # of its records in `measured/`
    provenance: Literal["measured", "simulated", "fake"]
    device: str
    instance: str
    workload: str
    task: Literal["train", "infer"]
    batch_size: int
    precision: Literal["", "fp32", "tf32", "fp16", "bf16"]
    factors: str  # canonical JSON of its factors
    # numbers of each mode, `epochwatt.sweeps.grids.SweepMode`; None: left as it is
    modes: Sequence[Sequence[Any]]

    def columns(self) -> Document:
        """Return the cells that all rows of its table share, by column."""
        return {
            "sweep": self.name,
            "provenance": self.provenance,
            "device": self.device,
            "instance": self.instance,
            "workload": self.workload,
            "task": self.task,
            "batch_size": self.batch_size,
            "precision": self.precision,
        }

    def mode_settings(self) -> list[dict[str, float]]:
        """Return what each mode sets, in order."""
        return [SweepMode(*mode).settings() for mode in self.modes]


def write_modes(path: str, settings: Sequence[Mapping[str, float]]) -> None:
    """Write the list of modes that the measuring side reads. Raises RecordWriteError."""
    with files.writing("the list of modes", path):
        Path(path).write_text(json.dumps(list(settings)) + "\n", "utf-8")
