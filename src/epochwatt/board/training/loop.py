"""Time the loop of an epoch: no I/O, print or formatting in it (board side: Python 3.6)."""

import time
from typing import Any, Callable, Iterable, NamedTuple

# A stamp says what begins: waiting for the next mini-batch, waiting again after a pause, the loop's
# body, moving the mini-batch, the step, what the loop does after it, something within a wait.
ASK, AGAIN, BODY, COPY, STEP, DONE, PAUSE = PARTS = range(7)
STAMPS = 4  # of a mini-batch, by `run_epoch`


class Bounds(NamedTuple):
    """Begin and end of a loop."""

    t_start_mono_s: float
    t_end_mono_s: float
    t_start_unix_s: float
    t_end_unix_s: float


def run_epoch(
    loader: Iterable,
    copy: Callable[[Any], Any],
    step: Callable[[Any], Any],
    keep: Callable[[Any], Any],
    timer: Any,
) -> Bounds:
    """Train on the mini-batches of `loader` and stamp each part's begin; return begin and end.

    The `for` statement calls iter(loader) and next(): worker start falls into the first wait,
    worker shut-down (StopIteration) into the time after the last `ASK`, hence the overhead.

    `copy`: moves a mini-batch to the device; `step`: trains on it and returns its loss; `keep`:
    takes the loss, and ends the loop where it returns something true; its time is overhead
    `timer`: made by `timing.make_timer`
    """
    stamp = timer.stamp
    t_start_unix_s = time.time()
    t_start_mono_s = time.perf_counter()
    stamp(ASK)
    for minibatch in loader:
        stamp(COPY)
        moved = copy(minibatch)
        stamp(STEP)
        loss = step(moved)
        stamp(DONE)
        is_last = keep(loss)
        stamp(ASK)
        if is_last:
            break
    timer.finish()
    t_end_mono_s = time.perf_counter()
    return Bounds(t_start_mono_s, t_end_mono_s, t_start_unix_s, time.time())
