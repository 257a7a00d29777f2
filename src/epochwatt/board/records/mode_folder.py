"""Keep sweeps and ceilings in `measured/`, a folder per mode (board side: Python 3.6 grammar).

::

    measured/{sweep}/mode-c12-2201.6-1300.5-3199/mode.json      what was done, when, on what
                                                /minibatches.npy  wait, copy, compute: float32 s
                                                /telemetry.json   the sampler's statistics
                                                /samples-*.csv    its samples
                                                /SHA256SUMS       of all of these
                    /mode-c12-2201.6-1300.5-3199.unfinished/     an attempt under way, or dead

Ceilings have no mini-batches. A folder's name holds no place in a grid: a longer grid of the same
sweep keeps what is measured.
"""

import os
import re
from typing import TYPE_CHECKING, List, Mapping, NamedTuple

from epochwatt.board.records import checksums, files, record_shapes
from epochwatt.board.records.run_folder import MeasuredFolder, Sums, read_telemetry, write_record
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS

if TYPE_CHECKING:
    import numpy as np

RECORD = "mode.json"
_NAME = re.compile(r"mode-c[^-]+(-[^-]+){3}$")


def mode_name(mode: Mapping[str, float]) -> str:
    """Return the folder name of a mode: cores and clocks, MHz; `x` for one that is left alone.

    >>> mode_name({"cores": 4, "gpu_mhz": 318.75})
    'mode-c4-x-318.75-x'
    """
    parts = ["x" if mode.get(part) is None else f"{mode[part]:.10g}" for part in CLOCKS]
    return "mode-c" + "-".join(parts)


class ModeFolders(MeasuredFolder):
    """Measured modes below one folder (see `MeasuredFolder`); the key is a mode."""

    record_name, key = RECORD, "mode"

    def folder_name(self, key: Mapping[str, float]) -> str:
        """Return `mode_name`."""
        return mode_name(key)

    def measured(self) -> List[str]:
        """Return the names of the measured modes, in order."""
        names = os.listdir(self.path) if os.path.isdir(self.path) else []
        return sorted(n for n in names if _NAME.match(n) and not n.endswith(".unfinished"))


class SweepFolder(ModeFolders):
    """The measured modes of one sweep; a record's `meta` has what `epochs` needs of an epoch's."""

    shape, owner = record_shapes.MODE, "sweep"

    def finish(self, mode: Mapping[str, float], meta: Document, minibatch_s: "np.ndarray") -> None:
        """Complete the attempt at a mode with its times, (n, 3) s (see `complete`)."""
        whole = dict(meta, checksums=checksums.SUMS)
        self.complete(mode, lambda folder: write_record(folder, whole, minibatch_s, name=RECORD))


class CeilingRecord(NamedTuple):
    """Record of the ceilings of a device in one mode."""

    meta: Document  # mode.json
    telemetry: Document  # telemetry.json, the sampler's statistics; empty: none
    folder: str  # where the samples lie (records.samples)


class CeilingFolder(ModeFolders):
    """The modes in which ceilings of one device were measured."""

    shape, owner = record_shapes.CEILINGS, "ceilings"

    def finish(self, mode: Mapping[str, float], meta: Document) -> None:
        """Complete the attempt at a mode (see `complete`)."""
        whole = dict(meta, checksums=checksums.SUMS)
        self.complete(mode, lambda folder: files.write_json(os.path.join(folder, RECORD), whole))

    def _read_beside(self, path: str, meta: Document, sums: Sums) -> CeilingRecord:
        return CeilingRecord(meta, read_telemetry(path, sums), path)
