"""Keep training beside requests in `measured/interleaved/{name}/` (board side: Python 3.6).

::

    measured/interleaved/20261123T101500-lenet-mobilenet/record.json   plan, circumstances, counts
                                                        /times.npz     of requests and training
                                                        /telemetry.json, samples-*.csv
                                                        /SHA256SUMS    of all of these

Times are those of the monotonic clock, s; those of requests are NaN where one was not served.
"""

import io
import os
from typing import Any, Dict, NamedTuple

import numpy as np

from epochwatt.board.records import checksums, files
from epochwatt.board.records.run_folder import RECORD, MeasuredFolder, Sums
from epochwatt.board.records.shapes import AMOUNT, COUNT, NUMBER, OBJECT, TEXT, TRUTH, Document
from epochwatt.errors import RecordError

FOLDER, TIMES = "interleaved", "times.npz"
REQUESTS = ("arrival_s", "start_s", "end_s", "refused")
TRAINING = ("train_start_s", "train_end_s")
SHAPE = {
    "schema_version": COUNT,
    "plan": {
        "train": TEXT,
        "infer": TEXT,
        "rate_per_s": AMOUNT,
        "batch_size": COUNT,
        "train_batch_size": COUNT,
        "n_train": (None, COUNT),
        "seconds": AMOUNT,
        "arrivals": TEXT,
        "queue": COUNT,
    },
    "before": {"infer_s": [NUMBER], "train_s": [NUMBER]},
    "counts": OBJECT,
    "power": {"scope": (None, TEXT), "mean_w": (None, NUMBER)},
    "t_start_mono_s": NUMBER,
    "t_end_mono_s": NUMBER,
    "ended_early": TRUTH,
}


class InterleavedRecord(NamedTuple):
    """Record of training beside requests."""

    meta: Document  # record.json
    requests: Dict[str, np.ndarray]  # REQUESTS -> (n,) float64 s, or bool
    training: Dict[str, np.ndarray]  # TRAINING -> (m,) float64 s
    folder: str  # where the samples lie (records.samples)


class InterleavedFolder(MeasuredFolder):
    """Measurements of training beside requests (see `MeasuredFolder`); the key is a name."""

    shape = SHAPE

    def __init__(self, root: str) -> None:
        super().__init__(root, FOLDER)

    def finish(self, name: str, meta: Document, log: Any) -> str:
        """Write times and record, rename the attempt to the final folder; return that folder.

        `log`: has the lists `REQUESTS` and `TRAINING` (`training.interleave.scheduler.Log`)

        Raises RecordWriteError: a file cannot be written; the measurement then does not count.
        """
        arrays: Dict[str, Any] = {
            column: np.array(getattr(log, column), np.float64) for column in REQUESTS + TRAINING
        }
        arrays["refused"] = np.array(log.refused, bool)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)

        def write(attempt: str) -> None:
            files.write_bytes(os.path.join(attempt, TIMES), content.getvalue())
            whole = dict(meta, checksums=checksums.SUMS)
            files.write_json(os.path.join(attempt, RECORD), whole)

        self.complete(name, write)
        return self.path_of(name)

    def _read_beside(self, path: str, meta: Document, sums: Sums) -> InterleavedRecord:
        """Read and check `times.npz`; raises RecordError: an array is missing or too short."""
        times_file = os.path.join(path, TIMES)
        content = io.BytesIO(checksums.read_checked(times_file, sums))
        with np.load(content, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for names in (REQUESTS, TRAINING):
            absent = [name for name in names if name not in arrays]
            if absent:
                raise RecordError(f"{times_file} cannot be read: {absent[0]} is missing")
            if len({arrays[name].shape for name in names}) > 1 or arrays[names[0]].ndim != 1:
                raise RecordError(
                    f"{times_file} cannot be read: {', '.join(names)} are not of one length"
                )
        requests = {name: arrays[name] for name in REQUESTS}
        training = {name: arrays[name] for name in TRAINING}
        return InterleavedRecord(meta, requests, training, path)


def read(folder: str) -> InterleavedRecord:
    """Read and check the record in `folder`; raises RecordError, DamagedError if altered."""
    path, name = os.path.split(os.path.abspath(folder))
    record: InterleavedRecord = InterleavedFolder(os.path.dirname(path)).read(name)
    return record._replace(folder=folder)
