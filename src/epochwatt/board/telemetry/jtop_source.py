"""Read rails, clocks and loads of a board from jtop (board side: Python 3.6 grammar).

jtop (package jetson-stats, versions 3.1, 4.x and 7.x) has a service that runs as root and samples
the board, once for all its clients. The client is a separate thread, which keeps each sample.
`jtop` is imported only where it is asked for, and in the sampler's process only: 7.x changes how
Python starts processes.

When was the power read? The service notes the system's uptime at the start of a sweep, and reads
the power in it; then the sample comes. So it was between the two, and the shortest way that a
sample ever took is the widest that this can be: its middle is taken. 3.x notes no time.

Source: the documentation of jetson-stats, and 3.1.4, 4.3.2 and 7.2.2 as they answer (`jtop_decode`
in service.py: uptime, CPU, GPU, processes, memory, engines, temperatures, power, fan, the rest).
"""

import importlib
import math
import os
import re
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from epochwatt.board.device.kinds import KINDS
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.ina3221 import sensor
from epochwatt.board.telemetry.rails import ModulePower, is_connected
from epochwatt.board.telemetry.source import (
    NAN,
    OFFLINE_C,
    READ_ERRORS,
    Arrivals,
    Service,
    column_names,
    in_words,
    zone_name,
)

START_S = 20.0  # to connect; the service may hang, and the client would wait for ever
STALE = 3  # intervals without a new sample; the client itself waits that long
OWN_TOTAL = "power_jtop_w"
WAY = "sample_way_s"
_UCSI = "ucsi-source-psy-"  # of USB-C ports; 4.x leaves it away
_CLOCK_BOOTTIME = 7  # linux/time.h: the clock of /proc/uptime; `time` has no name for it before 3.7
_TICK_S = 0.01  # of /proc/uptime, which cuts off


class Reading(NamedTuple):
    """A sample of the service."""

    rails_w: Dict[str, float]  # by label
    others: Dict[str, float]  # by column
    left_out: List[str]  # what jtop counts as a rail and is none of the module


def open_jtop(kind: str, interval_s: float = 1.0, not_sysfs: Optional[str] = None) -> "JtopSource":
    """Connect to the service and wait for its first sample.

    The client looks for installed libraries when it is made (it starts `nvcc`, `opencv_version`,
    `dpkg`): that is waited for as well, so that it disturbs no epoch.

    `kind`: kind of board, a name of `kinds.KINDS`
    `interval_s`: wished time between samples; the service keeps that of its first client
    `not_sysfs`: why sysfs was not read, for the record; None: jtop was asked for

    Raises OSError: with the reason, whatever it is: no package, no service, no permission, other
    version.
    """
    made: List[JtopSource] = []
    failed: List[Exception] = []
    given_up = threading.Event()

    def connect() -> None:  # in a thread of its own: the library may wait for ever
        client: Any = None
        try:
            module: Any = importlib.import_module("jtop")
            client = module.jtop(interval=interval_s)
            feed = Feed(client, kind, interval_s)
            client.start()
            client.board  # noqa: B018  it is there when the look for libraries has ended
            made.append(JtopSource(feed, kind, str(module.__version__), not_sysfs=not_sysfs))
        except Exception as error:  # noqa: BLE001  the library raises its own and pickle's
            failed.append(error)
        if client is not None and (failed or given_up.is_set()):
            client.close()  # else its thread, and the service for it, would go on

    thread = threading.Thread(target=connect, name="connect to jtop", daemon=True)
    thread.start()
    thread.join(START_S)
    source = made[0] if made else None
    if source is not None:
        return source
    given_up.set()
    if not failed:
        raise OSError(f"no answer from the jtop service within {START_S:g} s")
    if isinstance(failed[0], ImportError):
        raise OSError(f"no jetson-stats for {sys.executable}: {failed[0]}")
    raise OSError(f"jtop: {in_words(failed[0])}")


def uptime_s() -> float:
    """Return the system's uptime, s, as /proc/uptime has it."""
    return time.clock_gettime(_CLOCK_BOOTTIME)


class Feed:
    """The service's samples, each once; the client's thread puts them here.

    A client whose wait was in vain shows the last sample again, which its time reveals;
    3.x has no such time, so there the length of the wait does.

    `client` is a `jtop.jtop`, not started, or what stands for it in a test, and `interval_s` its
    own; `clock` is the monotonic clock and `uptime` the service's, s.

    `arrivals`: instant of the power; the sample and how old it came, s
    `shortest_s`: least time from the service's to ours; None: the service gives no time
    """

    def __init__(
        self,
        client: Any,
        kind: str,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
        uptime: Callable[[], float] = uptime_s,
    ) -> None:
        self.client = client
        self.interval_s = interval_s
        self.arrivals = Arrivals()
        self.shortest_s: Optional[float] = None
        self._kind = kind
        self._clock, self._system_uptime_s = clock, uptime
        self._called_s = clock()
        self._uptime: Any = None
        self._odd = ""  # why the last sample could not be understood
        client.attach(self._take)

    def _take(self, client: Any) -> None:
        """Add the client's sample to `arrivals` unless it is a repeated one.

        Called by the client; never raises, as that would end the client's thread.
        """
        now_s = self._clock()
        waited_s, self._called_s = now_s - self._called_s, now_s
        taken_s = now_s
        try:
            uptime = client.uptime
            is_3 = _is_3(client)
            if uptime == self._uptime or (is_3 and waited_s >= STALE * self.interval_s):
                return
            self._uptime = uptime
            taken_s = now_s if is_3 else self._instant_s(now_s, uptime.total_seconds())
            self.arrivals.add(taken_s, (reading(client, self._kind), now_s - taken_s))
            self._odd = ""
        except READ_ERRORS as error:
            self._odd = ": " + in_words(error)
            self.arrivals.add(taken_s, "jtop" + self._odd)

    def _instant_s(self, now_s: float, service_s: float) -> float:
        """Return when the power was read of a sample that came at `now_s`; update `shortest_s`.

        `service_s`: the uptime that the service noted at the start of its sweep, s. The power was
        read half of the shortest way after that (see the module's text).
        """
        suspended_s = self._system_uptime_s() - self._clock()
        sweep_s = service_s + _TICK_S / 2 - suspended_s
        way_s = now_s - sweep_s
        if not -_TICK_S < way_s < STALE * self.longer_interval_s:
            return now_s  # the service's uptime is not this system's
        way_s = max(0.0, way_s)
        self.shortest_s = way_s if self.shortest_s is None else min(way_s, self.shortest_s)
        return min(now_s, sweep_s + self.shortest_s / 2)

    def newest(self) -> Tuple[Reading, float]:
        """Return the newest sample and its age, s; raises OSError when it is too old."""
        newest = self.arrivals.newest
        if newest is None:
            raise OSError("no sample from jtop" + self._reason())
        t_s, taken = newest
        age_s = self._clock() - t_s
        if age_s > STALE * self.longer_interval_s:
            raise OSError(self.silence())
        if isinstance(taken, str):
            raise OSError(taken)
        return taken[0], age_s

    def restart(self) -> None:
        """Forget all samples but the newest, and that one too where it is old."""
        self.arrivals.restart(self._clock() - STALE * self.longer_interval_s)

    def silence(self) -> str:
        """Return for how long no sample has come, and why."""
        newest = self.arrivals.newest
        age_s = self._clock() - newest[0] if newest is not None else math.inf
        return f"no new sample from jtop for {age_s:.1f} s{self._reason()}"

    def _reason(self) -> str:
        """Return what the client says of its end, or what was odd; empty when it waits."""
        try:
            self.client.ok(spin=True)
        except Exception as error:  # noqa: BLE001  whatever has ended its thread
            return ": " + in_words(error)
        return self._odd

    @property
    def service_interval_s(self) -> float:
        """Time between two samples of the service, s."""
        return float(self.client.interval)

    @property
    def longer_interval_s(self) -> float:
        """The longer of both intervals, s."""
        return max(self.interval_s, self.service_interval_s)


class JtopSource(Service):
    """Rails and the state of the board, as the jtop service reports them.

    The module's power is the sum that `rails` knows to be right. jtop's own total is
    recorded too: without an input rail it adds all rails, even those fed by another rail.
    `sample_way_s` is the time from the instant of a sample until it came.

    The client of `feed` has started; `version` is that of jetson-stats; below `root` stand the
    sensor's own settings; `not_sysfs` says why sysfs was not read, None: jtop was asked for.
    """

    name = "jtop"

    def __init__(
        self,
        feed: Feed,
        kind: str,
        version: str,
        root: str = "/",
        not_sysfs: Optional[str] = None,
    ) -> None:
        super().__init__()
        self._feed, self._version, self._root, self._not_sysfs = feed, version, root, not_sysfs
        self.arrivals = feed.arrivals
        self.period_s = feed.service_interval_s or feed.interval_s
        first = feed.newest()[0]
        if not first.rails_w:
            raise OSError("it reports no power rail of this board")
        self._labels = tuple(first.rails_w)
        self._other_columns = tuple(first.others)
        self._left_out = first.left_out
        self._power = ModulePower(kind, self._labels)
        self.scope, self.total = self._power.scope, self._power.total
        self.columns = self._power.columns + self._other_columns + (WAY,)

    def start(self) -> None:
        """Count contradictions of the rails from zero; keep the newest sample only."""
        self._power.start()
        self._feed.restart()

    def read(self) -> List[float]:
        """Return the newest sample; what it lacks is NaN. Raises OSError when there is none."""
        return self.values(self._feed.newest())

    def values(self, taken: Tuple[Reading, float]) -> List[float]:
        """Return rails, module power, other columns and age of a sample of `arrivals`."""
        sample, age_s = taken
        row = self._power.row([sample.rails_w.get(label, NAN) for label in self._labels])
        return row + [sample.others.get(name, NAN) for name in self._other_columns] + [age_s]

    def silence(self) -> str:
        """Return for how long no sample has come, and why."""
        return self._feed.silence()

    def settings(self) -> Document:
        """Return the versions, the intervals and what the total is made of."""
        return dict(
            self._power.settings(),
            jetson_stats=self._version,
            not_sysfs=self._not_sysfs,
            interval_s=self._feed.interval_s,
            service_interval_s=self._feed.service_interval_s,
            shortest_way_s=self._feed.shortest_s,
            left_out=self._left_out,
            power="each sample of the service once, at the instant of its reading to half of "
            "shortest_way_s; sample_way_s: from there until it came",
            sensor=sensor(self._root, self._power.parts(), self.period_s),
        )

    def close(self) -> None:
        """Let the client end with its next sample."""
        self._feed.client.close()


def reading(client: Any, kind: str) -> Reading:
    """Return what a client shows now; raises `READ_ERRORS` where it is of another shape."""
    return _read_3(client, kind) if _is_3(client) else _read_4(client)


def _is_3(client: Any) -> bool:
    return isinstance(client.power, tuple)


def _read_4(client: Any) -> Reading:
    """Read a sample of a client of 4.x or 7.x: power in mW, clocks in kHz.

    The input rail, where there is one, stands under `tot` with its name, and not among the rails.
    Power supplies stand among them, and in the sum: 4.x takes a board's USB-C port for a rail.
    """
    power = client.power or {}
    total = power.get("tot", {})
    rails = dict(power.get("rail", {}))
    if "name" in total:
        rails[total["name"]] = total
    outside = {name.replace(_UCSI, "") for name in power_supplies()} & set(rails)
    gpu: Mapping[str, Any] = next(iter(client.gpu.values()), {})
    emc = client.memory.get("EMC", {})
    fan: Mapping[str, Any] = next(iter(client.fan.values()), {})
    others = _other_columns(
        _number(total.get("power"), 1e3) if rails else NAN,
        (gpu.get("freq", {}).get("cur"), gpu.get("status", {}).get("load")),
        (emc.get("cur"), emc.get("val")),
        next(iter(fan.get("speed", ())), None),
        {zone: state.get("temp") for zone, state in client.temperature.items()},
    )
    labels = sorted(label for label in set(rails) - outside if is_connected(label))
    watts = {label: _number(rails[label].get("power"), 1e3) for label in labels}
    return Reading(watts, others, sorted(outside))


def _read_3(client: Any, kind: str) -> Reading:
    """Read a sample of a client of 3.x, which shortens labels; its total is the input rail."""
    total, rails = client.power
    parents = {rail.label: rail.parent for rail in KINDS[kind].rails} if kind in KINDS else {}
    labels = {re.sub("VDD_|POM_", "", label).replace("_", " "): label for label in parents}
    watts = {
        labels.get(short, short): _number(rail["cur"], 1e3)
        for short, rail in rails.items()
        if is_connected(short)
    }
    total_w = _number(total.get("cur"), 1e3) if rails else NAN
    for label, parent in parents.items():
        if parent is None and "IN" in label and rails:
            watts[label] = total_w
    gpu, emc = [(part.get("frq"), part.get("val")) for part in (client.gpu, client.emc)]
    others = _other_columns(total_w, gpu, emc, client.fan.measure, client.temperature)
    return Reading(dict(sorted(watts.items())), others, [])


def power_supplies(folder: str = "/sys/class/power_supply") -> List[str]:
    """Return the names of the power supplies that Linux knows, which are no rails of the module."""
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _other_columns(
    total_w: float,
    gpu: Tuple[Any, Any],
    emc: Tuple[Any, Any],
    fan_pct: Any,
    temperatures: Mapping[str, Any],
) -> Dict[str, float]:
    """Return all columns but the rails: jtop's total, clocks, loads, fan and temperatures.

    `gpu`, `emc`: clock, kHz, and load, %. What is not a number is NaN, and so is a zone that is
    off, which reports -256 degrees.
    """
    others = {
        OWN_TOTAL: total_w,
        "gpu_mhz": _number(gpu[0], 1e3),
        "gpu_util_pct": _number(gpu[1]),
        "emc_mhz": _number(emc[0], 1e3),
        "emc_util_pct": _number(emc[1]),
        "fan_pct": _number(fan_pct),
    }
    names = [zone for zone in temperatures if zone_name(zone)]
    columns = column_names("temp", [zone_name(zone) for zone in names], "c")
    for column, name in zip(columns, names):
        celsius = _number(temperatures[name])
        others[column] = celsius if celsius > OFFLINE_C else NAN
    return others


def _number(value: Any, divisor: float = 1.0) -> float:
    return float(value) / divisor if isinstance(value, (int, float)) else NAN
