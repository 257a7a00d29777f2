"""Two loops that take turns, a few mini-batches each, so that both meet the same machine.

The speed of a machine changes within tenths of a second: clocks, other programs, other guests of
the same host. Two epochs one after the other see two machines; two that alternate every few
milliseconds see one. Only one loop ever runs; the clock of each stands still while it waits.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Any

MINIBATCHES = 5  # of a turn: some ten milliseconds

Loop = Callable[["Turns"], None]


class Turns:
    """The turns of one loop, and the time it had."""

    def __init__(self) -> None:
        self.turns_s: list[float] = []  # wall time of each turn; the last may be a short one
        self.cpu_s = 0.0  # of the loop's own thread
        self.other: Turns | None = None  # None: it has ended
        self._mine = threading.Lock()  # locked: it is the other's turn
        self._mine.acquire()
        self._since_s = (0.0, 0.0)
        self._n_minibatches = 0

    @property
    def wall_s(self) -> float:
        """Wall time of all turns."""
        return sum(self.turns_s)

    def keeper(self, keep: Callable[[Any], Any]) -> Callable[[Any], None]:
        """Return a `keep` for the loop that also passes the turn on, every few mini-batches."""

        def keep_and_pass(loss: Any) -> None:
            keep(loss)
            self._n_minibatches += 1
            if self._n_minibatches % MINIBATCHES == 0 and self.other is not None:
                self._stop()
                self.other.give()
                self._start()

        return keep_and_pass

    def give(self) -> None:
        """Let this loop go on."""
        self._mine.release()

    def run(self, loop: Loop) -> None:
        """Run the loop to its end, in its turns."""
        self._start()
        try:
            loop(self)
        finally:
            self._stop()
            if self.other is not None:
                self.other.other = None
                self.other.give()

    def _start(self) -> None:
        self._mine.acquire()
        self._since_s = (perf_counter(), thread_time())

    def _stop(self) -> None:
        wall_s, cpu_s = self._since_s
        self.turns_s.append(perf_counter() - wall_s)
        self.cpu_s += thread_time() - cpu_s


def take_turns(pool: ThreadPoolExecutor, first: Loop, second: Loop) -> tuple[Turns, Turns]:
    """Run two loops in turns, to the end of both; return the turns of each.

    Parameters
    ----------
    pool : of two threads
    first, second : loops that pass the turn on through `Turns.keeper`
    """
    a, b = Turns(), Turns()
    a.other, b.other = b, a
    running = [pool.submit(a.run, first), pool.submit(b.run, second)]
    a.give()
    for loop in running:
        loop.result()
    return a, b
