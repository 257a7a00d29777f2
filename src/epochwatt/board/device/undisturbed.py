"""Let signals wait until settings are put back (board side: Python 3.6 grammar)."""

import os
import signal
import threading
from contextlib import contextmanager
from typing import Iterator, List

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off SIGINT, SIGTERM and SIGHUP to the end of the block.

    Their handlers are exchanged and no mask is set: a process that trains has threads, and a signal
    that is masked in this one is given to another.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only: nothing interrupts this one
        return
    came: List[int] = []
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        for number in _ENDING:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number in _ENDING:
            signal.signal(number, before[number] or signal.SIG_DFL)
        for signal_number in sorted(set(came)):
            os.kill(os.getpid(), signal_number)
