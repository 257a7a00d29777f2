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

Any measurement is kept as a `MeasuredFolder` does it: its folder is filled under a temporary name
and renamed once, so what bears the final name is whole. Losing it costs board time: only `discard`
takes a finished one away, into the trash.
"""

import hashlib
import io
import logging
import os
import re
import shutil
import time
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
)

from epochwatt import columns
from epochwatt.board.records import checksums, files, record_shapes, shapes
from epochwatt.board.records.samples import names_cut
from epochwatt.board.records.shapes import Document
from epochwatt.errors import DamagedError, RecordError

if TYPE_CHECKING:
    import numpy as np  # at run time where it is used: the workflow's start reads no array

log = logging.getLogger(__name__)

RECORD = "record.json"
MINIBATCHES = "minibatches.npy"
CHECKPOINT = "checkpoint.npz"
OLD_CHECKPOINT = "checkpoint.pt"  # torch's own form, written before there was the other
TELEMETRY = "telemetry.json"
ATTEMPT = "attempt.json"
_EPOCH = re.compile(r"epoch-\d+$")
SUM_TOLERANCE_S, SUM_TOLERANCE = 1e-6, 1e-5  # absolute and relative: the times are float32
Sums = Optional[Dict[str, str]]  # of a folder (`checksums.read_sums`)


class EpochRecord(NamedTuple):
    """Record of an epoch, or of a mode of a sweep."""

    meta: Document  # record.json
    minibatch_s: "np.ndarray"  # (n, 3) float32: wait, copy, compute
    telemetry: Document  # telemetry.json, the sampler's statistics; empty: none
    folder: str  # where the samples lie (records.samples)


class MeasuredFolder:
    """Measurements of one run, sweep or device, and the attempt under way.

    Each measurement has a key: the number of an epoch, a mode, or a name.

    `root`: folder that holds all measurements (`measured/`); `name`: id of the run, sweep or device

    Attributes:
    `record_name`: of the file that says what was measured
    `shape`: what readers of that file rely on (`records.shapes`)
    `owner`, `key`: under which names it holds `name` and its own key; empty: it does not
    """

    record_name = RECORD
    shape: Any = record_shapes.RECORD
    owner, key = "", ""

    def __init__(self, root: str, name: str) -> None:
        self.root, self.name = str(root), name
        self.path = os.path.join(self.root, name)

    def folder_name(self, key: Any) -> str:
        """Return the name of a measurement's folder: its key, where that is a name."""
        return str(key)

    def title(self, key: Any) -> str:
        """Return what a measurement is called in messages."""
        return self.folder_name(key)

    def path_of(self, key: Any) -> str:
        """Return the folder of a finished measurement."""
        return os.path.join(self.path, self.folder_name(key))

    def attempt_path(self, key: Any) -> str:
        """Return the folder of a measurement under way."""
        return self.path_of(key) + ".unfinished"

    def has(self, key: Any) -> bool:
        """Return whether it is measured."""
        return os.path.isdir(self.path_of(key))

    def open_attempt(self, key: Any) -> str:
        """Create the folder of an attempt and return it; an earlier attempt's is deleted."""
        attempt = self.attempt_path(key)
        with files.writing(f"the attempt at {self.title(key)}", attempt, files.UNMEASURED):
            if os.path.isdir(attempt) and not os.path.islink(attempt):
                shutil.rmtree(attempt)
            elif os.path.lexists(attempt):  # a file of that name must not block the run
                os.unlink(attempt)
            os.makedirs(attempt)
        return attempt

    def complete(self, key: Any, write: Callable[[str], Any]) -> None:
        """Complete the attempt: call `write` on its folder, add checksums, flush and rename it.

        Raises RecordWriteError: a file cannot be written; the measurement then does not count.
        """
        attempt = self.attempt_path(key)
        with files.writing(f"the record of {self.title(key)}", attempt, files.UNMEASURED):
            write(attempt)
            checksums.write_sums(attempt)
            checkpoint = os.path.join(attempt, CHECKPOINT)
            if os.path.exists(checkpoint):
                files.sync_file(checkpoint, drop_from_cache=True)
            files.sync_file(attempt)
            os.rename(attempt, self.path_of(key))
            files.sync_file(self.path)

    def read(self, key: Any) -> Any:
        """Read a measurement's record and check its shape and owner.

        Raises RecordError: it cannot be read; DamagedError: a file is missing or was altered.
        """
        with self._naming_remedy(key):
            return self._read(key)

    def verify(self, key: Any) -> Any:
        """Read a record and compare all of its files with their checksums; raises as `read`.

        Checkpoints and samples whose writing failed are not compared: the one costs only the next
        epoch's weights, the other only what the samples would tell.
        """
        with self._naming_remedy(key):
            record = self._read(key)
            sums = checksums.read_sums(record.folder) or {}
            unchecked = {CHECKPOINT, OLD_CHECKPOINT} | names_cut(record.telemetry)
            for name in sorted(set(sums) - unchecked):  # read_checked raises where one was altered
                checksums.read_checked(os.path.join(record.folder, name), sums)
        return record

    def again(self, key: Any) -> str:
        """Return how a finished measurement is made again."""
        return f"to measure it again: remove {self.path_of(key)}"

    @contextmanager
    def _naming_remedy(self, key: Any) -> Iterator[None]:
        """Add how to measure again to any RecordError of the block."""
        try:
            yield
        except RecordError as error:
            remedy = self.again(key)
            if error.do:
                remedy = f"{error.do}; or {remedy}"
            raise type(error)(
                error.problem,
                where=error.where,
                found=error.found,
                allowed=error.allowed,
                do=remedy,
            ) from error

    def _read(self, key: Any) -> Any:
        """Read record and arrays of a measurement; raises as `read`."""
        path = self.path_of(key)
        sums = checksums.read_sums(path)
        meta = self._read_meta(os.path.join(path, self.record_name), key, sums)
        if sums is None and "checksums" in meta:
            raise DamagedError(f"{checksums.SUMS} is missing in {path}")
        return self._read_beside(path, meta, sums)

    def _read_beside(self, path: str, meta: Document, sums: Sums) -> Any:
        """Read mini-batch times and telemetry.json beside a record, and check them against it."""
        import numpy as np

        array_path = os.path.join(path, MINIBATCHES)
        content = checksums.read_checked(array_path, sums)
        if hashlib.sha256(content).hexdigest() != meta["minibatches_sha256"]:
            raise DamagedError(f"{array_path} was altered: its SHA-256 differs")
        try:
            minibatch_s = np.load(io.BytesIO(content), allow_pickle=False)
        except Exception as error:
            raise DamagedError(f"cannot read {array_path}: {error}") from error
        check_minibatches(minibatch_s, meta, array_path)
        return EpochRecord(meta, minibatch_s, read_telemetry(path, sums), path)

    def _read_meta(self, path: str, key: Any, sums: Sums) -> Document:
        """Read the record's JSON file and check checksum, shape and owner; raises as `read`."""
        content = files.read_bytes(path)
        damage = checksums.fault(path, sums, content)
        try:
            meta = files.parse_json(content, path)
            check_shape(meta, path, self.shape)
            if self.owner:
                self.check_owner(meta, path, key)
        except RecordError as error:
            if damage:  # the shape's fault helps to see what was altered
                raise DamagedError(f"{damage} ({error})") from error
            raise
        if damage:
            raise DamagedError(damage)
        return dict(meta)

    def check_owner(self, meta: Document, path: str, key: Any) -> None:
        """Raise RecordError where a record's owner or key is not this folder's."""
        title = self.title(meta[self.key])
        if meta[self.owner] != self.name or title != self.title(key):
            raise RecordError(
                f"{path} says it is {title} of {meta[self.owner]}; was the folder renamed by hand?"
            )

    def discard(self, key: Any = None) -> List[str]:
        """Move a measurement (None: all of them) to `.trash`; return the new paths."""
        trash = new_trash(self.root, self.name)
        if key is None:
            sources = [os.path.join(self.path, name) for name in sorted(os.listdir(self.path))]
        else:
            sources = [self.path_of(key)]
        os.makedirs(trash)
        moved = [os.path.join(trash, os.path.basename(source)) for source in sources]
        for source, target in zip(sources, moved):
            os.rename(source, target)
        if key is None:
            os.rmdir(self.path)
        return moved


class RunFolder(MeasuredFolder):
    """The measured epochs of one run (see `MeasuredFolder`); the key is the epoch's number."""

    owner, key = "run", "epoch"

    def __init__(self, root: str, run: str) -> None:
        super().__init__(root, run)
        self.run = run

    def folder_name(self, key: int) -> str:
        """Return `epoch-3`."""
        return f"epoch-{key}"

    def title(self, key: int) -> str:
        """Return `epoch 3`."""
        return f"epoch {key}"

    def epoch_path(self, epoch: int) -> str:
        """Return the folder of a finished epoch."""
        return self.path_of(epoch)

    def again(self, key: int) -> str:
        """Return the command that takes an epoch away."""
        return f"to measure the epoch again: epochwatt discard {self.run} {key}"

    def measured(self) -> List[int]:
        """Return the numbers of the finished epochs, ascending."""
        names = os.listdir(self.path) if os.path.isdir(self.path) else []
        return sorted(int(name[len("epoch-") :]) for name in names if _EPOCH.match(name))

    def begin(self, epoch: int) -> Optional[Document]:
        """Replace an epoch's attempt by a new one with `attempt.json`; return the earlier one's.

        That is `started_unix_s`, the folder's time where it died before it wrote the file; None:
        there was no earlier attempt. Raises RecordWriteError: the folder cannot be written.
        """
        attempt = self.attempt_path(epoch)
        earlier: Optional[Document] = None
        if os.path.lexists(attempt):
            earlier = {"started_unix_s": os.lstat(attempt).st_mtime}
        try:
            note = files.read_json(os.path.join(attempt, ATTEMPT), record_shapes.ATTEMPT)
            earlier = {"started_unix_s": note["started_unix_s"]}
        except RecordError:  # no attempt, or one without a readable file
            pass
        self.open_attempt(epoch)
        with files.writing(f"the attempt at epoch {epoch}", attempt, files.UNMEASURED):
            note = {"started_unix_s": time.time(), "pid": os.getpid()}
            files.write_json(os.path.join(attempt, ATTEMPT), note)
        return earlier

    def finish(self, epoch: int, meta: Document, minibatch_s: "np.ndarray") -> None:
        """Complete the attempt with its times, (n, 3) s, and delete the checkpoint before it.

        The epoch's own checkpoint already lies in `attempt_path(epoch)`. Raises as `complete`.
        """

        def write(attempt: str) -> None:
            os.unlink(os.path.join(attempt, ATTEMPT))
            write_record(attempt, dict(meta, checksums=checksums.SUMS), minibatch_s)

        self.complete(epoch, write)
        previous = self.checkpoint_path(epoch - 1)
        if os.path.exists(self.checkpoint_path(epoch)) and os.path.exists(previous):
            try:
                os.unlink(previous)
            except OSError as error:  # costs space, not the epoch, which is whole and in place
                log.warning("cannot remove %s: %s", previous, error.strerror)
            else:
                self._forget_checkpoint(epoch - 1, os.path.basename(previous))

    def checkpoint_path(self, epoch: int) -> str:
        """Return where the checkpoint after `epoch` lies, if it is still there."""
        old = os.path.join(self.path_of(epoch), OLD_CHECKPOINT)
        return old if os.path.exists(old) else os.path.join(self.path_of(epoch), CHECKPOINT)

    def checkpoint_fault(self, epoch: int) -> str:
        """Compare the checkpoint after `epoch` with its checksum; return the damage, "" for none.

        That of an epoch from before there were checksums is not compared.
        """
        try:
            sums = checksums.read_sums(self.path_of(epoch))
            return checksums.fault(self.checkpoint_path(epoch), sums)
        except (RecordError, OSError) as error:
            return str(error)

    def set_checkpoint_aside(self, epoch: int) -> str:
        """Move the checkpoint after `epoch` to `.trash`; return its new path.

        Raises RecordWriteError: it cannot be moved.
        """
        source = self.checkpoint_path(epoch)
        folder = os.path.join(new_trash(self.root, self.run), self.folder_name(epoch))
        target = os.path.join(folder, os.path.basename(source))
        with files.writing("the trash", folder):
            os.makedirs(folder)
            os.rename(source, target)
            self._forget_checkpoint(epoch, os.path.basename(source))
        return target

    def _forget_checkpoint(self, epoch: int, name: str) -> None:
        """Remove a deleted checkpoint from the checksums; a failure is only logged."""
        try:
            checksums.forget(self.path_of(epoch), name)
        except (OSError, RecordError) as error:  # only `sha256sum -c` minds
            log.warning("%s still lists %s: %s", self.path_of(epoch), name, error)


def new_trash(root: str, name: str) -> str:
    """Return an unused path `.trash/TIME[-2, -3, ...]/name` below `root`; it is not created."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    path, number = os.path.join(root, ".trash", stamp, name), 2
    while os.path.exists(path):
        path = os.path.join(root, ".trash", f"{stamp}-{number}", name)
        number += 1
    return path


def read_telemetry(path: str, sums: Sums) -> Document:
    """Read and check a folder's telemetry.json; {}: it has none. Raises as `read`."""
    telemetry_path = os.path.join(path, TELEMETRY)
    if not os.path.exists(telemetry_path) and TELEMETRY not in (sums or {}):
        return {}
    content = checksums.read_checked(telemetry_path, sums)
    return dict(files.parse_json(content, telemetry_path, record_shapes.TELEMETRY))


def write_record(
    folder: str,
    meta: Document,
    minibatch_s: "np.ndarray",
    durable: bool = True,
    name: str = RECORD,
) -> Document:
    """Write minibatches.npy, from (n, 3) s, and the record with its hash; return the record.

    `durable`: as for `files.write_bytes`; `name`: of the record's file. Raises OSError.
    """
    import numpy as np

    buffer = io.BytesIO()  # numpy's own writer drops the errno of a full disk
    np.save(buffer, minibatch_s.astype(np.float32), allow_pickle=False)
    content = buffer.getvalue()
    files.write_bytes(os.path.join(folder, MINIBATCHES), content, durable)
    meta = dict(meta, minibatches_sha256=hashlib.sha256(content).hexdigest())
    files.write_json(os.path.join(folder, name), meta, durable)
    return meta


def check_shape(meta: Any, path: str, shape: Any = record_shapes.RECORD) -> None:
    """Raise RecordError where a record's schema version, shape or stamps cannot be read."""
    if not isinstance(meta, dict):
        raise RecordError(f"{path} holds no record")
    version = meta.get("schema_version")
    if version not in columns.READABLE_SCHEMAS:
        raise RecordError(
            f"{path} has schema version {version}",
            allowed=columns.READABLE_SCHEMAS,
            do="read it with the version of epochwatt that wrote it",
        )
    wrong = shapes.problem(meta, shape)
    if wrong is None and meta.get("board") and "events" not in meta:
        wrong = "events is missing"
    if wrong is None and meta["t_end_mono_s"] - meta["t_start_mono_s"] > record_shapes.LONGEST_S:
        wrong = f"its stamps lie more than {record_shapes.LONGEST_S:.0f} s apart"
    if wrong is not None:
        raise RecordError(f"{path} cannot be read: {wrong}")


def check_meta(meta: Any, path: str, run: str, epoch: int) -> None:
    """Raise RecordError unless this is a readable record of that epoch of that run."""
    check_shape(meta, path)
    RunFolder("", run).check_owner(meta, path, epoch)


def check_minibatches(minibatch_s: "np.ndarray", meta: Document, path: str) -> None:
    """Raise RecordError where mini-batch times differ from the record in shape, type or sum."""
    shape = (meta["n_minibatches"], len(columns.MINIBATCH_COLUMNS))
    if minibatch_s.shape != shape or minibatch_s.dtype != "float32":
        raise RecordError(
            f"{path} holds {minibatch_s.dtype} {minibatch_s.shape}, the record says float32 {shape}"
        )
    sums = minibatch_s.sum(axis=0, dtype="float64")
    for name, total in zip(columns.MINIBATCH_COLUMNS, sums):
        # written so that NaN is refused, too
        if not abs(total - meta[name]) <= SUM_TOLERANCE_S + SUM_TOLERANCE * meta[name]:
            raise RecordError(
                f"{path}: {name} sums to {total:.9g} s, the record says {meta[name]:.9g} s"
            )


def write_receipt(
    path: str, folder: MeasuredFolder, first: int, last: int, modes: Optional[Sequence[Any]] = None
) -> None:
    """Read each record of a job and write its receipt, the job's output file in Snakemake.

    `first`, `last`: numbers of epochs, or of modes in `modes`, both included. Raises RecordError: a
    record is missing or damaged; RecordWriteError: `path` is not writable.
    """
    entries = []
    for number in range(first, last + 1):
        key = number if modes is None else modes[number]
        meta = folder.read(key).meta
        record_path = os.path.join(folder.path_of(key), folder.record_name)
        entries.append(
            {
                folder.key: number if modes is None else folder.folder_name(key),
                "measured_unix_s": meta["t_start_unix_s"],
                "flags": meta["flags"],
                "record_sha256": files.sha256_of(record_path),
            }
        )
    owner = "run" if modes is None else "sweep"
    content = {owner: folder.name, "first": first, "last": last, folder.key + "s": entries}
    with files.writing("the receipt", path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_json(path, content)
