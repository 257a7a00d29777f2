"""Time the loop of an epoch: no I/O, print or formatting in it (board side: Python 3.6)."""

import time
from typing import Any, Callable, Iterable, NamedTuple


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
    """Train on the mini-batches of `loader` and stamp where the time goes.

    The `for` statement calls iter(loader) and next(): worker start falls into the first wait,
    worker shut-down (StopIteration) into the time after the last `ask`, hence the overhead.

    `keep`: takes the loss, and ends the loop where it returns something true; outside of every
    interval, so its time is overhead
    `timer`: made by `timing.make_timer` for the loader's length
    """
    stamp = timer.stamp
    t_start_unix_s = time.time()
    t_start_mono_s = time.perf_counter()
    stamp()  # ask
    for minibatch in loader:
        stamp()  # got
        moved = copy(minibatch)
        stamp()  # copied
        loss = step(moved)
        stamp()  # done
        if keep(loss):
            stamp()  # what follows
            break
        stamp()  # ask for the next
    timer.finish()
    t_end_mono_s = time.perf_counter()
    return Bounds(t_start_mono_s, t_end_mono_s, t_start_unix_s, time.time())
