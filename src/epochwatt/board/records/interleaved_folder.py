"""Keep training beside requests in `measured/interleaved/{name}/` (board side: Python 3.6).

::

    measured/interleaved/20261123T101500-lenet-mobilenet/record.json   plan, circumstances, counts
                                                        /times.npz     of requests and training
                                                        /telemetry.json, samples-*.csv
                                                        /SHA256SUMS    of all of these

The folder is filled under a temporary name and renamed once. Times are those of the monotonic
clock, s; those of requests are NaN where one was not served.
"""

import io
import os
from typing import Any, Dict, NamedTuple

import numpy as np

from epochwatt import columns
from epochwatt.board.records import checksums, files
from epochwatt.board.records.run_folder import RECORD
from epochwatt.board.records.shapes import AMOUNT, COUNT, NUMBER, OBJECT, TEXT, TRUTH, Document
from epochwatt.errors import DamagedError, RecordError

FOLDER, TIMES = "interleaved", "times.npz"
UNMEASURED = "nothing of this measurement is kept"
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

InterleavedRecord = NamedTuple(
    "InterleavedRecord",
    [
        ("meta", Dict[str, Any]),  # record.json
        ("requests", Dict[str, np.ndarray]),  # REQUESTS -> (n,) float64 s, or bool
        ("training", Dict[str, np.ndarray]),  # TRAINING -> (m,) float64 s
        ("folder", str),  # where the samples lie (records.samples)
    ],
)


def begin(root: str, name: str) -> str:
    """Open the folder of a measurement under its temporary name and return it.

    Parameters
    ----------
    root : folder that holds all measurements (`measured/`)
    """
    attempt = os.path.join(root, FOLDER, name + ".unfinished")
    with files.writing("the record", attempt, UNMEASURED):
        os.makedirs(attempt)
    return attempt


def finish(attempt: str, meta: Document, log: Any) -> str:
    """Write the record, flush everything and give the folder its final name; return that.

    Parameters
    ----------
    attempt : what `begin` returned
    log : has `REQUESTS` and `TRAINING` (`training.interleave.scheduler.Log`)

    Raises RecordWriteError: nothing of it counts.
    """
    folder = attempt[: -len(".unfinished")]
    arrays: Dict[str, Any] = {
        name: np.array(getattr(log, name), np.float64) for name in REQUESTS + TRAINING
    }
    arrays["refused"] = np.array(log.refused, bool)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    with files.writing("the record", attempt, UNMEASURED):
        files.write_bytes(os.path.join(attempt, TIMES), content.getvalue())
        files.write_json(os.path.join(attempt, RECORD), dict(meta, checksums=checksums.SUMS))
        checksums.write_sums(attempt)
        files.sync_file(attempt)
        os.rename(attempt, folder)
        files.sync_file(os.path.dirname(folder))
    return folder


def read(folder: str) -> InterleavedRecord:
    """Read and check the record of a measurement.

    Raises RecordError; DamagedError where its files are not as they were written.
    """
    sums = checksums.read_sums(folder)
    if sums is None:
        raise DamagedError(f"{checksums.SUMS} is missing in {folder}")
    record_file = os.path.join(folder, RECORD)
    meta = files.parse_json(checksums.read_checked(record_file, sums), record_file, SHAPE)
    if meta["schema_version"] not in columns.READABLE_SCHEMAS:
        raise RecordError(
            f"{record_file} cannot be read: schema version {meta['schema_version']}",
            allowed=[str(version) for version in columns.READABLE_SCHEMAS],
        )
    times_file = os.path.join(folder, TIMES)
    with np.load(io.BytesIO(checksums.read_checked(times_file, sums)), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    wrong = _fault(arrays)
    if wrong:
        raise RecordError(f"{times_file} cannot be read: {wrong}")
    return InterleavedRecord(
        dict(meta),
        {name: arrays[name] for name in REQUESTS},
        {name: arrays[name] for name in TRAINING},
        folder,
    )


def _fault(arrays: Dict[str, np.ndarray]) -> str:
    """Return what is wrong with the times, in words; empty: nothing."""
    for names in (REQUESTS, TRAINING):
        absent = [name for name in names if name not in arrays]
        if absent:
            return f"{absent[0]} is missing"
        if len({arrays[name].shape for name in names}) > 1 or arrays[names[0]].ndim != 1:
            return f"{', '.join(names)} are not of one length"
    return ""
