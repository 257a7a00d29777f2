"""Keep a sweep in `measured/{sweep}/`, a folder per measured mode (board side: Python 3.6 grammar).

::

    measured/{sweep}/mode-c12-2201.6-1300.5-3199/mode.json      what was done, when, on what
                                                /minibatches.npy  wait, copy, compute: float32 s
                                                /telemetry.json   the sampler's statistics
                                                /samples-*.csv    its samples
                                                /SHA256SUMS       of all of these
                    /mode-c12-2201.6-1300.5-3199.unfinished/     an attempt under way, or dead

A mode's folder is filled under its temporary name and renamed once. Its name holds no place in a
grid: a longer grid of the same sweep keeps what is measured.
"""

import os
import re
import shutil
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import numpy as np

from epochwatt import columns
from epochwatt.board.records import checksums, files, record_shapes, shapes
from epochwatt.board.records.run_folder import EpochRecord, new_trash, read_arrays, write_record
from epochwatt.board.records.samples import names_cut
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS
from epochwatt.errors import DamagedError, RecordError

RECORD = "mode.json"
UNMEASURED = "this mode does not count as measured"
_NAME = re.compile(r"mode-c[^-]+(-[^-]+){3}$")


def mode_name(mode: Mapping[str, float]) -> str:
    """Return the name of a mode's folder: its numbers, `x` for a part that is left as it is.

    >>> mode_name({"cores": 4, "gpu_mhz": 318.75})
    'mode-c4-x-318.75-x'
    """
    parts = ["x" if mode.get(part) is None else f"{mode[part]:.10g}" for part in CLOCKS]
    return "mode-c" + "-".join(parts)


class ModeFolders:
    """Measured modes below one folder, and the attempt under way.

    Parameters
    ----------
    root : folder that holds all measurements (`measured/`)
    name : of the folder
    """

    def __init__(self, root: str, name: str) -> None:
        self.name = name
        self.root = str(root)
        self.path = os.path.join(self.root, name)

    def mode_path(self, mode: Mapping[str, float]) -> str:
        """Return the folder of a measured mode."""
        return os.path.join(self.path, mode_name(mode))

    def attempt_path(self, mode: Mapping[str, float]) -> str:
        """Return the folder of a mode under way."""
        return self.mode_path(mode) + ".unfinished"

    def measured(self) -> List[str]:
        """Return the names of the measured modes, in order."""
        names = os.listdir(self.path) if os.path.isdir(self.path) else []
        return sorted(n for n in names if _NAME.match(n) and not n.endswith(".unfinished"))

    def has(self, mode: Mapping[str, float]) -> bool:
        """Return whether the mode is measured."""
        return os.path.isdir(self.mode_path(mode))

    def begin(self, mode: Mapping[str, float]) -> str:
        """Open an attempt at a mode and return its folder; an earlier one goes."""
        attempt = self.attempt_path(mode)
        with files.writing(f"the attempt at {mode_name(mode)}", attempt, UNMEASURED):
            if os.path.isdir(attempt) and not os.path.islink(attempt):
                shutil.rmtree(attempt)
            elif os.path.lexists(attempt):  # a file of that name must not block the sweep
                os.unlink(attempt)
            os.makedirs(attempt)
        return attempt

    def read(self, mode: Mapping[str, float]) -> Any:
        """Read and check a mode's record, which has `meta`; raises as `read_meta`."""
        raise NotImplementedError

    def verify(self, mode: Mapping[str, float]) -> Any:
        """Read a mode's record after comparing all of its files; raises as `read`."""
        raise NotImplementedError

    def complete(self, mode: Mapping[str, float], write: Callable[[str], Any]) -> None:
        """Complete the attempt: write the record, flush everything, give it its final name.

        Raises RecordWriteError: the mode then counts as not measured.
        """
        attempt = self.attempt_path(mode)
        with files.writing(f"the record of {mode_name(mode)}", attempt, UNMEASURED):
            write(attempt)
            checksums.write_sums(attempt)
            files.sync_file(attempt)
            os.rename(attempt, self.mode_path(mode))
            files.sync_file(self.path)

    def read_meta(self, mode: Mapping[str, float], shape: Any, owner: str) -> Dict[str, Any]:
        """Read and check the record of a mode, without what lies beside it.

        Parameters
        ----------
        shape : of the record (`records.shapes`)

        Raises RecordError: it is missing or wrong; DamagedError: it is not as it was written.
        """
        record_file = os.path.join(self.mode_path(mode), RECORD)
        meta = files.parse_json(checksums.read_checked(record_file, self.sums(mode)), record_file)
        wrong = self._fault(meta, mode, shape, owner)
        if wrong is not None:
            raise RecordError(f"{record_file} cannot be read: {wrong}")
        return dict(meta)

    def sums(self, mode: Mapping[str, float]) -> Dict[str, str]:
        """Return the checksums of a mode's files; DamagedError where they are missing."""
        path = self.mode_path(mode)
        sums = checksums.read_sums(path)
        if sums is None:
            raise DamagedError(f"{checksums.SUMS} is missing in {path}")
        return sums

    def compare(self, mode: Mapping[str, float], telemetry: Document) -> None:
        """Compare all of a mode's files with their checksums; DamagedError where one differs.

        Samples that could not be written to their end may differ: that costs what they would tell.
        """
        for name in sorted(set(self.sums(mode)) - names_cut(telemetry)):
            checksums.read_checked(os.path.join(self.mode_path(mode), name), self.sums(mode))

    def _fault(self, meta: Any, mode: Mapping[str, float], shape: Any, owner: str) -> Optional[str]:
        """Return what is wrong with a record, in words; None: nothing."""
        wrong = shapes.problem(meta, shape)
        if wrong is not None:
            return wrong
        if meta.get("schema_version") not in columns.READABLE_SCHEMAS:
            return "schema version {} is not one of {}".format(
                meta.get("schema_version"), columns.READABLE_SCHEMAS
            )
        if meta[owner] != self.name or mode_name(meta["mode"]) != mode_name(mode):
            return "it is {} of {}; was the folder renamed by hand?".format(
                mode_name(meta["mode"]), meta[owner]
            )
        return None

    def discard(self, mode: Mapping[str, float]) -> str:
        """Move a mode to `.trash` beside the sweeps; return where it went."""
        trash = new_trash(self.root, self.name)
        os.makedirs(trash)
        target = os.path.join(trash, mode_name(mode))
        os.rename(self.mode_path(mode), target)
        return target


class SweepFolder(ModeFolders):
    """The measured modes of one sweep.

    Parameters
    ----------
    root : folder that holds all measurements (`measured/`)
    sweep : id of the sweep
    """

    def __init__(self, root: str, sweep: str) -> None:
        super().__init__(root, sweep)
        self.sweep = sweep

    def finish(self, mode: Mapping[str, float], meta: Document, minibatch_s: np.ndarray) -> None:
        """Complete the attempt at a mode.

        Parameters
        ----------
        minibatch_s : (n, 3), s

        Raises RecordWriteError: the mode then counts as not measured.
        """
        whole = dict(meta, checksums=checksums.SUMS)
        self.complete(mode, lambda folder: write_record(folder, whole, minibatch_s, name=RECORD))

    def read(self, mode: Mapping[str, float]) -> EpochRecord:
        """Read and check a mode's record: its `meta` has what `epochs` needs of an epoch's.

        Raises RecordError; DamagedError where its files are not as they were written.
        """
        with again(self.mode_path(mode)):
            meta = self.read_meta(mode, record_shapes.MODE, "sweep")
            return read_arrays(self.mode_path(mode), meta, self.sums(mode))

    def verify(self, mode: Mapping[str, float]) -> EpochRecord:
        """Read a mode's record after comparing all of its files, samples too; raises as `read`."""
        record = self.read(mode)
        self.compare(mode, record.telemetry)
        return record


@contextmanager
def again(path: str) -> Iterator[None]:
    """Say of errors in a mode's record how it is measured again."""
    try:
        yield
    except RecordError as error:
        raise type(error)(
            error.problem,
            where=error.where,
            found=error.found,
            allowed=error.allowed,
            do=error.do or f"to measure the mode again: remove {path}",
        ) from error
