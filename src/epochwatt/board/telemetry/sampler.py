"""Sample all sources in a loop (board side: Python 3.6 grammar).

Each power source has its own instants. Sources without power are read one after the other at
some of the instants of the fastest power source, after it: a wake-up costs more than a reading.
"""

import os
import resource
import select
import time
from typing import Callable, Dict, List, Optional, Tuple

import epochwatt
from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import process
from epochwatt.board.telemetry.channel import (
    Channel,
    Clock,
    ServiceChannel,
    channel_of,
    together,
)
from epochwatt.board.telemetry.source import Service, Source, in_words
from epochwatt.columns import widest_scope

SCHEMA_VERSION = 1  # of telemetry.json
STATISTICS = "telemetry.json"
FLUSH_S = 10.0  # rows wait no longer than that and one period for being written; plans reach so far
IDLE_S = 3600.0  # to the next instant when there is none
PATIENCE = 1.5  # intervals of a service until its first sample after a window; after one at most
LOOKS = 20  # in an interval, for that sample

Row = Tuple[float, Channel]  # the instant of a reading to come, and of what


class Superseded(Exception):  # noqa: N818  it is no error
    """Another thread serves in the place of this one, whose reading took too long."""


class Recorder:
    """Samples all sources while a window is open, and does nothing else in between.

    A window is an epoch or any other time; several may be open at once. What is sampled goes into
    the folder of each.

    `seed`: of the instants; they differ between sources and between epochs
    `clock`, `wall`: the monotonic and the wall clock, s
    `rest`: lets some seconds pass; None: until then or until a service has something
    """

    def __init__(
        self,
        sources: List[Source],
        seed: int,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        rest: Optional[Callable[[float], None]] = None,
    ) -> None:
        self._sources = sources
        # the sources that sample by themselves
        self.services = [source for source in sources if isinstance(source, Service)]
        self._rest = rest or self._watch
        self._seed = seed
        self._clock, self._wall = clock, wall
        self._channels: List[Channel] = []
        self._windows: Dict[str, Tuple[float, float]] = {}  # folder -> CPU time and moment of begin
        self._plan: List[Row] = []  # the next row is the last of the list
        # The reading under way: (begin, channel), at most one. Two threads race to pop it: the one
        # that reads when the reading has come back, the other when it takes over.
        self._reading: List[Row] = []
        self._hanging: Optional[Channel] = None  # in a thread that no longer serves

    def begin(self, folder: str) -> Document:
        """Open a window: make its sample files and read every source once; return `t_mono_s`.

        The first window also plans the instants of all sources. A window of the same folder that
        was never ended is forgotten. Raises OSError: the files cannot be made.
        """
        self.drop(folder)
        is_first = not self._windows
        self._windows[folder] = _cpu_s(), self._clock()
        if is_first:
            self._channels = [
                channel_of(source, self._clock, self._wall) for source in self._usable()
            ]
        channels = [channel for channel in self._channels if channel is not self._hanging]
        try:
            for channel in channels:
                channel.open(folder)
        except OSError:
            self.drop(folder)
            raise
        for channel in channels:
            channel.sample(self._clock(), None)
        if is_first:
            epoch = os.path.basename(os.path.normpath(folder))
            self._strata_s = self._until_s = self._clock()
            for channel in channels:
                name = channel.source.name if channel.source.scope else "counters"
                channel.begin(f"{self._seed}/{name}/{epoch}", self._until_s)
            self._look_ahead()
        return {"t_mono_s": self._clock()}

    def step(self) -> float:
        """Take the rows that are due, if any are; return the time to the next instant, s."""
        plan = self._plan
        if not plan:
            return self._look_ahead()
        now_s = self._clock()
        if now_s < plan[-1][0]:
            return plan[-1][0] - now_s
        due = [plan.pop()]
        if plan and plan[-1][0] <= now_s:
            due = self._latest(due, now_s)
        for planned_s, channel in due:
            if channel is self._hanging:
                channel.schedule.n_late += 1
            else:
                now_s = self._sample(channel, now_s, planned_s)
        return max(0.0, plan[-1][0] - now_s) if plan else self._look_ahead()

    def _sample(self, channel: Channel, now_s: float, planned_s: float) -> float:
        """Read a source; return the moment after that, s.

        Raises Superseded: it took so long that the other thread has taken over (`take_over`).
        """
        self._reading.append((now_s, channel))
        after_s = channel.sample(now_s, planned_s)
        try:
            self._reading.pop()
        except IndexError:  # popped by the other thread
            self._hanging = None
            raise Superseded from None
        return after_s

    def take_over(self, hang_s: float) -> bool:
        """Leave out the source whose reading has lasted over `hang_s`; return whether there is one.

        If so, the caller has to serve the other sources in its own thread. One reading may hang at
        a time.
        """
        reading = self._reading[:]
        if self._hanging or not reading:
            return False
        begin_s, channel = reading[0]
        if self._clock() - begin_s <= hang_s:
            return False
        self._hanging = channel  # before the pop: the other thread may end the reading after it
        try:
            self._reading.pop()
        except IndexError:  # it has just come back
            self._hanging = None
            return False
        return True

    def _usable(self) -> List[Source]:
        """Return the sources, except one that hangs."""
        hanging = None if self._hanging is None else self._hanging.source
        return [source for source in self._sources if source is not hanging]

    def _look_ahead(self) -> float:
        """Write the rows taken so far and plan the next; return the time to the first, s."""
        if not self._channels:
            return IDLE_S
        now_s = self._clock()
        self._until_s = max(now_s, self._until_s) + FLUSH_S
        for channel in self._channels:
            channel.flush()
        self._plan = self._rows(now_s)
        return max(0.0, self._plan[-1][0] - self._clock()) if self._plan else FLUSH_S

    def _rows(self, now_s: float) -> List[Row]:
        """Plan the rows until `_until_s` and return them in descending order of time.

        Sources without power are moved to instants of the fastest power source.
        """
        instants = {channel: channel.ahead(now_s, self._until_s) for channel in self._channels}
        power = [
            channel
            for channel in instants
            if channel.source.scope is not None and not isinstance(channel, ServiceChannel)
        ]
        counters = [channel for channel in instants if channel.source.scope is None]
        if power:
            fastest = min(power, key=lambda channel: channel.source.period_s)
            for channel in counters:
                instants[channel] = together(
                    instants[channel],
                    instants[fastest],
                    start_s=self._strata_s,
                    period_s=fastest.source.period_s,
                )
        rows = [(t_s, channel) for channel in power + counters for t_s in instants[channel]]
        rows.sort(key=lambda row: row[0])
        return rows[::-1]  # where instants are equal, power comes first

    def _latest(self, due: List[Row], now_s: float) -> List[Row]:
        """Take all due rows off the plan; return each channel's latest, count the rest as late."""
        while self._plan and self._plan[-1][0] <= now_s:
            due.append(self._plan.pop())
        latest: Dict[Channel, float] = {}
        for planned_s, channel in due:
            if channel in latest:
                channel.schedule.n_late += 1
            latest[channel] = planned_s
        return [(planned_s, channel) for channel, planned_s in latest.items()]

    def power(self) -> Document:
        """Return the power readings of the widest scope that is measured, since the previous call.

        `scope`, None where no source has a total; `period_s` between its readings; `readings`:
        list of (stamp, s; power, W).
        """
        channels = {
            channel.source.scope: channel
            for channel in self._channels
            if channel.source.total is not None and channel is not self._hanging
        }
        scope = widest_scope(channels)
        if scope is None:
            return {"scope": None, "period_s": None, "readings": []}
        period_s = channels[scope].source.period_s
        return {"scope": scope, "period_s": period_s, "readings": channels[scope].power()}

    def end(self, folder: str) -> Document:
        """End a window: read every source once more, close the files, return the statistics.

        They are also written to telemetry.json beside the samples; `write_error` says why not.
        Raises ValueError: no window was begun in `folder`.
        """
        if folder not in self._windows:
            raise ValueError(f"no window was begun in {folder}")
        for channel in self._channels:
            if channel is self._hanging:
                channel.hangs(folder)
            else:
                channel.sample(self._clock(), None)
        self._await_services(self._channels, self._clock())
        tapes = [(channel, channel.end(folder)) for channel in self._channels]
        before_cpu_s, start_s = self._windows.pop(folder)
        cpu_s, end_s = _cpu_s() - before_cpu_s, self._clock()
        sources = {
            channel.source.name: channel.statistics(tape, end_s)
            for channel, tape in tapes
            if tape is not None
        }
        if not self._windows:
            self._channels, self._plan = [], []
        statistics = {
            "schema_version": SCHEMA_VERSION,
            "epochwatt": epochwatt.__version__,
            "lost": False,
            "seed": self._seed,
            "scheduling": process.scheduling(),
            "t_begin_mono_s": start_s,
            "t_end_mono_s": end_s,
            "wall_s": end_s - start_s,
            "cpu_s": cpu_s,
            "clock_jumps": max([source["clock_jumps"] for source in sources.values()] or [0]),
            "sources": sources,
        }
        try:
            files.write_json(os.path.join(folder, STATISTICS), statistics)
        except OSError as error:
            statistics["write_error"] = in_words(error)  # the trainer hears them all the same
        return statistics

    def _await_services(self, channels: List[Channel], end_s: float) -> None:
        """Wait until each service has taken a sample after `end_s`, or has had its time."""
        for channel in channels:
            if not isinstance(channel, ServiceChannel):
                continue
            period_s = channel.source.period_s
            while not channel.has_reached(end_s):
                if self._clock() - end_s > PATIENCE * period_s:
                    channel.give_up(end_s)
                    break
                self._rest(period_s / LOOKS)

    def files(self) -> List[int]:
        """Return the descriptors that are ready when a service has something to listen to."""
        descriptors = [service.file() for service in self.services]
        return [file for file in descriptors if file is not None]

    def listen(self) -> None:
        """Take what the services have to say, within an epoch or between two."""
        for service in self.services:
            service.listen()

    def _watch(self, seconds: float) -> None:
        select.select(self.files(), [], [], seconds)

    def close(self) -> None:
        """Close all files and sources."""
        for folder in list(self._windows):
            self.drop(folder)
        for source in self._usable():
            source.close()

    def drop(self, folder: str) -> None:
        """Forget a window, if it was begun: nobody will read it."""
        if self._windows.pop(folder, None) is None:
            return
        for channel in self._channels:
            channel.end(folder)
        if not self._windows:
            self._channels, self._plan = [], []


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
