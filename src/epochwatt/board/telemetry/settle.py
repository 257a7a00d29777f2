"""Wait until a board is steady (board side: Python 3.6 grammar).

A board that was busy a minute ago is warmer than one that was idle, and draws more for it. Before
epoch 0 of a run it may wait until temperature and power keep still.
"""

import logging
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Tuple

from epochwatt.board.device import board_files
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.rails import TOTAL
from epochwatt.board.telemetry.source import NAN, READ_ERRORS, Source

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
    sources = _open(root)
    try:
        return wait_until_steady(lambda: _read(sources), limits, time.monotonic, time.sleep)
    finally:
        for source in sources:
            source.close()


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


def _open(root: str) -> List[Source]:
    """Return the sources of temperature and power that the board has."""
    kind = board_files.board_kind(root)
    makers: List[Callable[[], Source]] = [
        lambda: BoardSource(root),
        lambda: Ina3221Source(root, kind),
    ]
    sources = []
    for make in makers:
        try:
            sources.append(make())
        except READ_ERRORS as error:
            log.warning("not all sensors can be used to see whether the board is steady: %s", error)
    return sources


def _read(sources: List[Source]) -> Reading:
    """Return the hottest sensor, C, and the module's power, W; NaN where it is not read."""
    values: Dict[str, float] = {}
    for source in sources:
        try:
            values.update(zip(source.columns, source.read()))
        except READ_ERRORS:
            pass
    temps = [v for column, v in values.items() if column.startswith("temp_") and v == v]
    return max(temps, default=NAN), values.get(TOTAL, NAN)
