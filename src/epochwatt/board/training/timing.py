"""Time a loop by clocks (board side: Python 3.6 grammar; torch only where events are used).

The loop calls `stamp` where a part of a mini-batch begins (`loop.PARTS`), our own four times each::

    ASK wait | COPY copy | STEP compute | DONE (other work) | ASK ...

Which timer is used is the run's factor `gpu_timing`; without a GPU it is the host's clock.
"""

from collections import deque
from time import perf_counter
from typing import Any, Deque, List, NamedTuple, Optional

import numpy as np

from epochwatt import columns
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.loop import AGAIN, ASK, BODY, COPY, DONE, PARTS, STEP, Bounds

# mini-batches of an epoch whose beginning is kept; between two, overhead is spread evenly
MARKS = 64
ANCHORS = 5  # tries to see one moment on both clocks; the first may have to wake the GPU
FLOAT32 = 6e-8  # half a step, relative: CUDA tells times between events as float32


class HostTimer:
    """Host clock (`perf_counter`), for devices whose work is done when the call returns.

    Attributes
    ----------
    method : name of the way of timing, for the record
    """

    method = "host_clock"

    def __init__(self) -> None:
        # lists: an array's code and memory are cold after a network's step, 1 us more a stamp
        self._parts: List[int] = []
        self._t_s: List[float] = []

    @property
    def n_stamps(self) -> int:
        """Number of calls of `stamp` so far."""
        return len(self._parts)

    def has(self, part: int) -> bool:
        """Return whether such a part has begun."""
        return part in self._parts

    def stamp(self, part: int) -> None:
        """Note the time."""
        self._t_s.append(perf_counter())
        self._parts.append(part)

    def finish(self) -> None:
        """Wait for what is under way: nothing, where the work is done when a call returns."""

    def minibatch_s(self) -> np.ndarray:
        """Return wait, copy and compute of each whole mini-batch: float64 seconds, (n, 3).

        Compute is the parts `STEP`; in a loop without any, the parts `BODY`.
        """
        parts_s = self._parts_s(self._between_s())
        compute_s = parts_s[:, STEP if self.has(STEP) else BODY]
        return np.column_stack([parts_s[:, ASK] + parts_s[:, AGAIN], parts_s[:, COPY], compute_s])

    def asked_s(self) -> np.ndarray:
        """Return when the host asked for each mini-batch, and when for one more, s, (n + 1,)."""
        return np.array(self._t_s)[np.array(self._parts, dtype=int) == ASK]

    def placement(self) -> Document:
        """Return when mini-batches began, by `asked_s`, for the record (`placed`)."""
        return placed("host", self.asked_s(), 0.0)

    def host_wait_s(self) -> Optional[float]:
        """Return the time the host was blocked on the loader, s; None: it is the wait."""
        return None

    def _between_s(self) -> np.ndarray:
        """Return the time from each stamp to the next, s."""
        return np.diff(self._t_s)

    def _parts_s(self, between_s: np.ndarray) -> np.ndarray:
        """Sum times between stamps by whole mini-batch and part, s, (n, len(PARTS))."""
        parts, n = np.array(self._parts[:-1], dtype=int), max(0, self._parts.count(ASK) - 1)
        n_cells = n * len(PARTS)
        cells = (np.cumsum(parts == ASK) - 1) * len(PARTS) + parts  # of a flat (n, parts) table
        return np.bincount(cells, between_s, n_cells)[:n_cells].reshape(n, len(PARTS))


class Anchor(NamedTuple):
    """A moment on both clocks: an event, and the host's time of it."""

    event: Any
    t_s: float
    error_s: float


def best_anchor(cuda: Any) -> Anchor:
    """Record `ANCHORS` events on an idle GPU; return the one whose host time is best known."""
    anchors = []
    for _ in range(ANCHORS):
        event = cuda.Event(enable_timing=True)
        before_s = perf_counter()
        event.record()
        event.synchronize()
        after_s = perf_counter()
        anchors.append(Anchor(event, (before_s + after_s) / 2.0, (after_s - before_s) / 2.0))
    return min(anchors, key=lambda anchor: anchor.error_s)


class CudaEventTimer(HostTimer):
    """CUDA events of the current stream, read once the GPU has passed them.

    Pooled: no synchronisation is added. The host may run ahead, so the intervals are those of the
    GPU's own timeline: its wait is the time it was idle before a mini-batch came. The host's own
    wait is kept beside it. Before and after the epoch one moment is seen on both clocks, so the
    record can say when the GPU stalled.

    Synchronised, the papers' way: the GPU is waited for at the end of each mini-batch.

    Events are read, and waited for, where a step is done, so that belongs to the overhead; of a
    loop that does not say where, when the next mini-batch is asked for. They come from a pool that
    grows with how far the host runs ahead.

    `cuda`: the module `torch.cuda`, or what stands for it in a test
    """

    def __init__(self, cuda: Any, is_synchronised: bool) -> None:
        super().__init__()
        self.method = "cuda_events_" + ("synchronised" if is_synchronised else "pooled")
        self._cuda, self._is_synchronised = cuda, is_synchronised
        self._pool: List[Any] = []
        self._current: List[Any] = []
        self._under_way: Deque[List[Any]] = deque()  # mini-batches the GPU has not finished
        self._since_s: List[float] = []  # of each stamp's event, since that of the one before
        cuda.synchronize()
        self._anchor = best_anchor(cuda)
        self._latest = self._anchor.event  # that was read

    def stamp(self, part: int) -> None:
        """Note the time and record an event; after a step, read finished mini-batches' events.

        Synchronised, it waits for the GPU there, and the stamp is the time after that.
        """
        super().stamp(part)
        event = self._pool.pop() if self._pool else self._cuda.Event(enable_timing=True)
        event.record()
        self._current.append(event)
        if part == DONE or (part == ASK and self._parts[-2:-1] != [DONE]):
            self._under_way.append(self._current)
            self._current = []
            if self._is_synchronised:
                event.synchronize()
                self._t_s[-1] = perf_counter()
            while self._under_way and (self._is_synchronised or self._under_way[0][-1].query()):
                self._read(self._under_way.popleft())

    def _read(self, events: List[Any]) -> None:
        """Append the times since the event before, s, and put that back into the pool."""
        for event in events:
            self._since_s.append(self._latest.elapsed_time(event) / 1000.0)
            self._pool.append(self._latest)
            self._latest = event

    def finish(self) -> None:
        """Wait for the GPU at the end of the epoch, and read all events that are not read yet."""
        self._cuda.synchronize()
        for events in [*self._under_way, self._current]:
            self._read(events)
        self._under_way.clear()
        self._current = []

    def placement(self) -> Document:
        """Return when mini-batches began on the GPU's timeline (`placed`); call it after `finish`.

        GPU times are scaled to the host's clock between two anchors, one on each side of the epoch.
        """
        if self._is_synchronised:
            return super().placement()
        first, last = self._anchor, best_anchor(self._cuda)
        since_s = np.cumsum(self._since_s)
        gpu_s = since_s[-1] + self._latest.elapsed_time(last.event) / 1000.0
        rate = (last.t_s - first.t_s) / gpu_s if gpu_s > 0.0 else 1.0
        asked_s = first.t_s + rate * since_s[np.array(self._parts) == ASK]
        return placed("gpu", asked_s, max(first.error_s, last.error_s) + FLOAT32 * gpu_s)

    def host_wait_s(self) -> Optional[float]:
        """Return the time the host was blocked on the loader, s; None: it is the wait."""
        if self._is_synchronised:
            return None
        return float(self._parts_s(np.diff(self._t_s))[:, [ASK, AGAIN]].sum())

    def _between_s(self) -> np.ndarray:
        return np.array(self._since_s[1:])


def marked(n: int) -> List[int]:
    """Return the numbers of up to `MARKS` evenly spaced mini-batches of `n`, and `n` itself."""
    return list(range(0, n, max(1, -(-n // MARKS)))) + [n]


def placed(clock: str, asked_s: np.ndarray, error_s: float) -> Document:
    """Return a record's `placement`: `clock`, `error_s`, and `starts`, [number, s] by `marked`.

    `clock`: whose intervals they are: `host` or `gpu`
    `asked_s`: (n + 1,): when each mini-batch was asked for, and one more, on the monotonic clock
    `error_s`: by how much these may be off
    """
    starts = [[i, float(asked_s[i])] for i in marked(len(asked_s) - 1)]
    return {"clock": clock, "starts": starts, "error_s": float(error_s)}


def make_timer(gpu_timing: str, cuda: Any = None) -> Any:
    """Return the timer of an epoch, `synchronised` or `pooled`; `cuda` None: of the host."""
    return HostTimer() if cuda is None else CudaEventTimer(cuda, gpu_timing == "synchronised")


class Timed(NamedTuple):
    """Times of a pass over a data set, or over some of its mini-batches."""

    bounds: Bounds
    minibatch_s: np.ndarray  # (n, 3): wait, copy, compute
    facts: Document  # what the record says of all of them


def timed(timer: Any, bounds: Bounds, is_whole: bool = True) -> Timed:
    """Return bounds, mini-batch times and facts of a finished loop.

    Not `is_whole`: it was left early, so its end is moved to that of its last mini-batch.
    """
    placement = timer.placement()
    last_s = placement["starts"][-1][1]
    if not is_whole:
        unix_offset_s = bounds.t_end_unix_s - bounds.t_end_mono_s
        bounds = bounds._replace(t_end_mono_s=last_s, t_end_unix_s=last_s + unix_offset_s)
    facts = {
        "timing_method": timer.method,
        "host_wait_s": timer.host_wait_s(),
        "placement": placement,
        # worker shut-down, behind all mini-batches on the clock that their times are of
        "tail_s": bounds.t_end_mono_s - last_s,
    }
    return Timed(bounds, timer.minibatch_s(), facts)


def times_of(loop: Timed) -> Document:
    """Return a record's keys on a loop: `facts`, bounds, `e2e_s` and sums of its times, s."""
    meta = dict(loop.facts, n_minibatches=len(loop.minibatch_s), **loop.bounds._asdict())
    meta["e2e_s"] = loop.bounds.t_end_mono_s - loop.bounds.t_start_mono_s
    # summed from what is stored (float32), so that record and array always agree
    totals = loop.minibatch_s.astype(np.float32).sum(axis=0, dtype=np.float64)
    meta.update((name, float(total)) for name, total in zip(columns.MINIBATCH_COLUMNS, totals))
    return meta
