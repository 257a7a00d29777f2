"""Set CPU clocks of a machine that is no board, by cpufreq (board side: Python 3.6 grammar).

The limits of a CPU (`scaling_min_freq`, `scaling_max_freq`) are both set to the clock. What they
were is noted before the first of them is changed (`device.notes`), so that the next job can put it
back after a kill. A start of the machine forgets limits and note alike. All of it is done under the
machine's lock, and only by a user whom the system lets write these files: nothing here asks for
more rights.

The limits are what is compared afterwards. The clock itself (`scaling_cur_freq`) is recorded only:
of an idle CPU many drivers report whatever it had last.
"""

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Tuple

from epochwatt.board.device import board_files, clocks, notes
from epochwatt.board.device.root_helper import write
from epochwatt.board.records.shapes import Document
from epochwatt.errors import BoardError, RecordWriteError

log = logging.getLogger(__name__)

NOTE = "cpu-clocks.json"  # of the limits before the first change
LIMITS = ("scaling_min_freq", "scaling_max_freq")
N_STEPS = 5  # from the lowest clock to the highest, where cpufreq lists none
GRAIN_KHZ = 100000  # of those in between: the step of most drivers that list none

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Limits = Dict[int, Tuple[int, int]]  # CPU -> lowest and highest clock that it may have, kHz


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off SIGINT, SIGTERM and SIGHUP to the end of the block.

    Their handlers are exchanged and no mask is set: a process that trains has threads, and a signal
    that is masked in this one is given to another.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only: nothing interrupts this one
        return
    arrived: List[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    try:
        for number in _ENDING:
            signal.signal(number, lambda number, _: arrived.append(number))
        yield
    finally:
        for number in _ENDING:
            signal.signal(number, handlers[number] or signal.SIG_DFL)
        for signal_number in sorted(set(arrived)):
            os.kill(os.getpid(), signal_number)


class CpuClocks:
    """The clocks of all CPUs of the machine whose files lie in `root`, set together."""

    patience_s = 2.0  # kernels since 5.3 follow a moment later

    def __init__(self, root: str) -> None:
        self.root = root

    def why_fixed(self) -> str:
        """Return why this user cannot set the clocks; empty: they can be set."""
        cpus = board_files.online(self.root)
        if not cpus:
            return "no CPU is listed in {}".format(
                os.path.join(self.root, "sys/devices/system/cpu")
            )
        for path in (self._path(cpu, name) for cpu in cpus for name in LIMITS):
            if not os.path.exists(path):
                return f"there is no {path}"
            if not os.access(path, os.W_OK):
                return f"this user may not write {path}"
        if len(self._steps_khz()) < 2:
            return "cpufreq names no two clocks that all CPUs have"
        return ""

    def steps_mhz(self) -> List[float]:
        """Return the clocks that all CPUs can be set to, ascending, MHz; empty: none.

        They are those that cpufreq lists. Where it lists none, they are five from the lowest clock
        to the highest, those in between whole 100 MHz.
        """
        return [] if self.why_fixed() else [khz / 1e3 for khz in self._steps_khz()]

    def _steps_khz(self) -> List[int]:
        """Return `steps_mhz` in kHz, also where this user may not set them."""
        cpus = board_files.online(self.root)
        names = (os.path.split(self._path(cpu, "scaling_available_frequencies")) for cpu in cpus)
        tables = [set(board_files.integers(board_files.text(*name))) for name in names]
        if any(tables):
            return sorted(set.intersection(*tables))
        lowest = [self._number(cpu, "cpuinfo_min_freq") for cpu in cpus]
        highest = [self._number(cpu, "cpuinfo_max_freq") for cpu in cpus]
        if None in lowest or None in highest:
            return []
        low, high = max(khz or 0 for khz in lowest), min(khz or 0 for khz in highest)
        steps = {low, high}
        for k in range(1, N_STEPS - 1):
            khz = round((low + (high - low) * k / (N_STEPS - 1)) / GRAIN_KHZ) * GRAIN_KHZ
            if low < khz < high:
                steps.add(khz)
        return sorted(steps)

    def pin(self, mhz: float) -> None:
        """Set both limits of all CPUs that are online to one of the steps, MHz.

        The first time the limits before are noted for `restore`. What cannot be written is no error
        here: `read_back` shows it. Raises BoardError: the limits before cannot be read;
        RecordWriteError: they cannot be noted; nothing was set.
        """
        if not self.left_over():
            limits: _Limits = {}
            for cpu in board_files.online(self.root):
                low, high = [self._number(cpu, name) for name in LIMITS]
                if low is None or high is None:
                    raise BoardError(
                        f"the clock limits of CPU {cpu} cannot be read; nothing was set"
                    )
                limits[cpu] = (low, high)
            self._note(limits)
        khz = round(mhz * 1e3)
        for cpu in board_files.online(self.root):
            self._limit(cpu, khz, khz)

    def read_back(
        self, wanted: Dict[str, float], patience_s: Optional[float] = None
    ) -> Tuple[Document, Dict[str, float], List[str]]:
        """Compare both limits of each CPU with the clock that is wanted, `cpu_mhz`.

        Waits up to `patience_s` for them to agree; None: as long as clocks may take. Returns
        `board_files.read_clocks`, and the unmet and unread keys of `clocks.compare`.
        """
        deadline_s = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        while True:
            readings = board_files.read_clocks(self.root)
            minima = dict(readings, cpu_max_khz=readings["cpu_min_khz"])
            unmet_min, unread_min = clocks.compare(minima, wanted, "on", None)
            unmet_max, unread_max = clocks.compare(readings, wanted, "on", None)
            unmet = dict(unmet_min, **unmet_max)
            if not unmet or time.monotonic() >= deadline_s:
                return readings, unmet, unread_max or unread_min
            time.sleep(0.05)

    def left_over(self) -> bool:
        """Return whether limits that this user has changed are not put back yet."""
        return self._noted() is not None

    def restore(self) -> None:
        """Put the limits back as the first `pin` found them.

        It may be called again. Signals that end a process wait until it is done. Raises BoardError.
        """
        before = self._noted()
        if before is None:
            return
        with undisturbed():
            for cpu, (low, high) in before.items():
                self._limit(cpu, low, high)
            deadline_s = time.monotonic() + self.patience_s
            while self._changed(before) and time.monotonic() < deadline_s:
                time.sleep(0.05)
            changed = self._changed(before)
            if changed:
                raise BoardError(
                    "limits of CPU clocks could not be put back",
                    found="; ".join(changed[:3]),
                    do="write them there as root, or start the machine again",
                )
            notes.remove_note(NOTE)

    def _changed(self, before: _Limits) -> List[str]:
        """Describe the limits of online CPUs that differ from those `before`."""
        online = board_files.online(self.root)
        return [
            "{} is {}, it was {}".format(self._path(cpu, name), self._number(cpu, name), khz)
            for cpu, limits in before.items()
            for name, khz in zip(LIMITS, limits)
            if cpu in online and self._number(cpu, name) != khz
        ]

    def _limit(self, cpu: int, low: int, high: int) -> None:
        """Write both limits, kHz, in the order in which no minimum is ever above its maximum."""
        order = [(LIMITS[1], high), (LIMITS[0], low)]
        if high < (self._number(cpu, LIMITS[0]) or 0):
            order.reverse()
        for name, khz in order:
            path = self._path(cpu, name)
            if not write(path, str(khz)):
                log.warning("%s cannot be set to %d", path, khz)

    def _note(self, limits: _Limits) -> None:
        """Write the note of the limits; RecordWriteError: it cannot be read back as it should."""
        groups: Dict[Tuple[int, int], List[int]] = {}
        for cpu, pair in limits.items():
            groups.setdefault(pair, []).append(cpu)
        rows = [[low, high, cpus] for (low, high), cpus in sorted(groups.items())]
        notes.write_note(NOTE, {"root": os.path.realpath(self.root), "limits": rows})
        if self._noted() != limits:
            raise RecordWriteError(
                "the limits of the CPU clocks cannot be noted; nothing was set",
                do="leave cpu_mhz as it is in config/sweeps.yaml: `parts: {cpu_mhz: []}`",
            )

    def _noted(self) -> Optional[_Limits]:
        """Return the limits that this user noted since this start; None: all are put back."""
        note = notes.own_note(NOTE)
        if note is None or note.get("root") != os.path.realpath(self.root):
            return None
        try:
            return {
                int(cpu): (int(low), int(high))
                for low, high, cpus in note["limits"]
                for cpu in cpus
            }
        except (KeyError, TypeError, ValueError):
            raise BoardError(
                f"the note {NOTE} of clocks to put back is not as epochwatt writes it",
                do="start the machine again: that puts all limits back",
            ) from None

    def _path(self, cpu: int, name: str) -> str:
        return os.path.join(board_files.cpu_folder(self.root, cpu), "cpufreq", name)

    def _number(self, cpu: int, name: str) -> Optional[int]:
        return board_files.number(os.path.dirname(self._path(cpu, name)), name)
