"""Keep a run in `measured/{run}/`, one folder per finished epoch (board side: Python 3.6 grammar).

::

    measured/{run}/epoch-0/record.json        what was done, when, on what, the epoch's sums
                          /minibatches.npy    wait, copy, compute: float32 seconds, shape (n, 3)
                          /telemetry.json     the sampler's statistics
                          /samples-*.csv      its samples, one file per source
                          /checkpoint.npz     weights and optimiser after it (latest epoch only)
                          /SHA256SUMS         what all of these were when the epoch ended; a
                                              checkpoint that went is no longer in it
                  /epoch-1.unfinished/        an attempt under way, or one that died

An epoch's folder is filled under its temporary name and renamed once, so what bears the final name
is whole. Losing it costs board time: only `discard` takes a finished epoch away, into the trash.
"""

import hashlib
import io
import itertools
import logging
import os
import re
import shutil
import time
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from epochwatt import columns
from epochwatt.board.records import checksums, files, record_shapes, shapes
from epochwatt.board.records.samples import names_cut
from epochwatt.board.records.shapes import Document
from epochwatt.errors import DamagedError, RecordError

log = logging.getLogger(__name__)

RECORD = "record.json"
MINIBATCHES = "minibatches.npy"
CHECKPOINT = "checkpoint.npz"
OLD_CHECKPOINT = "checkpoint.pt"  # torch's own form, written before there was the other
TELEMETRY = "telemetry.json"
ATTEMPT = "attempt.json"

EpochRecord = NamedTuple(
    "EpochRecord",
    [
        ("meta", Dict[str, Any]),  # record.json
        ("minibatch_s", np.ndarray),  # (n, 3) float32: wait, copy, compute
        ("telemetry", Dict[str, Any]),  # telemetry.json, the sampler's statistics; empty: none
        ("folder", str),  # where the samples lie (records.samples)
    ],
)


class RunFolder:
    """The measured epochs of one run, and the attempt under way.

    Parameters
    ----------
    root : folder that holds all runs (`measured/`)
    run : id of the run
    """

    def __init__(self, root: str, run: str) -> None:
        self.run = run
        self.root = str(root)
        self.path = os.path.join(self.root, run)

    def epoch_path(self, epoch: int) -> str:
        """Return the folder of a finished epoch."""
        return os.path.join(self.path, f"epoch-{epoch}")

    def attempt_path(self, epoch: int) -> str:
        """Return the folder of an epoch under way."""
        return self.epoch_path(epoch) + ".unfinished"

    def checkpoint_path(self, epoch: int) -> str:
        """Return where the checkpoint after `epoch` lies, if it is still there."""
        old = os.path.join(self.epoch_path(epoch), OLD_CHECKPOINT)
        return old if os.path.exists(old) else os.path.join(self.epoch_path(epoch), CHECKPOINT)

    def checkpoint_fault(self, epoch: int) -> str:
        """Return how the checkpoint after `epoch`, which is there, was altered; empty: it was not.

        The checkpoint of an epoch from before there were checksums is taken as it is.
        """
        try:
            path = self.checkpoint_path(epoch)
            return checksums.fault(path, checksums.read_sums(self.epoch_path(epoch)))
        except (RecordError, OSError) as error:
            return str(error)

    def set_checkpoint_aside(self, epoch: int) -> str:
        """Move the checkpoint after `epoch` to `.trash`, where it can be looked at; return where.

        Raises RecordWriteError.
        """
        source = self.checkpoint_path(epoch)
        folder = os.path.join(self._new_trash(), os.path.basename(self.epoch_path(epoch)))
        with files.writing("the trash", folder):
            os.makedirs(folder)
            target = os.path.join(folder, os.path.basename(source))
            os.rename(source, target)
            self._forget_checkpoint(epoch, os.path.basename(source))
        return target

    def _forget_checkpoint(self, epoch: int, name: str) -> None:
        """Take a checkpoint that is gone out of the checksums, which `sha256sum -c` reads, too."""
        try:
            checksums.forget(self.epoch_path(epoch), name)
        except (OSError, RecordError) as error:  # nobody here looks for it
            log.warning("%s still lists %s: %s", self.epoch_path(epoch), name, error)

    def measured(self) -> List[int]:
        """Return the numbers of the finished epochs, ascending."""
        if not os.path.isdir(self.path):
            return []
        matches = (re.match(r"epoch-(\d+)$", name) for name in os.listdir(self.path))
        return sorted(int(match.group(1)) for match in matches if match)

    def has(self, epoch: int) -> bool:
        """Return whether the epoch is measured."""
        return os.path.isdir(self.epoch_path(epoch))

    def begin(self, epoch: int) -> Optional[Dict[str, Any]]:
        """Open an attempt at an epoch; return what an earlier, unfinished attempt left, or None."""
        attempt = self.attempt_path(epoch)
        earlier = None
        with files.writing(f"the attempt at epoch {epoch}", attempt, files.UNMEASURED):
            if os.path.isdir(attempt) and not os.path.islink(attempt):
                earlier = self._read_attempt(attempt)
                shutil.rmtree(attempt)
            elif os.path.lexists(attempt):  # a file of that name must not block the run
                earlier = {"started_unix_s": os.lstat(attempt).st_mtime}
                os.unlink(attempt)
            os.makedirs(attempt)
            files.write_json(
                os.path.join(attempt, ATTEMPT), {"started_unix_s": time.time(), "pid": os.getpid()}
            )
        return earlier

    @staticmethod
    def _read_attempt(attempt: str) -> Dict[str, Any]:
        """Return when an attempt began; where its file is damaged, when its folder was changed."""
        try:
            content = files.read_json(os.path.join(attempt, ATTEMPT), record_shapes.ATTEMPT)
            return {"started_unix_s": content["started_unix_s"]}
        except RecordError:  # died before it could say when it began
            return {"started_unix_s": os.path.getmtime(attempt)}

    def finish(self, epoch: int, meta: Document, minibatch_s: np.ndarray) -> None:
        """Complete the attempt: write the record, flush everything, give it its final name.

        A checkpoint is expected in `attempt_path(epoch)` already; the one of the epoch before goes.
        Raises RecordWriteError; the epoch then counts as not measured.
        """
        attempt = self.attempt_path(epoch)
        with files.writing(f"the record of epoch {epoch}", attempt, files.UNMEASURED):
            os.unlink(os.path.join(attempt, ATTEMPT))
            write_record(attempt, dict(meta, checksums=checksums.SUMS), minibatch_s)
            checksums.write_sums(attempt)
            checkpoint = os.path.join(attempt, CHECKPOINT)
            if os.path.exists(checkpoint):
                files.sync_file(checkpoint, drop_from_cache=True)
            files.sync_file(attempt)
            os.rename(attempt, self.epoch_path(epoch))
            files.sync_file(self.path)
        previous = self.checkpoint_path(epoch - 1)
        if os.path.exists(self.checkpoint_path(epoch)) and os.path.exists(previous):
            try:
                os.unlink(previous)
            except OSError as error:  # costs space, not the epoch, which is whole and in place
                log.warning("cannot remove %s: %s", previous, error.strerror)
            else:
                self._forget_checkpoint(epoch - 1, os.path.basename(previous))

    def read(self, epoch: int) -> EpochRecord:
        """Read and check one epoch's record; raises RecordError: file, fault and what to do.

        It is a DamagedError where its files are not as they were written.
        """
        try:
            return self._read(self.epoch_path(epoch), epoch)
        except RecordError as error:
            again = f"to measure the epoch again: epochwatt discard {self.run} {epoch}"
            raise type(error)(
                error.problem,
                where=error.where,
                found=error.found,
                allowed=error.allowed,
                do=f"{error.do}; or {again}" if error.do else again,
            ) from error

    def verify(self, epoch: int) -> EpochRecord:
        """Read an epoch's record after comparing all of its files, samples too; raises as `read`.

        The checkpoint may be gone or damaged: that costs the next epoch's weights, not this epoch.
        So may samples that could not be written to their end: that costs what they would tell.
        """
        record = self.read(epoch)
        sums = checksums.read_sums(record.folder) or {}
        free = {CHECKPOINT, OLD_CHECKPOINT} | names_cut(record.telemetry)
        for name in sorted(set(sums) - free):
            checksums.read_checked(os.path.join(record.folder, name), sums)
        return record

    def _read(self, path: str, epoch: int) -> EpochRecord:
        sums = checksums.read_sums(path)
        meta = self._read_meta(os.path.join(path, RECORD), epoch, sums)
        if sums is None and "checksums" in meta:
            raise DamagedError(f"{checksums.SUMS} is missing in {path}")
        return read_arrays(path, meta, sums)

    def _read_meta(self, path: str, epoch: int, sums: Optional[Dict[str, str]]) -> Dict[str, Any]:
        content = files.read_bytes(path)
        damage = checksums.fault(path, sums, content)
        try:
            meta = files.parse_json(content, path)
            check_meta(meta, path, self.run, epoch)
        except RecordError as error:
            if damage:  # what it says no longer matters, but it helps to see what was done to it
                raise DamagedError(f"{damage} ({error})") from error
            raise
        if damage:
            raise DamagedError(damage)
        return dict(meta)

    def _new_trash(self) -> str:
        return new_trash(self.root, self.run)

    def discard(self, epoch: Optional[int] = None) -> List[str]:
        """Move an epoch (or the whole run) to `.trash` beside the runs; return where it went."""
        trash = self._new_trash()
        if epoch is None:
            sources = [os.path.join(self.path, n) for n in sorted(os.listdir(self.path))]
        else:
            sources = [self.epoch_path(epoch)]
        os.makedirs(trash)
        moved = []
        for source in sources:
            target = os.path.join(trash, os.path.basename(source))
            os.rename(source, target)
            moved.append(target)
        if epoch is None:
            os.rmdir(self.path)
        return moved


def new_trash(root: str, name: str) -> str:
    """Return a folder of a run or sweep in `.trash` that is not there yet."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    stamps = itertools.chain([stamp], (f"{stamp}-{n}" for n in itertools.count(2)))
    trashes = (os.path.join(root, ".trash", stamp, name) for stamp in stamps)
    return next(path for path in trashes if not os.path.exists(path))


def read_arrays(path: str, meta: Document, sums: Optional[Dict[str, str]]) -> EpochRecord:
    """Read and check what lies beside a record: mini-batch times and the sampler's statistics.

    Raises RecordError: a file cannot be read, or contradicts the record; DamagedError: it was
    altered.
    """
    array_path = os.path.join(path, MINIBATCHES)
    content = checksums.read_checked(array_path, sums)
    if hashlib.sha256(content).hexdigest() != meta["minibatches_sha256"]:
        raise DamagedError(f"{array_path} was altered: its SHA-256 differs")
    try:
        minibatch_s = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:
        raise DamagedError(f"cannot read {array_path}: {error}") from error
    check_minibatches(minibatch_s, meta, array_path)
    telemetry_path, telemetry = os.path.join(path, TELEMETRY), {}
    if os.path.exists(telemetry_path) or TELEMETRY in (sums or {}):
        content = checksums.read_checked(telemetry_path, sums)
        telemetry = files.parse_json(content, telemetry_path, record_shapes.TELEMETRY)
    return EpochRecord(meta, minibatch_s, telemetry, path)


def write_record(
    folder: str,
    meta: Document,
    minibatch_s: np.ndarray,
    durable: bool = True,
    name: str = RECORD,
) -> Dict[str, Any]:
    """Write a record and its mini-batch times into a folder; return the record as written.

    Parameters
    ----------
    folder : where
    minibatch_s : (n, 3), s
    durable : as for `files.write_bytes`
    name : of the record's file
    """
    buffer = io.BytesIO()  # numpy's own writer drops the errno of a full disk
    np.save(buffer, minibatch_s.astype(np.float32), allow_pickle=False)
    content = buffer.getvalue()
    files.write_bytes(os.path.join(folder, MINIBATCHES), content, durable)
    meta = dict(meta, minibatches_sha256=hashlib.sha256(content).hexdigest())
    files.write_json(os.path.join(folder, name), meta, durable)
    return meta


def check_meta(meta: Any, path: str, run: str, epoch: int) -> None:
    """Raise RecordError, with the reason, unless this is the record of that epoch of that run."""
    if not isinstance(meta, dict):
        raise RecordError(f"{path} holds no record")
    version = meta.get("schema_version")
    if version not in columns.READABLE_SCHEMAS:
        raise RecordError(
            f"{path} has schema version {version}",
            allowed=columns.READABLE_SCHEMAS,
            do="read it with the version of epochwatt that wrote it",
        )
    wrong = shapes.problem(meta, record_shapes.RECORD)
    if wrong is None and meta.get("board") and "events" not in meta:
        wrong = "events is missing"
    if wrong is None and meta["t_end_mono_s"] - meta["t_start_mono_s"] > record_shapes.LONGEST_S:
        wrong = f"its stamps lie more than {record_shapes.LONGEST_S:.0f} s apart"
    if wrong is not None:
        raise RecordError(f"{path} cannot be read: {wrong}")
    if meta["run"] != run or meta["epoch"] != epoch:
        raise RecordError(
            "{} says it is epoch {} of {}; was the folder renamed by hand?".format(
                path, meta["epoch"], meta["run"]
            )
        )


def check_minibatches(minibatch_s: np.ndarray, meta: Document, path: str) -> None:
    """Refuse times that do not fit their record; RecordError says why."""
    shape = (meta["n_minibatches"], len(columns.MINIBATCH_COLUMNS))
    if minibatch_s.shape != shape or minibatch_s.dtype != np.float32:
        raise RecordError(
            f"{path} holds {minibatch_s.dtype} {minibatch_s.shape}, the record says float32 {shape}"
        )
    sums = minibatch_s.sum(axis=0, dtype=np.float64)
    for name, total in zip(columns.MINIBATCH_COLUMNS, sums):
        if not abs(total - meta[name]) <= 1e-6 + 1e-5 * meta[name]:
            raise RecordError(
                f"{path}: {name} sums to {total:.9g} s, the record says {meta[name]:.9g} s"
            )


def write_receipt(path: str, folder: RunFolder, first: int, last: int) -> None:
    """Write the receipt of epochs `first`..`last` after checking each record.

    Raises RecordError for an epoch that is missing or damaged, RecordWriteError when it cannot be
    written.
    """
    epochs = []
    for epoch in range(first, last + 1):
        record = folder.read(epoch)
        epochs.append(
            {
                "epoch": epoch,
                "measured_unix_s": record.meta["t_start_unix_s"],
                "flags": record.meta["flags"],
                "record_sha256": files.sha256_of(os.path.join(folder.epoch_path(epoch), RECORD)),
            }
        )
    with files.writing("the receipt", path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_json(path, {"run": folder.run, "first": first, "last": last, "epochs": epochs})
