"""A power sensor with a known integral that logs each look at it; needs the standard library only.

All processes of a peer share one signal, as a function of the machine's monotonic clock, and one
log, a file to which each reading appends its moment.
"""

import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.synthetic import SyntheticSource

LOG, PHASE = "PEER_LOG", "PEER_PHASE_S"  # environment variables, so that spawned children know
_STAMP = struct.Struct("d")


@dataclass(frozen=True)
class Found:
    """What an adapter gives back.

    Parameters
    ----------
    energy_j : the peer's own answer, J
    start_s, end_s : the window it was asked about, on the monotonic clock
    cpu_s : CPU time of the peer's processes in that window
    """

    energy_j: float
    start_s: float
    end_s: float
    cpu_s: float


class Meter:
    """The sensor."""

    def __init__(self) -> None:
        self.signal = SyntheticSource(phase_s=float(os.environ[PHASE]))
        self._log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND)

    def watts(self) -> float:
        """Return the power now; note the moment."""
        now_s = time.monotonic()
        os.write(self._log, _STAMP.pack(now_s))
        return self.signal.power_w(now_s)

    def milliwatts(self) -> float:
        """Return the same in mW."""
        return 1000.0 * self.watts()


def read_log(path: Path) -> list[float]:
    """Return the moments of all readings, s."""
    data = path.read_bytes()
    return [stamp for (stamp,) in _STAMP.iter_unpack(data)]


def cpu_s() -> float:
    """Return the CPU time of this process and of its living descendants, s.

    The kernel's own clocks: nanoseconds, and threads that have ended are in them.
    """
    used_s = time.process_time()
    for pid in _descendants(os.getpid()):
        used_s += process_cpu_s(pid)
    return used_s


def process_cpu_s(pid: int) -> float:
    """Return the CPU time of a process, s; 0 when it has ended (clock_getcpuclockid(3))."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _descendants(pid: int) -> list[int]:
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                text = Path(entry.path, "stat").read_text()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for child, parent in parents.items() if parent in level]
        found += level
    return found
