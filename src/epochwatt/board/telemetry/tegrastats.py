"""Run `tegrastats` as a child process, line by line (board side: Python 3.6 grammar).

Lines differ with the JetPack release, the board and the user: without root there are no clocks of
memory and GPU, one board prints no rails at all, and units and numbers per rail vary. Only what the
sampler records is read; all other words are skipped.
"""

import math
import os
import re
import select
import subprocess
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Pattern, Tuple

from epochwatt.board.device.board_files import text
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import process
from epochwatt.board.telemetry.ina3221 import sensor
from epochwatt.board.telemetry.rails import ModulePower, is_connected
from epochwatt.board.telemetry.source import NAN, OFFLINE_C, Service, column_names, zone_name

INTERVAL_S = 1.0  # of the child; the study of 2023 had the same
SILENT_S = 2.5 * INTERVAL_S  # without a line for so long, it has stopped
FIRST_S = 5.0  # to the first line; normally one interval
BLOCKED_BYTES = 32768  # so much waits only where nobody has read for minutes: it may be old
BLOCK_BYTES, MAX_BLOCKS = 65536, 4  # a tool gone mad does not hold the sampler up
_CPU_TIMES = slice(11, 15)  # of /proc/PID/stat behind the name: user, system, and its children's


class Line(NamedTuple):
    """Readings of a line; what it does not have is missing or None."""

    rails_mw: Dict[str, int]  # by label, now; the means that follow are left out
    temps_c: Dict[str, Optional[float]]  # by zone; None: its unit is off
    gpu_pct: Optional[int]
    gpu_mhz: Optional[int]  # of the fastest cluster
    emc_pct: Optional[int]  # without a clock it is a 0 that stands for nothing
    emc_mhz: Optional[int]


def _whole_words(pattern: str) -> Pattern:
    """Return a pattern of whole words; {n} is a number, {r} one that may have decimals."""
    n = "[0-9]{1,9}"  # longer ones are not readings, and would not fit a float exactly
    r = rf"-?{n}(?:\.{n})?"
    return re.compile(r"(?<!\S)" + pattern.format(n=n, r=r) + r"(?!\S)")


_LOAD = r"(?:_FREQ)? (?=[0-9@])(?:(?P<pct>{n})%)?(?:@(?P<mhz>{n}|\[{n}(?:,{n})*\]))?"
_GPU, _EMC = _whole_words("GR3D" + _LOAD), _whole_words("EMC" + _LOAD)
_TEMPERATURE = _whole_words("(?P<zone>[A-Za-z][A-Za-z0-9_-]*)@(?P<celsius>{r})C(?:/{r}C)*")
_RAIL = _whole_words(
    "(?P<label>[A-Z][A-Z0-9_]*) (?P<now>-?{n})(?P<unit>mW|)/-?{n}(?P=unit)(?:/-?{n}(?P=unit))?"
)


def parse_line(line: str) -> Line:
    """Return the readings of a line of tegrastats; never raises, whatever the text.

    Of what comes twice the first counts. Channels that are not connected are left out.
    """
    words = " ".join(line.split())
    rails_mw: Dict[str, int] = {}
    for match in _RAIL.finditer(words):
        if is_connected(match.group("label")):
            rails_mw.setdefault(match.group("label"), int(match.group("now")))
    temps_c: Dict[str, Optional[float]] = {}
    for match in _TEMPERATURE.finditer(words):
        celsius = float(match.group("celsius"))
        temps_c.setdefault(match.group("zone"), celsius if celsius > OFFLINE_C else None)
    return Line(rails_mw, temps_c, *_load(_GPU, words), *_load(_EMC, words))


def _load(pattern: Pattern, words: str) -> Tuple[Optional[int], Optional[int]]:
    """Return load, %, and highest clock, MHz: of `7%@768`, `7%`, `@1600` or `12%@[1300,1300]`."""
    match = pattern.search(words)
    if match is None:
        return None, None
    pct, mhz = match.group("pct"), match.group("mhz")
    clocks = [int(n) for n in mhz.strip("[]").split(",")] if mhz is not None else []
    return None if pct is None else int(pct), max(clocks, default=None)


class TegrastatsSource(Service):
    """The tool as a child process: each line once, at the moment at which it came.

    The tool reads the rails and prints at once, so that its own delay is a few milliseconds; they
    are not taken off. The child is started with the source and lives as long. When it ends or
    falls silent, that is a gap until the next window begins, which starts it anew.

    `root` is `/`, or the folder of a fake board, `clock` the monotonic clock, s.
    """

    name = "tegrastats"
    period_s = INTERVAL_S

    def __init__(self, root: str, kind: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._root = root
        self._tool = os.path.join(root, "usr/bin/tegrastats")
        self._child: Optional[subprocess.Popen] = None
        self._pending = b""
        self._ended = ""  # why the child prints no more
        self._cpu_before_s = 0.0
        self._n_starts = 0
        try:
            self._launch()
            first = parse_line(self._newest().decode("ascii", "replace"))
            if not first.rails_mw:
                raise OSError(f"{self._tool} prints no power rails on this board")
        except OSError:
            self.close()
            raise
        self._labels = list(first.rails_mw)
        self._zones = [zone for zone in first.temps_c if zone_name(zone)]
        self._power = ModulePower(kind, self._labels)
        self.scope, self.total = self._power.scope, self._power.total
        self.columns = (
            self._power.columns
            + ("gpu_mhz", "gpu_util_pct", "emc_mhz", "emc_util_pct")
            + column_names("temp", list(map(zone_name, self._zones)), "c")
        )

    def _launch(self) -> None:
        """Start the child and wait for its first line; raises OSError."""
        self.close()
        child = subprocess.Popen(
            [self._tool, "--interval", str(round(INTERVAL_S * 1000))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            bufsize=0,
            preexec_fn=_leave_real_time,
        )
        self._child, self._ended = child, ""
        self._n_starts += 1
        self._cpu_before_s = 0.0
        os.set_blocking(self._fd(), False)
        self._await_line()

    def _fd(self) -> int:
        return self._child.stdout.fileno()  # type: ignore[union-attr]

    def _await_line(self, after_s: float = -math.inf) -> None:
        """Wait until there is a line from after a moment; raises OSError."""
        deadline_s = self._clock() + FIRST_S
        poll = select.poll()
        poll.register(self._fd(), select.POLLIN)
        while self.arrivals.newest is None or self.arrivals.newest[0] <= after_s:
            left_s = deadline_s - self._clock()
            if left_s <= 0:
                raise OSError(f"{self._tool} printed nothing within {FIRST_S:g} s")
            poll.poll(1000 * left_s)
            self._drain()

    def _drain(self) -> int:
        """Stamp what the child has printed, without waiting; return its size, bytes.

        Raises OSError: the child is not running.
        """
        if self._child is None or self._ended:
            raise OSError(self._ended or f"{self._tool} is not running")
        n_bytes = 0
        lines: List[bytes] = []
        for _ in range(MAX_BLOCKS):
            try:
                block = os.read(self._fd(), BLOCK_BYTES)
            except BlockingIOError:
                break
            if not block:
                self._ended = f"{self._tool} ended (exit status {self._child.poll()})"
                break
            n_bytes += len(block)
            whole = (self._pending + block).split(b"\n")
            self._pending = whole.pop()[-BLOCK_BYTES:]
            lines += whole
        self._stamp(lines)
        return n_bytes

    def _stamp(self, lines: List[bytes]) -> None:
        """Add lines to `arrivals`: one at this moment, several one interval apart.

        Of several the last is placed by counting intervals from the newest line before, where that
        is within one interval of now, else now.
        """
        now_s, newest = self._clock(), self.arrivals.newest
        last_s = now_s
        if len(lines) > 1 and newest is not None:
            counted_s = newest[0] + len(lines) * INTERVAL_S
            last_s = counted_s if now_s - INTERVAL_S <= counted_s <= now_s else now_s
        for n, line in enumerate(lines, 1):
            self.arrivals.add(last_s - (len(lines) - n) * INTERVAL_S, line)

    def listen(self) -> None:
        """Take the lines that have come."""
        try:
            self._drain()
        except OSError as error:
            self._ended = str(error)

    def file(self) -> Optional[int]:
        """Return the end of the tool's pipe; None where no line can come any more."""
        return None if self._child is None or self._ended else self._fd()

    def silence(self) -> str:
        """Return why no line has come."""
        return self._ended or f"{self._tool} is silent"

    def _newest(self) -> bytes:
        """Return the newest line; raises OSError where the child has ended or is silent."""
        self._drain()
        newest = self.arrivals.newest
        if self._ended or newest is None or self._clock() - newest[0] > SILENT_S:
            raise OSError(self.silence())
        return bytes(newest[1])

    def start(self) -> None:
        """Begin a window: forget old lines, restart a silent child; raises OSError."""
        self._power.start()
        try:
            self._take_newest()
        except OSError:
            self._launch()
        self._cpu_before_s = self._cpu_s()

    def _take_newest(self) -> None:
        """Wait for a line that is fresh and forget those before it; raises OSError: none comes.

        What waited in a full pipe is dropped, with the line cut in it.
        """
        n_bytes, now_s = self._drain(), self._clock()
        if n_bytes > BLOCKED_BYTES:
            self._await_line(now_s)  # the one that was cut
            oldest_s = self._clock()
        else:
            oldest_s = now_s - SILENT_S
        self._await_line(oldest_s)
        self.arrivals.restart(oldest_s)

    def read(self) -> List[float]:
        """Return the values of the newest line; raises OSError where it is too old."""
        return self.values(self._newest())

    def values(self, taken: bytes) -> List[float]:
        """Return the values of a line of tegrastats, by `columns`; NaN for what it lacks."""
        line = parse_line(taken.decode("ascii", "replace"))
        watts = self._power.row([line.rails_mw.get(label, NAN) / 1e3 for label in self._labels])
        # a user who may not see the clock gets 0 %, whatever the load
        emc_pct = None if line.emc_mhz is None else line.emc_pct
        readings: List[Optional[float]] = [line.gpu_mhz, line.gpu_pct, line.emc_mhz, emc_pct]
        readings += [line.temps_c.get(zone) for zone in self._zones]
        return watts + [NAN if value is None else float(value) for value in readings]

    def _cpu_s(self) -> float:
        """Return the child's CPU time so far, s; NaN when it has ended."""
        if self._child is None:
            return NAN
        times = text(f"/proc/{self._child.pid}", "stat").rpartition(")")[2].split()[_CPU_TIMES]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") if times else NAN

    def settings(self) -> Document:
        """Return what the rails add up to, whose instants they are and what the child cost."""
        child_cpu_s = self._cpu_s() - self._cpu_before_s
        return dict(
            self._power.settings(),
            tool=self._tool,
            interval_s=INTERVAL_S,
            power="each line once, at the moment at which it came; one interval apart",
            child_cpu_s=child_cpu_s if child_cpu_s == child_cpu_s else None,
            child_starts=self._n_starts,
            sensor=sensor(self._root, self._power.parts(), INTERVAL_S),
        )

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        self._pending = b""
        self.arrivals.forget()
        if child is not None:
            child.kill()
            child.stdout.close()  # type: ignore[union-attr]
            child.wait()


def _leave_real_time() -> None:
    """Make the child end with the sampler and take it out of the sampler's real-time scheduling."""
    process.die_with_parent()
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pass
