"""Write and read `samples-{source}.csv`, telemetry of an epoch (board side: Python 3.6 grammar).

The first two columns are the middle of the reading on the monotonic clock, which is the truth, and
on the wall clock. The others are the source's own, with their units in the header; `nan` stands for
"no reading". The header is written at once, rows in blocks.
"""

import os
import warnings
from typing import TYPE_CHECKING, BinaryIO, Dict, Iterator, List, Optional, Sequence, Set

from epochwatt.board.records import checksums
from epochwatt.board.records.shapes import Document
from epochwatt.errors import DamagedError, RecordError

if TYPE_CHECKING:  # the sampler writes and never needs it: 0.1 s and 20 MB
    import numpy as np

STAMPS = ("t_mono_s", "t_unix_s")
# Limits of reading: a file as large as any sampler writes (400,000 rows of 100 cells), in pieces.
MAX_BYTES, MAX_HEADER, BLOCK_BYTES = 2**29, 2**16, 2**22


def samples_path(folder: str, source: str) -> str:
    """Return the sample file of a source."""
    return os.path.join(folder, f"samples-{source}.csv")


def row_format(columns: Sequence[str]) -> str:
    """Return the %-format of a CSV row: two stamps, then the columns by their units.

    Six digits are more than a sensor has; but of energy counters (`_j`), which only grow,
    differences count, and `_reasons` are bit masks.
    """
    formats = {"j": "%.6f", "reasons": "%.0f"}
    cells = [formats.get(name.rpartition("_")[2], "%.6g") for name in columns]
    return ",".join(["%.6f", "%.6f"] + cells) + "\n"


class SampleWriter:
    """Writes the samples of one source into an epoch's folder; rows wait in memory until `flush`.

    Nothing here raises after the file is open: a disk that fills up must not end the sampler. What
    was written stays whole rows, and `error` says what happened. `columns` are without the stamps.

    `n_rows`: rows added, those that could not be written included
    `n_lost`: rows that could not be written
    `error`: why; None: all is well
    """

    def __init__(self, folder: str, source: str, columns: Sequence[str]) -> None:
        self.n_rows = 0
        self.n_lost = 0
        self.error: Optional[str] = None
        self._format = row_format(columns)
        self._n_unwritten = 0
        self._rows = [",".join(STAMPS + tuple(columns)) + "\n"]
        path = samples_path(folder, source)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        self._size = 0
        self.flush()

    def add(self, t_mono_s: float, t_unix_s: float, values: Sequence[float]) -> None:
        """Keep a row for the next `flush`."""
        self._rows.append(self._format % (t_mono_s, t_unix_s, *values))
        self.n_rows += 1
        self._n_unwritten += 1

    def flush(self) -> None:
        """Write the waiting rows to the file; on an OSError count them as lost, set `error`."""
        block = "".join(self._rows).encode("ascii")
        self._rows = []
        if self.error is None:
            try:
                self._write(block)
            except OSError as error:
                self._fail(error)
        if self.error is not None:
            self.n_lost += self._n_unwritten
        self._n_unwritten = 0

    def _write(self, block: bytes) -> None:
        unwritten = block
        while unwritten:
            unwritten = unwritten[os.write(self._fd, unwritten) :]
        self._size += len(block)

    def _fail(self, error: OSError) -> None:
        """Set `error` and cut the file back to the blocks that were written whole."""
        self.error = str(error.strerror or error)
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            pass  # the reader will say that the last line is cut

    def close(self) -> None:
        """Flush to the disk and close the file; sets `error` where that fails."""
        self.flush()
        for system_call in (os.fsync, os.close):  # a network file system may only fail here
            try:
                system_call(self._fd)
            except OSError as error:
                self.error = self.error or str(error.strerror or error)


def write_samples(
    folder: str,
    source: str,
    columns: Sequence[str],
    t_mono_s: "np.ndarray",
    t_unix_s: "np.ndarray",
    values: "np.ndarray",
) -> None:
    """Write a source's whole sample file at once, as `SampleWriter` would; raises OSError.

    `t_mono_s` and `t_unix_s` are float (n,), s; `values` float (n, c).
    """
    import numpy as np

    rows = np.column_stack([t_mono_s, t_unix_s, values])
    header = ",".join(STAMPS + tuple(columns)) + "\n"
    row_formats = row_format(columns) * len(rows)
    with open(samples_path(folder, source), "w", encoding="ascii") as handle:
        handle.write(header + row_formats % tuple(rows.ravel().tolist()))


def read_samples(folder: str, source: str, finished: bool = True) -> "Dict[str, np.ndarray]":
    """Read a source's sample file: column -> float64 (n,), in file order; NaN: no reading.

    Not `finished`: the sampler may have been killed; an incomplete last line is dropped. Raises
    RecordError: the file cannot be read or is too large; DamagedError: it is missing, was altered,
    is no such table, or its times decrease.
    """
    import numpy as np

    path = samples_path(folder, source)
    sums = checksums.read_sums(folder)
    try:
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise RecordError(f"{path} has {size} bytes: no sampler writes so many")
        damage = checksums.fault(path, sums)
        if damage:
            raise DamagedError(damage)
        with open(path, "rb") as handle:
            columns = _parse_header(handle.readline(MAX_HEADER), path)
            blocks = list(_read_blocks(handle, len(columns), path, finished))
    except FileNotFoundError as error:
        raise DamagedError(f"cannot read {path}: {error}") from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error}") from error
    table = np.ascontiguousarray(np.concatenate([np.empty((0, len(columns)))] + blocks).T)
    if not (np.diff(table[0]) >= 0).all() or not np.isfinite(table[:2]).all():
        raise DamagedError(f"{path}: the rows are not in order of time")
    return dict(zip(columns, table))


def read_source(folder: str, source: str, statistics: Document) -> "Dict[str, np.ndarray]":
    """Read a source's samples as `read_samples` does, tolerating a `write_error` of the sampler.

    `statistics`: the source's in telemetry.json; where it has a `write_error`, a file that cannot
    be read is not damaged: its columns come back empty.
    """
    import numpy as np

    has_write_error = bool(statistics.get("write_error"))
    try:
        return read_samples(folder, source, finished=not has_write_error)
    except DamagedError:
        if not has_write_error:
            raise
        return {name: np.empty(0) for name in STAMPS + tuple(statistics.get("columns", ()))}


def names_cut(telemetry: Document) -> Set[str]:
    """Return the names of sample files with a `write_error` in telemetry.json."""
    sources = telemetry.get("sources", {}).items()
    return {samples_path("", name) for name, source in sources if source.get("write_error")}


def _parse_header(header: bytes, path: str) -> List[str]:
    """Return the columns of a header line; raises DamagedError: cut, repeated or no stamps."""
    columns = header.decode("ascii", "replace").rstrip("\n").split(",")
    is_whole = header.endswith(b"\n") and len(set(columns)) == len(columns)
    if not is_whole or tuple(columns[: len(STAMPS)]) != STAMPS:
        raise DamagedError(f"{path} does not begin with a header of {STAMPS}, ...")
    return columns


def _read_blocks(
    handle: BinaryIO, n_columns: int, path: str, finished: bool
) -> "Iterator[np.ndarray]":
    """Yield the rows after the header, (n, c) at a time: a whole text may not fit into memory.

    Raises DamagedError: a row is no row of numbers, or a `finished` file ends inside a line.
    """
    line, incomplete = 2, b""  # the header is line 1
    while True:
        block = handle.read(BLOCK_BYTES)
        whole_lines, newline, incomplete = (incomplete + block).rpartition(b"\n")
        if newline:
            rows = _parse_rows(whole_lines, n_columns, path, line)
            line += len(rows)
            yield rows
        if not block:
            break
    if incomplete and finished:
        raise DamagedError(f"{path}: the last line is cut")


def _parse_rows(text: bytes, n_columns: int, path: str, line: int) -> "np.ndarray":
    """Parse whole lines, the first of which is number `line`, to float64 (n, c); DamagedError."""
    import numpy as np

    characters = np.frombuffer(text + b"\n", np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    commas = np.flatnonzero(characters == ord(","))
    n_commas = np.diff(np.searchsorted(commas, ends), prepend=0)  # of each line
    bad_rows = np.flatnonzero(n_commas != n_columns - 1)
    if len(bad_rows):
        raise DamagedError(f"{path}, line {line + bad_rows[0]}: not {n_columns} cells")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of what is not a number
            cells = np.fromstring(text.replace(b"\n", b","), np.float64, sep=",")
    except (ValueError, DeprecationWarning) as error:
        raise DamagedError(f"{path}, from line {line} on: {error}") from error
    if len(cells) != len(ends) * n_columns:
        raise DamagedError(f"{path}, from line {line} on: a cell is not a number")
    return cells.reshape(len(ends), n_columns)
