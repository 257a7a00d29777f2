"""Keep a device's ceilings in `measured/{ceilings}/`, a folder per mode (board side: Python 3.6).

Beside the record, `mode.json`, lie the sampler's files and their checksums, as of a mode of a
sweep (`records.mode_folder`).
"""

import os
from typing import Any, Dict, Mapping, NamedTuple

from epochwatt.board.records import checksums, files, record_shapes
from epochwatt.board.records.mode_folder import RECORD, ModeFolders, again
from epochwatt.board.records.run_folder import TELEMETRY
from epochwatt.board.records.shapes import Document

CeilingRecord = NamedTuple(
    "CeilingRecord",
    [
        ("meta", Dict[str, Any]),  # mode.json
        ("telemetry", Dict[str, Any]),  # telemetry.json, the sampler's statistics; empty: none
        ("folder", str),  # where the samples lie (records.samples)
    ],
)


class CeilingFolder(ModeFolders):
    """The modes in which ceilings of one device were measured (see `ModeFolders`)."""

    def finish(self, mode: Mapping[str, float], meta: Document) -> None:
        """Complete the attempt at a mode; RecordWriteError: it counts as not measured."""
        whole = dict(meta, checksums=checksums.SUMS)
        self.complete(mode, lambda folder: files.write_json(os.path.join(folder, RECORD), whole))

    def read(self, mode: Mapping[str, float]) -> CeilingRecord:
        """Read and check a mode's record.

        Raises RecordError; DamagedError where its files are not as they were written.
        """
        path = self.mode_path(mode)
        with again(path):
            meta = self.read_meta(mode, record_shapes.CEILINGS, "ceilings")
            samples_file, telemetry = os.path.join(path, TELEMETRY), {}
            if TELEMETRY in self.sums(mode):
                content = checksums.read_checked(samples_file, self.sums(mode))
                telemetry = files.parse_json(content, samples_file, record_shapes.TELEMETRY)
        return CeilingRecord(meta, telemetry, path)

    def verify(self, mode: Mapping[str, float]) -> CeilingRecord:
        """Read a mode's record after comparing all of its files, samples too; raises as `read`."""
        record = self.read(mode)
        with again(record.folder):
            self.compare(mode, record.telemetry)
        return record
