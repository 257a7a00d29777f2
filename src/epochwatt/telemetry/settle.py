"""Waiting until a board is steady (board side: Python 3.6 grammar).

A board that was busy a minute ago is warmer than one that was idle, and draws more for it. Before
epoch 0 of a run it may wait until temperature and power keep still.
"""

import logging
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Tuple

from epochwatt.device import board_files
from epochwatt.telemetry.board import BoardSource
from epochwatt.telemetry.ina3221 import Ina3221Source
from epochwatt.telemetry.source import NAN, READ_ERRORS, Source

log = logging.getLogger(__name__)

EVERY_S = 1.0

Reading = Tuple[float, float]  # hottest sensor, C; module power, W


def settle(root: str, limits: Dict[str, Any]) -> Dict[str, Any]:
    """Wait until the board whose files lie in `root` is steady; return what came of it.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    limits : `max_s`, `window_s` (s), `temp_c` (K), `power_w` (W): largest change within the window

    Returns
    -------
    dict : `steady`, `waited_s`, and the hottest sensor `temp_c` and the power `power_w` at the end;
        None where there is no such reading, which then counts as steady
    """
    with _Readings(root) as readings:
        return wait_until_steady(readings.read, limits, time.monotonic, time.sleep)


def wait_until_steady(
    read: Callable[[], Reading],
    limits: Dict[str, Any],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Dict[str, Any]:
    """Do the waiting of `settle` with any reading, clock and sleep."""
    start_s = clock()
    window: Deque[Tuple[float, float, float]] = deque()
    while True:
        now_s = clock()
        temp_c, power_w = read()
        window.append((now_s, temp_c, power_w))
        while now_s - window[0][0] > limits["window_s"]:
            window.popleft()
        full = now_s - window[0][0] >= limits["window_s"] - 1.5 * EVERY_S
        full = full and now_s - start_s >= limits["window_s"] - EVERY_S
        steady = (
            full
            and _change([row[1] for row in window]) <= limits["temp_c"]
            and _change([row[2] for row in window]) <= limits["power_w"]
        )
        if steady or now_s - start_s >= limits["max_s"]:
            break
        sleep(EVERY_S)
    outcome = "is steady" if steady else "is still restless"
    log.info("the board %s after %.0f s", outcome, now_s - start_s)
    return {
        "steady": steady,
        "waited_s": now_s - start_s,
        "temp_c": temp_c if temp_c == temp_c else None,
        "power_w": power_w if power_w == power_w else None,
        "limits": dict(limits),
    }


def _change(values: Any) -> float:
    """Return the largest difference; 0 where nothing was read."""
    readings = [value for value in values if value == value]
    return max(readings) - min(readings) if readings else 0.0


class _Readings:
    """The two sources of a board for temperature and power."""

    def __init__(self, root: str) -> None:
        kind = board_files.board_kind(root)
        self._board = _made(lambda: BoardSource(root))
        self._power = _made(lambda: Ina3221Source(root, kind))

    def read(self) -> Reading:
        """Return the hottest sensor, C, and the module's power, W; NaN where it is not read."""
        temps = [v for k, v in _read(self._board).items() if k.startswith("temp_") and v == v]
        power = _read(self._power)
        total = self._power.total if self._power is not None else None
        return max(temps) if temps else NAN, power.get(total or "", NAN)

    def __enter__(self) -> "_Readings":
        return self

    def __exit__(self, *exception: Any) -> None:
        for source in (self._board, self._power):
            if source is not None:
                source.close()


def _made(make: Callable[[], Source]) -> Any:
    try:
        return make()
    except READ_ERRORS as error:
        log.warning("not all sensors can be used to see whether the board is steady: %s", error)
        return None


def _read(source: Any) -> Dict[str, float]:
    if source is None:
        return {}
    try:
        return dict(zip(source.columns, source.read()))
    except READ_ERRORS:
        return {}
