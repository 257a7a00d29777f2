"""The loop that samples all sources (board side: Python 3.6 grammar).

Each power source has instants of its own. All that measures no power is read one after the other at
some of the instants of the fastest power source, after it: a wake-up costs more than a reading.
"""

import os
import resource
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import epochwatt
from epochwatt.records import files
from epochwatt.records.samples import SampleWriter
from epochwatt.telemetry import process
from epochwatt.telemetry.schedule import Schedule, together
from epochwatt.telemetry.source import NAN, READ_ERRORS, Source
from epochwatt.telemetry.tally import Tally

SCHEMA_VERSION = 1  # of telemetry.json
STATISTICS = "telemetry.json"

# The cap on rows per epoch and source: all instants for 5.5 h at 10 Hz, then one in ten for 55 h,
# then none but the last.
FULL_ROWS, MAX_ROWS, THINNING = 200000, 400000, 10
FLUSH_S = 10.0  # rows wait no longer than that and one period for being written; plans reach so far
IDLE_S = 3600.0  # to the next instant when there is none

Clock = Callable[[], float]
# monotonic clock before and after a reading, wall clock after it, instant (None: a bound), what the
# source took (text: why it failed)
Reading = Tuple[float, float, float, Optional[float], Any]


class Channel:
    """One source during one epoch: its instants, its file, its counts.

    A wake-up finds cold caches, so `sample` only reads and keeps; what can wait is done for many
    rows at once in `ahead` and `flush`, at a tenth of the cost.

    Parameters
    ----------
    source : where the readings come from
    folder : the epoch's folder
    clock, wall : the monotonic and the wall clock, s
    """

    def __init__(self, source: Source, folder: str, clock: Clock, wall: Clock) -> None:
        self.source = source
        self._clock, self._wall = clock, wall
        self._tally = Tally(source.columns, source.total)
        self._writer = SampleWriter(folder, source.name, source.columns)
        self._take = source.take
        self._fresh: List[Reading] = []
        self._nothing = [NAN] * len(source.columns)
        self._n_planned = 1  # the first bound
        self._n_rows = 0
        self._thinned_s: Optional[float] = None  # when the cap began to tell
        try:
            source.start()
        except READ_ERRORS as error:
            self._tally.error = _told(error)

    def begin(self, seed: str, start_s: float) -> None:
        """Plan from `start_s` on."""
        self.schedule = Schedule(self.source.period_s, seed, start_s)

    def ahead(self, now_s: float, until_s: float) -> List[float]:
        """Return the next instants, those before `until_s`, within the cap on rows."""
        schedule, instants = self.schedule, []
        while schedule.instant_s < until_s and self._n_planned < MAX_ROWS - 1:
            instants.append(schedule.take(now_s))
            self._n_planned += 1
            if self._n_planned == FULL_ROWS:
                self._thinned_s = schedule.instant_s
                schedule.slow_down(THINNING)
        return instants

    def sample(self, before_s: float, planned_s: Optional[float]) -> float:
        """Read the source once and keep what it gave; return the moment after that, s."""
        try:
            taken = self._take()
        except READ_ERRORS as error:
            taken = _told(error)
        after_s = self._clock()
        self._fresh.append((before_s, after_s, self._wall(), planned_s, taken))
        return after_s

    def flush(self) -> None:
        """Count the rows since the last time and write them."""
        fresh, self._fresh = self._fresh, []
        self._n_rows += len(fresh)
        for before_s, after_s, unix_s, planned_s, taken in fresh:
            values = self._values(taken)
            t_s = (before_s + after_s) / 2.0
            ahead_s = unix_s - after_s
            self._writer.add(t_s, t_s + ahead_s, values)
            self._tally.add(t_s, planned_s, after_s - before_s, ahead_s, values)
        self._writer.flush()

    def _values(self, taken: Any) -> List[float]:
        if isinstance(taken, str):
            return self._failed(taken)
        try:
            values = self.source.values(taken)
        except READ_ERRORS as error:
            return self._failed(_told(error))
        if len(values) != len(self._nothing):
            return self._failed("ValueError: {} values".format(len(values)))
        return values

    def _failed(self, why: str) -> List[float]:
        self._tally.n_failed += 1
        self._tally.error = why
        return self._nothing

    def end(self) -> None:
        """Bring all rows to the disk and close the file."""
        self.flush()
        self._writer.close()

    def _n_dropped(self, end_s: float) -> int:
        """Return how many instants of the full rate the cap has cost."""
        if self._thinned_s is None:
            return 0
        n_instants = int((end_s - self._thinned_s) / self.source.period_s)
        return max(0, n_instants - (self._n_rows + self.schedule.n_late - FULL_ROWS))

    def statistics(self, end_s: float) -> Dict[str, Any]:
        """Return what telemetry.json says of the source, whose last row was taken at `end_s`."""
        source, n_late = self.source, self.schedule.n_late
        about = self._tally.summary()
        about.update(
            columns=list(source.columns),
            scope=source.scope,
            total=source.total,
            period_s=source.period_s,
            settings=_settings(source),
            n_samples=self._n_rows,
            n_late=n_late,
            n_gaps=n_late + about["n_failed"],
            rows_dropped=self._n_dropped(end_s) + self._writer.n_lost,
            write_error=self._writer.error,
        )
        return about


Row = Tuple[float, Channel]  # the instant of a reading to come, and of what


class Recorder:
    """Samples all sources between `begin` and `end`, and does nothing else in between.

    Parameters
    ----------
    sources : what there is to read
    seed : of the instants; they differ between sources and between epochs
    clock, wall : the monotonic and the wall clock, s
    """

    def __init__(
        self,
        sources: List[Source],
        seed: int,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        self._sources = sources
        self._seed = seed
        self._clock, self._wall = clock, wall
        self._channels: List[Channel] = []
        self._plan: List[Row] = []  # the next row is the last of the list

    def begin(self, folder: str) -> Dict[str, Any]:
        """Open the folder's sample files and take a row of every source; raises OSError."""
        self._abandon()
        self._folder = folder
        self._cpu_s, self._start_s = _cpu_s(), self._clock()
        try:
            for source in self._sources:
                self._channels.append(Channel(source, folder, self._clock, self._wall))
        except OSError:
            self._abandon()
            raise
        epoch = os.path.basename(os.path.normpath(folder))
        for channel in self._channels:
            channel.sample(self._clock(), None)
        self._strata_s = self._until_s = self._clock()
        for channel in self._channels:
            name = channel.source.name if channel.source.scope else "counters"
            channel.begin("{}/{}/{}".format(self._seed, name, epoch), self._until_s)
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
            now_s = channel.sample(now_s, planned_s)
        return max(0.0, plan[-1][0] - now_s) if plan else self._look_ahead()

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
        """Return the next rows, the last of them first."""
        instants = {channel: channel.ahead(now_s, self._until_s) for channel in self._channels}
        power = [channel for channel in instants if channel.source.scope is not None]
        others = [channel for channel in instants if channel.source.scope is None]
        if power:
            fastest = min(power, key=lambda channel: channel.source.period_s)
            strata = self._strata_s, fastest.source.period_s
            for channel in others:
                instants[channel] = together(instants[channel], instants[fastest], *strata)
        rows = [(t_s, channel) for channel in power + others for t_s in instants[channel]]
        rows.sort(key=_instant)
        return rows[::-1]  # where instants are equal, power comes first

    def _latest(self, due: List[Row], now_s: float) -> List[Row]:
        """Return each channel's latest row of those due; count the others as late."""
        while self._plan and self._plan[-1][0] <= now_s:
            due.append(self._plan.pop())
        latest: Dict[Channel, float] = {}
        for planned_s, channel in due:
            if channel in latest:
                channel.schedule.n_late += 1
            latest[channel] = planned_s
        return [(planned_s, channel) for channel, planned_s in latest.items()]

    def end(self) -> Dict[str, Any]:
        """Take the last row of every source, close the files, write and return the statistics."""
        if not self._channels:
            raise ValueError("nothing was begun")
        channels, self._channels, self._plan = self._channels, [], []
        for channel in channels:
            channel.sample(self._clock(), None)
        for channel in channels:
            channel.end()
        cpu_s, end_s = _cpu_s() - self._cpu_s, self._clock()
        sources = {channel.source.name: channel.statistics(end_s) for channel in channels}
        statistics = {
            "schema_version": SCHEMA_VERSION,
            "epochwatt": epochwatt.__version__,
            "lost": False,
            "seed": self._seed,
            "scheduling": process.scheduling(),
            "t_begin_mono_s": self._start_s,
            "t_end_mono_s": end_s,
            "wall_s": end_s - self._start_s,
            "cpu_s": cpu_s,
            "clock_jumps": max([about["clock_jumps"] for about in sources.values()] or [0]),
            "sources": sources,
        }
        try:
            files.write_json(os.path.join(self._folder, STATISTICS), statistics)
        except OSError as error:
            statistics["write_error"] = _told(error)  # the trainer hears them all the same
        return statistics

    def close(self) -> None:
        """Close all files and sources."""
        self._abandon()
        for source in self._sources:
            source.close()

    def _abandon(self) -> None:
        """Forget an epoch that was begun and never ended."""
        for channel in self._channels:
            channel.end()
        self._channels, self._plan = [], []


def _instant(row: Row) -> float:
    return row[0]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _settings(source: Source) -> Dict[str, Any]:
    try:
        return source.settings()
    except READ_ERRORS as error:
        return {"error": _told(error)}


def _told(error: Exception) -> str:
    return "{}: {}".format(type(error).__name__, error)
