"""Keep files of /proc and /sys open between readings (board side: Python 3.6 grammar)."""

import errno
import os
from typing import List, Optional, Sequence

from epochwatt.board.telemetry.source import NAN


class Handle:
    """An open file whose beginning is read anew each time; to open it again would cost more.

    `path`: the file; `size`: bytes that are read at most
    """

    __slots__ = ("_fd", "_size", "path")  # what lies close together is soon in the cache

    def __init__(self, path: str, size: int = 4096) -> None:
        self.path, self._size = path, size
        self._fd = os.open(path, os.O_RDONLY)

    def read(self) -> bytes:
        """Return what the file holds now; raises OSError."""
        try:
            return os.pread(self._fd, self._size, 0)
        except OSError as error:
            if error.errno != errno.ESPIPE:
                raise
        # BOARD: simple attributes of debugfs (a clock's rate) can be read from their start only
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return os.read(fd, self._size)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def readable(path: str, size: int = 4096) -> Optional[Handle]:
    """Return an open handle, or None where the file cannot be opened or read."""
    try:
        handle = Handle(path, size)
    except OSError:
        return None
    try:
        handle.read()
    except OSError:
        handle.close()
        return None
    return handle


def contents(handles: Sequence[Optional[Handle]]) -> List[bytes]:
    """Return what each file holds; empty where there is none or it cannot be read."""
    held = []
    for handle in handles:
        try:
            held.append(b"" if handle is None else handle.read())
        except OSError:
            held.append(b"")
    return held


def number(held: bytes) -> float:
    """Return the number that a file held; NaN where it held none."""
    try:
        return float(held)
    except ValueError:
        return NAN
