"""Time the loop by clocks (board side: Python 3.6 grammar; torch only where events are used).

The loop calls `stamp()` four times per mini-batch and once before the first::

    ask | wait | got | copy | copied | compute | done | (other work) | ask ...

A timer keeps what it needs in memory that exists before the epoch starts. Which one is used is the
run's factor `gpu_timing`; without a GPU it is the host's clock.
"""

from collections import deque
from time import perf_counter
from typing import Any, Deque, List, NamedTuple, Optional, Sequence, Set

import numpy as np

from epochwatt.board.records.shapes import Document

STAMPS = 4  # per mini-batch: got, copied, done, ask for the next
# mini-batches of an epoch whose beginning is kept; between two, overhead is spread evenly
MARKS = 64
ANCHORS = 5  # tries to see one moment on both clocks; the first may have to wake the GPU
FLOAT32 = 6e-8  # half a step, relative: CUDA tells times between events as float32


class Timer:
    """Times by which the host asked for mini-batches; a subclass stamps them.

    Attributes
    ----------
    n_stamps : calls of `stamp` so far
    method : name of the way of timing, for the record
    """

    method = ""

    def __init__(self) -> None:
        self.n_stamps = 0

    def finish(self) -> None:
        """Wait for what is under way: nothing, where the work is done when a call returns."""

    def asked_s(self) -> Sequence[float]:
        """Return when each mini-batch was asked for, and what followed the last, s."""
        raise NotImplementedError

    def placement(self) -> Document:
        """Return when mini-batches began (`placed`): when the host asked, with the device idle."""
        asked_s = self.asked_s()
        return placed("host", [[i, asked_s[i]] for i in marked(self.n_stamps // STAMPS)], 0.0)

    def host_wait_s(self) -> Optional[float]:
        """Return the time the host was blocked on the loader, s; None: it is the wait."""
        return None


class HostTimer(Timer):
    """Host clock (`perf_counter`), for devices whose work is done when the call returns."""

    method = "host_clock"

    def __init__(self, n_minibatches: int) -> None:
        super().__init__()
        # a list: an array's code and memory are cold after a network's step, 1 us more a stamp
        self._t_s = [0.0] * (1 + STAMPS * n_minibatches)

    def stamp(self) -> None:
        """Note the time."""
        self._t_s[self.n_stamps] = perf_counter()
        self.n_stamps += 1

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute of each finished mini-batch: float64 seconds, (n, 3)."""
        n = self.n_stamps // STAMPS
        return np.diff(np.array(self._t_s[: 1 + STAMPS * n])).reshape(n, STAMPS)[:, :3]

    def asked_s(self) -> Sequence[float]:
        """Return when each mini-batch was asked for, s."""
        return self._t_s[::STAMPS]


class CudaEventTimer(Timer):
    """CUDA events, synchronised at the end of each mini-batch: the papers' way.

    Four events are used again and again; their times are read after the synchronisation, between
    `done` and the next `ask`, so reading belongs to the overhead and to no interval. `cuda` is the
    module `torch.cuda`, or what stands for it in a test.
    """

    method = "cuda_events_synchronised"

    def __init__(self, n_minibatches: int, cuda: Any) -> None:
        super().__init__()
        self._events = [cuda.Event(enable_timing=True) for _ in range(STAMPS)]  # ask .. done
        self._seconds = np.zeros((n_minibatches, 3))
        self._asked_s = [0.0] * (n_minibatches + 1)

    def stamp(self) -> None:
        """Record an event; after `done` wait for it and read the mini-batch's three intervals."""
        kind = self.n_stamps % STAMPS  # 0: ask, 1: got, 2: copied, 3: done
        if kind == 0:
            self._asked_s[self.n_stamps // STAMPS] = perf_counter()
        self._events[kind].record()
        if kind == STAMPS - 1:
            self._events[kind].synchronize()
            self._seconds[self.n_stamps // STAMPS] = intervals_s(self._events)
        self.n_stamps += 1

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute of each finished mini-batch: float64 seconds, (n, 3)."""
        return self._seconds[: self.n_stamps // STAMPS]

    def asked_s(self) -> Sequence[float]:
        """Return when each mini-batch was asked for, s."""
        return self._asked_s


class Anchor(NamedTuple):
    """A moment on both clocks: an event, and the host's time of it."""

    event: Any
    t_s: float
    error_s: float


def best_anchor(cuda: Any) -> Anchor:
    """Return a moment on both clocks, the one that is known best; the GPU has to be idle."""
    anchors = []
    for _ in range(ANCHORS):
        event = cuda.Event(enable_timing=True)
        before_s = perf_counter()
        event.record()
        event.synchronize()
        after_s = perf_counter()
        anchors.append(Anchor(event, (before_s + after_s) / 2.0, (after_s - before_s) / 2.0))
    return min(anchors, key=lambda anchor: anchor.error_s)


class PooledCudaEventTimer(Timer):
    """CUDA events that are read once the GPU has passed them: no synchronisation is added.

    The host may run ahead, so the intervals are those of the GPU's own timeline: its wait
    is the time it was idle before a mini-batch came. The host's own wait is kept beside it.
    Events come from a pool that grows with how far the host runs ahead. Before and after the
    epoch one moment is seen on both clocks, so the record can say when the GPU stalled.
    """

    method = "cuda_events_pooled"

    def __init__(self, n_minibatches: int, cuda: Any) -> None:
        super().__init__()
        self._cuda = cuda
        self._pool: List[Any] = []
        self._current: List[Any] = []
        self._under_way: Deque[List[Any]] = deque()  # mini-batches the GPU has not finished
        self._n_resolved = 0
        self._seconds = np.zeros((n_minibatches, 3))
        self._host_wait_s = self._asked_s = 0.0
        self._marked: Set[int] = set(marked(n_minibatches))
        self._began: List[List[Any]] = []  # mini-batch, seconds since the first anchor
        cuda.synchronize()
        self._anchor = best_anchor(cuda)

    def stamp(self) -> None:
        """Record an event; after `done` read those mini-batches that the GPU has finished."""
        kind = self.n_stamps % STAMPS  # 0: ask, 1: got, 2: copied, 3: done
        if kind == 0:
            self._asked_s = perf_counter()
        elif kind == 1:
            self._host_wait_s += perf_counter() - self._asked_s
        event = self._pool.pop() if self._pool else self._cuda.Event(enable_timing=True)
        event.record()
        self._current.append(event)
        if kind == STAMPS - 1:
            self._under_way.append(self._current)
            self._current = []
            while self._under_way and self._under_way[0][-1].query():
                self._resolve()
        self.n_stamps += 1

    def _resolve(self) -> None:
        events = self._under_way.popleft()
        if self._n_resolved in self._marked:
            self._mark(events[0])
        self._seconds[self._n_resolved] = intervals_s(events)
        self._n_resolved += 1
        self._pool.extend(events)

    def _mark(self, ask: Any) -> None:
        self._began.append([self._n_resolved, self._anchor.event.elapsed_time(ask) / 1000.0])

    def finish(self) -> None:
        """Wait for the GPU once, at the end of the epoch, and read what is left."""
        self._cuda.synchronize()
        while self._under_way:
            self._resolve()
        if self._current:  # the ask that nothing followed
            self._mark(self._current[0])

    def placement(self) -> Document:
        """Return when mini-batches began on the GPU's timeline (`placed`), after `finish`.

        A second moment on both clocks, after the epoch, takes out how far they drift apart.
        """
        first, last = self._anchor, best_anchor(self._cuda)
        gpu_s = first.event.elapsed_time(last.event) / 1000.0
        rate = (last.t_s - first.t_s) / gpu_s if gpu_s > 0.0 else 1.0
        starts = [[i, first.t_s + rate * since_s] for i, since_s in self._began]
        return placed("gpu", starts, max(first.error_s, last.error_s) + FLOAT32 * gpu_s)

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute on the GPU's timeline: float64 seconds, (n, 3)."""
        return self._seconds[: self._n_resolved]

    def host_wait_s(self) -> Optional[float]:
        """Return the time the host was blocked on the loader, s."""
        return self._host_wait_s


def intervals_s(events: Sequence[Any]) -> List[float]:
    """Return the seconds between each two neighbours of events that the GPU has passed."""
    pairs = zip(events[:-1], events[1:])
    return [before.elapsed_time(after) / 1000.0 for before, after in pairs]


def marked(n: int) -> List[int]:
    """Return those of `n` mini-batches whose beginning is kept, and `n`: what follows the last."""
    return list(range(0, n, max(1, -(-n // MARKS)))) + [n]


def placed(clock: str, starts: List[List[Any]], error_s: float) -> Document:
    """Return what a record says of when its intervals were.

    Parameters
    ----------
    clock : whose intervals they are: `host` or `gpu`
    starts : number of a mini-batch and when it was asked for, on the monotonic clock, s; ascending
        from 0. The last is the number of mini-batches: there begins what follows them
    error_s : by how much these may be off, s
    """
    return {"clock": clock, "starts": starts, "error_s": error_s}


def make_timer(n_minibatches: int, gpu_timing: str, cuda: Any = None) -> Any:
    """Return the timer of an epoch, `synchronised` or `pooled`; `cuda` None: of the host."""
    if cuda is None:
        return HostTimer(n_minibatches)
    timers = {"synchronised": CudaEventTimer, "pooled": PooledCudaEventTimer}
    return timers[gpu_timing](n_minibatches, cuda)
