"""Detect that training stood still while it was timed (board side: Python 3.6 grammar).

Nothing of it runs in the timed loop: the kernel itself says that a process was stopped, by the
signal that continues it, and that the machine slept, by two clocks that part.
"""

import mmap
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator

from epochwatt.board.records.shapes import Document

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", 7)  # Python 3.6 has no name for it
SLEPT_S = 0.1  # reading two clocks one after the other takes less


@contextmanager
def noticed_stops() -> Iterator[Dict[str, Any]]:
    """Notice what stops this process, or a worker that it forks, inside the block.

    Yields
    ------
    dict : filled at the end of the block. `continued`: one of them got SIGCONT, as whoever was
        stopped does (by SIGSTOP, or Ctrl-Z in a terminal); None: another thread runs this, and
        nothing can be said. `slept_s`: how long the machine was suspended.
    """
    stops: Document = {"continued": None, "slept_s": None}
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    with mmap.mmap(-1, 1) as shared:  # forked workers write it, too

        def note(number: int, frame: Any) -> None:
            shared[0] = 1

        slept_before_s = _slept_s()
        before = signal.signal(signal.SIGCONT, note)
        try:
            yield stops
        finally:
            signal.signal(signal.SIGCONT, before)
            stops["continued"] = bool(shared[0])
            stops["slept_s"] = max(0.0, _slept_s() - slept_before_s)


def _slept_s() -> float:
    """Return how long the machine has been suspended since it was started, s."""
    return time.clock_gettime(_BOOTTIME) - time.monotonic()


def has_stopped(stops: Document) -> bool:
    """Return whether the training was stopped, by what `noticed_stops` gave."""
    return bool(stops["continued"]) or (stops["slept_s"] or 0.0) > SLEPT_S
