"""Pass the facts of a sweep to its jobs: plain values for its table, the list of its modes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.sweeps.modes import SweepMode


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
