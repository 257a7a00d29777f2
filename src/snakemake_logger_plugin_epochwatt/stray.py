"""What jobs and libraries write to standard error, past every log: kept in a file, then shown.

In a terminal they would tear the bar apart, and Ctrl-C would bury it under the traceback of
each job. A file, not a pipe: jobs that outlive this process go on writing.
"""

import os
import sys
from pathlib import Path
from typing import TextIO

STRAY = Path(".snakemake/epochwatt-stderr.log")


class StrayOutput:
    """Takes standard error of this process and of its jobs, until `restore`.

    Attributes
    ----------
    out : a stream to where standard error went before
    """

    def __init__(self, path: Path = STRAY) -> None:
        self._path = path
        self._read = 0
        sys.stderr.flush()
        self._before = os.dup(2)
        self.out: TextIO = open(  # noqa: SIM115 - open until the end of the run
            os.dup(2), "w", encoding=sys.stderr.encoding, errors="backslashreplace"
        )
        path.parent.mkdir(exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        os.dup2(file, 2)
        os.close(file)

    def fresh(self) -> str:
        """Return the whole lines that were written since the last time."""
        try:
            if os.path.getsize(self._path) <= self._read:
                return ""
            with open(self._path, "rb") as handle:
                handle.seek(self._read)
                lines = handle.read().rpartition(b"\n")
        except OSError:
            return ""
        self._read += len(lines[0]) + len(lines[1])
        return lines[0].decode("utf-8", "replace")

    def restore(self) -> None:
        """Give standard error back."""
        if self._before >= 0:
            sys.stderr.flush()
            os.dup2(self._before, 2)
            os.close(self._before)
            self._before = -1


def takes_stderr(out: TextIO) -> bool:
    """Say whether a stream is this process's standard error, and no test's replacement of it."""
    try:
        return out is sys.stderr and out.fileno() == 2
    except (OSError, ValueError):
        return False
