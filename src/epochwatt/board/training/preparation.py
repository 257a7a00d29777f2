"""Prepare the machine for a measurement, and restore it however that ends (board side: Python 3.6).

A board that was busy a minute ago is warmer than one that was idle, and draws more for it. Before
epoch 0 of a run it may wait until temperature and power keep still.
"""

import logging
import math
import os
import signal
import time
from collections import deque
from contextlib import contextmanager
from types import FrameType
from typing import Callable, Deque, Dict, Iterable, Iterator, List, Optional, Tuple

from epochwatt.board.device import board_files
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.rails import TOTALS
from epochwatt.board.telemetry.source import NAN, READ_ERRORS, Source
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

BUSY_S = 0.5  # how long the load of other programs is looked at
BUSY_LOOKS = 8  # at most: the workflow itself is busy for a moment after it has started a job
CALM_PCT = 5.0  # below it nobody looks again
ENDING = (signal.SIGTERM, signal.SIGHUP)  # a lost ssh connection sends the second
SETTLE_EVERY_S = 1.0

Reading = Tuple[float, float]  # hottest sensor, C; power of module or board, W


@contextmanager
def prepared(machine: Machine, factors: Factors, first_epoch: int) -> Iterator[Document]:
    """Set the run's power mode for the block and put the former settings back, however it ends.

    Call it under the machine's lock: what a killed job left set is put back first. Before epoch 0
    the board may settle.

    Raises BoardError: this is not the run's board, unit or medium, or a setting was not met;
    RebootNeeded: the board has to be restarted first.

    Yields `power_mode` as it was set and read back, `busy_pct`, the load of other programs before,
    `settled` (see `settle`; None: not waited); empty on a host, where a run sets nothing
    """
    with put_back(machine):
        settings = factors.get("power_mode_settings", {})
        if machine.backend == "host":
            machine.apply(settings, factors["dvfs"])  # raises BoardError for any setting
            yield {}
            return
        busy_pct = others_pct(machine)
        mode = machine.apply(settings, factors["dvfs"])
        limits, settled = machine.settings["settle"], None
        if limits is not None and first_epoch == 0:
            settled = settle(machine.root, limits)
        yield {"power_mode": mode, "busy_pct": busy_pct, "settled": settled}


@contextmanager
def put_back(machine: Machine) -> Iterator[None]:
    """Restore the machine's settings after the block, also when SIGTERM or SIGHUP ends it.

    Those that a killed job left are restored before it. Raises as `prepared`.
    """
    machine.check()
    if machine.left_over():
        log.warning("a job before this one was killed: its settings are put back first")
        machine.restore()
    with _ended_by_exception():
        try:
            yield
        finally:
            machine.restore()


@contextmanager
def _ended_by_exception() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP inside the block into SystemExit, so that `finally` is reached."""
    owner = os.getpid()

    def end(number: int, frame: Optional[FrameType]) -> None:
        if os.getpid() != owner:  # a loader worker, forked with this handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        log.warning("ended by %s: the machine is put back", signal.Signals(number).name)
        raise SystemExit(128 + number)

    handled = [n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN]  # nohup ignores one
    previous_handlers = {number: signal.signal(number, end) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def others_pct(machine: Machine) -> Optional[float]:
    """Measure the load of other programs, % of all CPUs: the least of up to `BUSY_LOOKS` tries.

    It takes `BUSY_S` s each and ends at the first below `CALM_PCT`; None: the load is not known.
    """
    least_pct = math.inf
    for _ in range(BUSY_LOOKS):
        busy_pct = machine.busy_pct(BUSY_S)
        if busy_pct is None:
            return None
        least_pct = min(least_pct, busy_pct)
        if least_pct < CALM_PCT:
            break
    return least_pct


def settle(root: str, limits: Document) -> Document:
    """Wait until temperature and power of the board below `root` are steady.

    `limits`: `max_s`, longest wait; `temp_c` (K) and `power_w` (W), largest change that is allowed
    within `window_s`

    Returns `steady`, `waited_s`, `limits`, and at the end the hottest sensor `temp_c` and the
    module's power `power_w`; None where there is no reading, which counts as steady
    """
    kind = board_files.board_kind(root)
    sources: List[Source] = []
    for make in (lambda: BoardSource(root), lambda: Ina3221Source(root, kind)):
        try:
            sources.append(make())
        except READ_ERRORS as error:
            log.warning("not all sensors can be used to see whether the board is steady: %s", error)
    try:
        return wait_until_steady(lambda: _read(sources), limits, time.monotonic, time.sleep)
    finally:
        for source in sources:
            source.close()


def wait_until_steady(
    read: Callable[[], Reading],
    limits: Document,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Document:
    """Call `read` every `SETTLE_EVERY_S` until it is steady or the time over; returns as `settle`.

    It is steady once a window is full of readings that differ by no more than the limits.
    """
    start_s = clock()
    window: Deque[Tuple[float, float, float]] = deque()
    while True:
        now_s = clock()
        temp_c, power_w = read()
        window.append((now_s, temp_c, power_w))
        while now_s - window[0][0] > limits["window_s"]:
            window.popleft()
        _, temps_c, powers_w = zip(*window)
        steady = (
            now_s - window[0][0] >= limits["window_s"] - 1.5 * SETTLE_EVERY_S
            and now_s - start_s >= limits["window_s"] - SETTLE_EVERY_S
            and _spread(temps_c) <= limits["temp_c"]
            and _spread(powers_w) <= limits["power_w"]
        )
        if steady or now_s - start_s >= limits["max_s"]:
            break
        sleep(SETTLE_EVERY_S)
    outcome = "is steady" if steady else "is still restless"
    log.info("the board %s after %.0f s", outcome, now_s - start_s)
    return {
        "steady": steady,
        "waited_s": now_s - start_s,
        "temp_c": None if math.isnan(temp_c) else temp_c,
        "power_w": None if math.isnan(power_w) else power_w,
        "limits": dict(limits),
    }


def _spread(values: Iterable[float]) -> float:
    """Return the largest minus the smallest value that is not NaN; 0 where there is none."""
    readings = [value for value in values if not math.isnan(value)]
    return max(readings) - min(readings) if readings else 0.0


def _read(sources: List[Source]) -> Reading:
    """Read the hottest sensor, C, and the power of module or board, W; NaN: no reading."""
    values: Dict[str, float] = {}
    for source in sources:
        try:
            readings = zip(source.columns, source.read())
            values.update((column, v) for column, v in readings if not math.isnan(v))
        except READ_ERRORS:
            pass
    temps_c = [value for column, value in values.items() if column.startswith("temp_")]
    return max(temps_c, default=NAN), next((values[t] for t in TOTALS.values() if t in values), NAN)
