"""What `tegrastats` prints, in all its dialects (board side: Python 3.6 grammar).

It differs with the JetPack release, the board and the user: without root there are no clocks of
memory and GPU, one board prints no rails at all, and units and numbers per rail vary. What is not
known is kept as it stands and never guessed.
"""

import os
import re
import select
import subprocess
import time
from typing import Any, Callable, Dict, List, Match, Optional, Pattern, Tuple

from epochwatt.telemetry import process
from epochwatt.telemetry.columns import OFFLINE_C, column_names, zone_name
from epochwatt.telemetry.handles import text
from epochwatt.telemetry.rails import ModulePower, is_connected
from epochwatt.telemetry.source import NAN, Source

Parsed = Dict[str, Any]

# At most nine digits: longer ones are no readings, and would not fit a float exactly.
_N = "[0-9]{1,9}"
_R = r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?"
_CLOCK = r"(?:(?P<pct>{n})%)?(?:@(?P<mhz>{n}|\[{n}(?:,{n})*\]))?".format(n=_N)
_ENGINES = "APE|ISP|MSENC|NVCSI|NVDEC|NVDLA|NVENC|NVJPG|OFA|PVA|SE|TSEC|VI|VIC"


def parse_line(line: str) -> Parsed:
    """Return what a line of tegrastats tells; never raises, whatever the text.

    Each key is there only where the line has it, but for `unknown`:

    ram, swap : {used_mib, total_mib, ...}; RAM with largest free blocks, swap with `cached_mib`
    iram : {used_kib, total_kib, lfb_kib}
    cpu : one per core: {util_pct, mhz}; None: the core is off
    emc : {util_pct, mhz}; mhz is None where the user may not know it, and util_pct then is a 0 that
        stands for nothing
    gpu, gpu2 : {util_pct, mhz}; mhz is a list with one clock per cluster, None where unknown
    mts : {fg_pct, bg_pct}
    engines : by name: {util_pct, mhz}; None: it is off
    temps_c : by zone; None: its unit is off
    rails_mw : by label, now; the numbers behind it, means since tegrastats began, are left out, and
        so are channels that are not connected
    time : date and time as printed
    unknown : words that are none of these, or were there before; in order
    """
    words = " ".join(line.split())
    result: Parsed = {"unknown": []}
    place = 0
    while place < len(words):
        for pattern, take in _WORDS:
            found = pattern.match(words, place)
            if found is not None and take(result, found):
                place = found.end() + 1
                break
        else:
            word = words[place:].partition(" ")[0]
            result["unknown"].append(word)
            place += len(word) + 1
    return result


def _put(result: Parsed, key: str, value: Any) -> bool:
    """Keep a value unless there is one: what comes twice is not understood."""
    if key in result:
        return False
    result[key] = value
    return True


def _under(result: Parsed, key: str, name: str, value: Any) -> bool:
    return _put(result.setdefault(key, {}), name, value)


def _numbers(found: Match) -> Dict[str, Optional[int]]:
    return {name: int(n) if n is not None else None for name, n in found.groupdict().items()}


def _memory(key: str) -> Callable[[Parsed, Match], bool]:
    def take(result: Parsed, found: Match) -> bool:
        told = {name: n for name, n in _numbers(found).items() if n is not None}
        return _put(result, key, told)

    return take


def _mts(result: Parsed, found: Match) -> bool:
    return _put(result, "mts", _numbers(found))


def _time(result: Parsed, found: Match) -> bool:
    return found.start() == 0 and _put(result, "time", found.group())


def _cpu(result: Parsed, found: Match) -> bool:
    cores: List[Optional[Dict[str, Optional[int]]]] = []
    for item in found.group("cores").split(","):
        util, _, mhz = item.partition("%@")
        cores.append(None if item == "off" else {"util_pct": int(util), "mhz": int(mhz)})
    return _put(result, "cpu", cores)


def _load(found: Match) -> Dict[str, Any]:
    """Return `7%@768`, `7%`, `@1600` or `12%@[1300,1300]` as load and list of clocks."""
    util, mhz = found.group("pct"), found.group("mhz")
    return {
        "util_pct": int(util) if util is not None else None,
        "mhz": [int(n) for n in mhz.strip("[]").split(",")] if mhz is not None else None,
    }


def _emc(result: Parsed, found: Match) -> bool:
    load = _load(found)
    if load["mhz"] is not None:
        load["mhz"] = load["mhz"][0]
    return _put(result, "emc", load)


def _gpu(result: Parsed, found: Match) -> bool:
    return _put(result, "gpu" + found.group("number"), _load(found))


def _engine(result: Parsed, found: Match) -> bool:
    if found.group("off"):
        return _under(result, "engines", found.group("name"), None)
    util, mhz = found.group("pct"), found.group("mhz")
    about = {"util_pct": int(util) if util else None, "mhz": int(mhz)}
    return _under(result, "engines", found.group("name"), about)


def _temperature(result: Parsed, found: Match) -> bool:
    celsius = float(found.group("celsius"))
    return _under(result, "temps_c", found.group("zone"), celsius if celsius > OFFLINE_C else None)


def _rail(result: Parsed, found: Match) -> bool:
    label = found.group("label")
    if not is_connected(label):
        return True
    return _under(result, "rails_mw", label, int(found.group("now")))


def _words() -> List[Tuple[Pattern, Callable[[Parsed, Match], bool]]]:
    """Return each kind of word, to be tried in order, with what takes it."""
    used = "(?P<used_mib>{n})/(?P<total_mib>{n})MB".format(n=_N)
    iram = "(?P<used_kib>{n})/(?P<total_kib>{n})kB".format(n=_N)
    lfb = r"(?: \(lfb (?P<lfb_blocks>{n})x(?P<lfb_mib>{n})MB\))?".format(n=_N)
    core = "(?:off|{n}%@{n})".format(n=_N)
    shapes: List[Tuple[str, Callable[[Parsed, Match], bool]]] = [
        (r"[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}", _time),
        ("RAM " + used + lfb, _memory("ram")),
        ("SWAP " + used + r"(?: \(cached (?P<cached_mib>{n})MB\))?".format(n=_N), _memory("swap")),
        ("IRAM " + iram + r"(?: ?\(lfb (?P<lfb_kib>{n})kB\))?".format(n=_N), _memory("iram")),
        # one recorded line begins with the list itself: only the CPU has one of that shape
        (r"(?:CPU )?\[(?P<cores>{c}(?:,{c})*)\]".format(c=core), _cpu),
        ("EMC_FREQ (?=[0-9@])" + _CLOCK, _emc),
        ("GR3D(?P<number>2?)_FREQ (?=[0-9@])" + _CLOCK, _gpu),
        ("MTS fg (?P<fg_pct>{n})% bg (?P<bg_pct>{n})%".format(n=_N), _mts),
        (
            "(?P<name>(?:{e})[0-9]{{0,2}})(?:_FREQ)? "
            "(?:(?P<off>off)|(?:(?P<pct>{n})%)?@?(?P<mhz>{n}))".format(e=_ENGINES, n=_N),
            _engine,
        ),
        ("(?P<zone>[A-Za-z][A-Za-z0-9_-]*)@(?P<celsius>{r})C(?:/{r}C)*".format(r=_R), _temperature),
        (
            "(?P<label>[A-Z][A-Z0-9_]*) (?P<now>-?{n})(?P<unit>mW|)/-?{n}(?P=unit)"
            "(?:/-?{n}(?P=unit))?".format(n=_N),
            _rail,
        ),
    ]
    return [(re.compile(shape + "(?= |$)"), take) for shape, take in shapes]


_WORDS = _words()


INTERVAL_S = 1.0  # what the child is told; the study of 2023 had the same
SILENT_S = 2.5 * INTERVAL_S  # without a line for so long, it has stopped
FIRST_S = 5.0  # to the first line; normally one interval
BLOCKED_BYTES = 32768  # so much waits only where nobody has read for minutes: it may be old
BLOCK_BYTES, MAX_BLOCKS = 65536, 4  # a tool gone mad does not hold the sampler up
_CPU_TIMES = slice(11, 15)  # of /proc/PID/stat behind the name: user, system, and its children's


class TegrastatsSource(Source):
    """The tool as a child process: its newest line, each second.

    The child is started with the source and lives as long. A reading never waits. When the child
    ends or falls silent, that is a gap until the next window begins, which starts it anew.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    kind : kind of board
    clock : seconds of the monotonic clock
    """

    name = "tegrastats"
    period_s = INTERVAL_S
    scope = "module"

    def __init__(self, root: str, kind: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tool = os.path.join(root, "usr/bin/tegrastats")
        self._child: Optional[subprocess.Popen] = None
        self._pending = b""
        self._line: Optional[bytes] = None
        self._heard_s = 0.0
        self._cpu_before_s = 0.0
        self._n_starts = 0
        try:
            self._launch()
            first = parse_line(self._newest().decode("ascii", "replace"))
            if "rails_mw" not in first:
                raise OSError("{} prints no power rails on this board".format(self._tool))
        except OSError:
            self.close()
            raise
        self._labels = list(first["rails_mw"])
        self._zones = [zone for zone in first.get("temps_c", {}) if zone_name(zone)]
        self._power = ModulePower(kind, self._labels)
        self.total = self._power.total
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
            preexec_fn=_be_ordinary,
        )
        self._child = child
        self._n_starts += 1
        self._cpu_before_s = 0.0
        os.set_blocking(self._fd(), False)
        self._await_line()

    def _fd(self) -> int:
        return self._child.stdout.fileno()  # type: ignore[union-attr]

    def _await_line(self) -> None:
        """Wait until there is a line; raises OSError."""
        deadline_s = self._clock() + FIRST_S
        poll = select.poll()
        poll.register(self._fd(), select.POLLIN)
        while self._line is None:
            left_s = deadline_s - self._clock()
            if left_s <= 0:
                raise OSError("{} printed nothing within {:g} s".format(self._tool, FIRST_S))
            poll.poll(1000 * left_s)
            self._drain()

    def _drain(self) -> int:
        """Take what has been printed, without waiting; return its size. Raises OSError."""
        n_bytes = 0
        for _ in range(MAX_BLOCKS):
            try:
                block = os.read(self._fd(), BLOCK_BYTES)
            except BlockingIOError:
                break
            if not block:
                code = self._child.poll()  # type: ignore[union-attr]
                raise OSError("{} ended (exit status {})".format(self._tool, code))
            n_bytes += len(block)
            lines = (self._pending + block).split(b"\n")
            self._pending = lines.pop()[-BLOCK_BYTES:]
            if lines:
                self._line, self._heard_s = lines[-1], self._clock()
        return n_bytes

    def _newest(self) -> bytes:
        """Return the newest line; raises OSError where the child has ended or is silent."""
        if self._child is None:
            raise OSError("{} is not running".format(self._tool))
        self._drain()
        if self._line is None or self._clock() - self._heard_s > SILENT_S:
            raise OSError("{} is silent".format(self._tool))
        return self._line

    def start(self) -> None:
        """A window begins: have a child that prints, and forget its old lines; raises OSError."""
        self._power.start()
        try:
            self._refresh()
        except OSError:
            self._launch()
        self._cpu_before_s = self._cpu_s()

    def _refresh(self) -> None:
        """Take the newest line; what waited in a full pipe is dropped, with the line cut in it."""
        if self._child is None:
            raise OSError("not running")
        if self._clock() - self._heard_s > SILENT_S:
            self._line = None
        if self._drain() > BLOCKED_BYTES:
            self._line = None
            self._await_line()  # the one that was cut
            self._line = None
        self._await_line()

    def read(self) -> List[float]:
        """Return what the newest line tells; raises OSError where it is too old."""
        told = parse_line(self._newest().decode("ascii", "replace"))
        rails, temps = told.get("rails_mw", {}), told.get("temps_c", {})
        values = self._power.row([rails.get(label, NAN) / 1e3 for label in self._labels])
        gpu, emc = told.get("gpu", {}), told.get("emc", {})
        clocks = gpu.get("mhz") or [NAN]
        values += [max(clocks), _or_nan(gpu.get("util_pct")), _or_nan(emc.get("mhz"))]
        # who may not know the clock is told 0 % whatever the load
        values.append(NAN if emc.get("mhz") is None else _or_nan(emc.get("util_pct")))
        values += [_or_nan(temps.get(zone)) for zone in self._zones]
        return values

    def _cpu_s(self) -> float:
        """Return the child's CPU time so far, s; NaN when it has ended."""
        if self._child is None:
            return NAN
        times = text("/proc/{}/stat".format(self._child.pid)).rpartition(")")[2].split()[_CPU_TIMES]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") if times else NAN

    def settings(self) -> Dict[str, Any]:
        """Return what the rails add up to, whose instants they are and what the child cost."""
        child_cpu_s = self._cpu_s() - self._cpu_before_s
        return dict(
            self._power.settings(),
            tool=self._tool,
            interval_s=INTERVAL_S,
            power="at instants of the tool's own, exactly one interval apart; up to one old",
            child_cpu_s=child_cpu_s if child_cpu_s == child_cpu_s else None,
            child_starts=self._n_starts,
        )

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        self._line, self._pending = None, b""
        if child is not None:
            child.kill()
            child.stdout.close()  # type: ignore[union-attr]
            child.wait()


def _or_nan(value: Optional[float]) -> float:
    return NAN if value is None else float(value)


def _be_ordinary() -> None:
    """In the child: end with the sampler, but do not run before others as the sampler does."""
    process.die_with_parent()
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pass
