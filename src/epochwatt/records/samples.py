"""`samples-{source}.csv`: what one source told during an epoch (board side: Python 3.6 grammar).

The first two columns are the middle of the reading on the monotonic clock, which is the truth, and
on the wall clock. The others are the source's own, with their units in the header; `nan` stands for
"no reading". The header is written at once, rows in blocks.
"""

import os
import re
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

from epochwatt.errors import RecordError

if TYPE_CHECKING:  # the sampler writes and never needs it: 0.1 s and 20 MB
    import numpy as np

STAMPS = ("t_mono_s", "t_unix_s")
_FILE = re.compile(r"samples-([a-z0-9-]+)\.csv$")


def samples_path(folder: str, source: str) -> str:
    """Return the sample file of a source."""
    return os.path.join(folder, "samples-{}.csv".format(source))


def sources_in(folder: str) -> List[str]:
    """Return the sources that have a sample file in the folder, sorted."""
    matches = (_FILE.match(name) for name in os.listdir(folder))
    return sorted(match.group(1) for match in matches if match)


def row_format(columns: Sequence[str]) -> str:
    """Return the format of a row: six digits are more than a sensor has, but not for a sum.

    Energy counters (`_j`) only grow and their differences count; a name without a unit is a count
    or a bit mask.
    """
    units = {"j": "%.6f", "reasons": "%.0f"}
    cells = [units.get(name.rpartition("_")[2], "%.6g") for name in columns]
    return ",".join(["%.6f", "%.6f"] + cells) + "\n"


class SampleWriter:
    """Writes the samples of one source; rows stay in memory until `flush`.

    Nothing here raises after the file is open: a disk that fills up must not end the sampler. What
    was written stays whole rows, and `error` says what happened.

    Parameters
    ----------
    folder : the epoch's folder
    source : name of the source
    columns : its columns, without the stamps

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
        try:
            os.fsync(self._fd)
        except OSError as error:
            self.error = self.error or str(error.strerror or error)
        os.close(self._fd)


def write_samples(
    folder: str,
    source: str,
    columns: Sequence[str],
    t_mono_s: "np.ndarray",
    t_unix_s: "np.ndarray",
    values: "np.ndarray",
) -> None:
    """Write all samples of a source at once, as `SampleWriter` would; raises OSError.

    Parameters
    ----------
    folder, source, columns : as for `SampleWriter`
    t_mono_s, t_unix_s : float (n,), s
    values : float (n, c)
    """
    import numpy as np

    rows = np.column_stack([t_mono_s, t_unix_s, values])
    header = ",".join(STAMPS + tuple(columns)) + "\n"
    text = header + row_format(columns) * len(rows) % tuple(rows.ravel().tolist())
    with open(samples_path(folder, source), "w", encoding="ascii") as handle:
        handle.write(text)


def read_samples(folder: str, source: str, finished: bool = True) -> "Dict[str, np.ndarray]":
    """Read the samples of one source: float64 arrays (n,) by column, in order; NaN: no reading.

    Parameters
    ----------
    folder : the epoch's folder
    source : name of the source
    finished : False allows a last line that is cut (the sampler was killed) and leaves it out

    Raises
    ------
    RecordError
        When the file is missing, damaged or out of order.
    """
    path = samples_path(folder, source)
    try:
        with open(path, encoding="ascii") as handle:
            text = handle.read()
    except (OSError, ValueError) as error:
        raise RecordError("cannot read {}: {}".format(path, error)) from error
    body, newline, cut = text.rpartition("\n")
    if cut and finished:
        raise RecordError("{}: the last line is cut".format(path))
    lines = body.split("\n")
    columns = lines.pop(0).split(",")
    if not newline or tuple(columns[: len(STAMPS)]) != STAMPS or len(set(columns)) < len(columns):
        raise RecordError("{} does not begin with a header of {}, ...".format(path, STAMPS))
    return _parsed(lines, columns, path)


def _parsed(lines: List[str], columns: List[str], path: str) -> "Dict[str, np.ndarray]":
    import numpy as np

    n_commas = len(columns) - 1
    for n, line in enumerate(lines, 2):
        if line.count(",") != n_commas:
            raise RecordError("{}, line {}: not {} cells".format(path, n, len(columns)))
    try:
        cells = np.array(",".join(lines).split(",") if lines else [], dtype=np.float64)
    except ValueError as error:
        raise RecordError("{}: {}".format(path, error)) from error
    table = np.ascontiguousarray(cells.reshape(len(lines), len(columns)).T)
    if not (np.diff(table[0]) >= 0).all() or not np.isfinite(table[:2]).all():
        raise RecordError("{}: the rows are not in order of time".format(path))
    return dict(zip(columns, table))
