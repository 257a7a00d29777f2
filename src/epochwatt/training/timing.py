"""Clocks of the timed loop (board side: Python 3.6 grammar; torch only where events are used).

The loop calls `stamp()` four times per mini-batch and once before the first::

    ask | wait | got | copy | copied | compute | done | (other work) | ask ...

A timer keeps what it needs in memory that exists before the epoch starts.
"""

from array import array
from time import perf_counter
from typing import Any

import numpy as np

STAMPS = 4  # per mini-batch: got, copied, done, ask for the next


class HostTimer:
    """Host clock (`perf_counter`), for devices whose work is done when the call returns."""

    method = "host_clock"

    def __init__(self, n_minibatches: int) -> None:
        self.n_stamps = 0
        self._t_s = array("d", bytes(8 * (1 + STAMPS * n_minibatches)))

    def stamp(self) -> None:
        """Note the time."""
        self._t_s[self.n_stamps] = perf_counter()
        self.n_stamps += 1

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute of each finished mini-batch: float64 seconds, (n, 3)."""
        n = self.n_stamps // STAMPS
        return np.diff(np.array(self._t_s[: 1 + STAMPS * n])).reshape(n, STAMPS)[:, :3]


class CudaEventTimer:
    """CUDA events, synchronised at the end of each mini-batch: the papers' way.

    Four events are used again and again; their times are read after the synchronisation, between
    `done` and the next `ask`, so reading belongs to the overhead and to no interval.

    Parameters
    ----------
    n_minibatches : mini-batches of the epoch
    cuda : the module `torch.cuda`, or what stands for it in a test
    """

    method = "cuda_events_synchronised"

    def __init__(self, n_minibatches: int, cuda: Any) -> None:
        self.n_stamps = 0
        self._events = [cuda.Event(enable_timing=True) for _ in range(STAMPS)]  # ask .. done
        self._seconds = np.zeros((n_minibatches, 3))

    def stamp(self) -> None:
        """Record an event; after `done` wait for it and read the mini-batch's three intervals."""
        place = self.n_stamps % STAMPS  # 0: ask, 1: got, 2: copied, 3: done
        self._events[place].record()
        if place == STAMPS - 1:
            self._events[place].synchronize()
            row = self._seconds[self.n_stamps // STAMPS]
            for column in range(3):
                milliseconds = self._events[column].elapsed_time(self._events[column + 1])
                row[column] = milliseconds / 1000.0
        self.n_stamps += 1

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute of each finished mini-batch: float64 seconds, (n, 3)."""
        return self._seconds[: self.n_stamps // STAMPS]
