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
    """Return the format of a row: six digits are more than a sensor has, but not for a sum.

    Energy counters (`_j`) only grow and their differences count; a name without a unit is a count
    or a bit mask.
    """
    units = {"j": "%.6f", "reasons": "%.0f"}
    cells = [units.get(name.rpartition("_")[2], "%.6g") for name in columns]
    return ",".join(["%.6f", "%.6f"] + cells) + "\n"


class SampleWriter:
    """Writes the samples of one source into an epoch's folder; rows wait in memory until `flush`.

    Nothing here raises after the file is open: a disk that fills up must not end the sampler. What
    was written stays whole rows, and `error` says what happened. `columns` are without the stamps.

    Attributes
    ----------
    n_rows : rows added, those that could not be written included
    n_lost : rows that could not be written
    error : why; None: all is well
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
        """Hand the rows to the kernel."""
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
        rest = block
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        self._size += len(block)

    def _fail(self, error: OSError) -> None:
        self.error = str(error.strerror or error)
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            pass  # the reader will say that the last line is cut

    def close(self) -> None:
        """Flush to the disk and close."""
        self.flush()
        for bring_to_disk in (os.fsync, os.close):  # a network's disk may only now say no
            try:
                bring_to_disk(self._fd)
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
    """Write all samples of a source at once, as `SampleWriter` would; raises OSError.

    `t_mono_s` and `t_unix_s` are float (n,), s; `values` float (n, c).
    """
    import numpy as np

    rows = np.column_stack([t_mono_s, t_unix_s, values])
    header = ",".join(STAMPS + tuple(columns)) + "\n"
    text = header + row_format(columns) * len(rows) % tuple(rows.ravel().tolist())
    with open(samples_path(folder, source), "w", encoding="ascii") as handle:
        handle.write(text)


def read_samples(folder: str, source: str, finished: bool = True) -> "Dict[str, np.ndarray]":
    """Read the samples of one source: float64 arrays (n,) by column, in order; NaN: no reading.

    Not `finished`: a last line that is cut (the sampler was killed) is left out.

    Raises RecordError when the file cannot be read; DamagedError when it is missing, altered or out
    of order.
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
            columns = _columns(handle.readline(MAX_HEADER), path)
            blocks = list(_blocks(handle, len(columns), path, finished))
    except FileNotFoundError as error:
        raise DamagedError(f"cannot read {path}: {error}") from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error}") from error
    table = np.ascontiguousarray(np.concatenate([np.empty((0, len(columns)))] + blocks).T)
    if not (np.diff(table[0]) >= 0).all() or not np.isfinite(table[:2]).all():
        raise DamagedError(f"{path}: the rows are not in order of time")
    return dict(zip(columns, table))


def read_source(folder: str, source: str, statistics: Document) -> "Dict[str, np.ndarray]":
    """Return a source's samples as `read_samples` does, by what telemetry.json says of them.

    A file that was not written to its end (`write_error`) is not damaged, whatever it holds: its
    columns are empty where it cannot be read.
    """
    import numpy as np

    was_cut = bool(statistics.get("write_error"))
    try:
        return read_samples(folder, source, finished=not was_cut)
    except DamagedError:
        if not was_cut:
            raise
        return {name: np.empty(0) for name in STAMPS + tuple(statistics.get("columns", ()))}


def names_cut(telemetry: Document) -> Set[str]:
    """Return the sample files that could not be written to their end, by telemetry.json."""
    sources = telemetry.get("sources", {}).items()
    return {samples_path("", name) for name, source in sources if source.get("write_error")}


def _columns(header: bytes, path: str) -> List[str]:
    columns = header.decode("ascii", "replace").rstrip("\n").split(",")
    is_whole = header.endswith(b"\n") and len(set(columns)) == len(columns)
    if not is_whole or tuple(columns[: len(STAMPS)]) != STAMPS:
        raise DamagedError(f"{path} does not begin with a header of {STAMPS}, ...")
    return columns


def _blocks(handle: BinaryIO, n_columns: int, path: str, finished: bool) -> "Iterator[np.ndarray]":
    """Give the rows of some MiB at a time, (n, c): a long epoch's text need not fit into memory."""
    line, rest = 2, b""
    while True:
        block = handle.read(BLOCK_BYTES)
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            rows = _rows(whole, n_columns, path, line)
            line += len(rows)
            yield rows
        if not block:
            break
    if rest and finished:
        raise DamagedError(f"{path}: the last line is cut")


def _rows(text: bytes, n_columns: int, path: str, line: int) -> "np.ndarray":
    """Return the cells of whole lines, (n, c); `line` is the number of the first."""
    import numpy as np

    held = np.frombuffer(text + b"\n", np.uint8)
    ends = np.flatnonzero(held == ord("\n"))
    n_commas = np.diff(np.searchsorted(np.flatnonzero(held == ord(",")), ends), prepend=0)
    odd = np.flatnonzero(n_commas != n_columns - 1)
    if len(odd):
        raise DamagedError(f"{path}, line {line + odd[0]}: not {n_columns} cells")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of what is not a number
            cells = np.fromstring(text.replace(b"\n", b","), np.float64, sep=",")
    except (ValueError, DeprecationWarning) as error:
        raise DamagedError(f"{path}, from line {line} on: {error}") from error
    if len(cells) != len(ends) * n_columns:
        raise DamagedError(f"{path}, from line {line} on: a cell is not a number")
    return cells.reshape(len(ends), n_columns)
