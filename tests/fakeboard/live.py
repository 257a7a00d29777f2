"""Process that moves a fake board's clocks, rails and counters with the load of real processes."""

import fcntl
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from epochwatt.board.telemetry.process_tree import ProcessTree
from epochwatt.errors import LockedError
from tests.fakeboard.model import Model
from tests.fakeboard.tree import RUN

PERIOD_S = 0.05
SMOOTHING_S = 0.25  # CPU time is counted in ticks of 10 ms: single steps would be coarse


class Load:
    """The share of this machine's CPUs that is at work, smoothed.

    Only the process tree below `pid` counts; None: everything on the machine.
    """

    def __init__(self, pid: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = None if pid is None else ProcessTree("/proc", pid)
        self._clock = clock
        self._ticks_per_s = os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
        self._before = (clock(), self._ticks())
        self._load = 0.0

    def read(self) -> float:
        """Return the load now, 0 to 1."""
        now_s, ticks = self._clock(), self._ticks()
        dt_s, used = now_s - self._before[0], ticks - self._before[1]
        self._before = (now_s, ticks)
        if dt_s > 0 and used >= 0:  # not when the tree has ended (NaN)
            share = min(1.0, used / (dt_s * self._ticks_per_s))
            self._load += (share - self._load) * min(1.0, dt_s / SMOOTHING_S)
        return self._load

    def _ticks(self) -> float:
        if self._tree is not None:
            return self._tree.totals()[0]
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return float(sum(ticks) - ticks[3] - ticks[4])


def live(root: Path, load_of: int | None, parent: int | None) -> None:
    """Move a board's clocks, rails and counters until SIGTERM, SIGINT or the parent's end.

    Each step adds a line to the board's power.csv: from that moment on the rails show this power.
    `load_of` is the root of the process tree whose load counts; None: the machine's.

    Raises LockedError: another process plays the board already.
    """
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ended.append(number))
    watched = [] if parent is None else [os.pidfd_open(parent)]
    with open(root / RUN / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LockedError(f"another process plays the fake board in {root}") from None
        model, load = Model(str(root)), Load(load_of)
        with open(root / RUN / "power.csv", "a", encoding="ascii", buffering=1) as power:
            before_s = due_s = time.monotonic()
            is_first = True
            while not ended:
                if select.select(watched, [], [], max(0.0, due_s - time.monotonic()))[0]:
                    break
                now_s = time.monotonic()
                power_w = model.step(now_s - before_s, load.read())
                power.write(f"{now_s:.6f},{power_w:.6f}\n")
                if is_first:
                    print(f"{root} lives", flush=True)
                before_s, due_s, is_first = now_s, max(due_s + PERIOD_S, now_s), False
