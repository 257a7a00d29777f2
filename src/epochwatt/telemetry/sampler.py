"""The loop that samples all sources, each at its own instants (board side: Python 3.6 grammar)."""

import heapq
import os
import resource
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import epochwatt
from epochwatt.records import files
from epochwatt.records.samples import SampleWriter
from epochwatt.telemetry import process
from epochwatt.telemetry.schedule import Schedule
from epochwatt.telemetry.source import NAN, READ_ERRORS, Source
from epochwatt.telemetry.tally import Tally

SCHEMA_VERSION = 1  # of telemetry.json
STATISTICS = "telemetry.json"

# The cap on rows per epoch and source: all instants for 5.5 h at 10 Hz, then one in ten for 55 h,
# then none but the last.
FULL_ROWS, MAX_ROWS, THINNING = 200000, 400000, 10
FLUSH_S = 10.0  # rows wait no longer than that and one period for being written
IDLE_S = 3600.0  # to the next instant when there is none

Clock = Callable[[], float]
# monotonic clock before and after a reading, wall clock after it, instant (None: a bound), cells
Reading = Tuple[float, float, float, Optional[float], List[float]]


class Channel:
    """One source during one epoch: its instants, its file, its counts.

    A wake-up finds cold caches, so it only reads and keeps; what can wait is done for many rows at
    once in `flush`, at a tenth of the cost.

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
        self._fresh: List[Reading] = []
        self._nothing = [NAN] * len(source.columns)
        self._n_rows = 0
        self._n_dropped = 0
        try:
            source.start()
        except READ_ERRORS as error:
            self._tally.error = _told(error)

    def begin(self, seed: str) -> None:
        """Take the first row; plan from now on."""
        self.sample(None)
        self.schedule = Schedule(self.source.period_s, seed, self._clock())

    def due(self, now_s: float) -> float:
        """Take the row that is due, within the cap; return the next instant."""
        planned_s = self.schedule.take(now_s)
        if self._n_rows < FULL_ROWS:
            self.sample(planned_s)
            if self._n_rows == FULL_ROWS:
                self.schedule.slow_down(THINNING)
        elif self._n_rows < MAX_ROWS - 1:
            self._n_dropped += THINNING - 1
            self.sample(planned_s)
        else:
            self._n_dropped += THINNING
        return self.schedule.instant_s

    def sample(self, planned_s: Optional[float]) -> None:
        """Read the source once and keep what it gave."""
        clock = self._clock
        before_s = clock()
        try:
            values = self.source.read()
        except READ_ERRORS as error:
            values = self._failed(error)
        self._fresh.append((before_s, clock(), self._wall(), planned_s, values))
        self._n_rows += 1

    def _failed(self, error: Exception) -> List[float]:
        self._tally.n_failed += 1
        self._tally.error = _told(error)
        return self._nothing

    def flush(self) -> None:
        """Count the rows since the last time and write them."""
        fresh, self._fresh = self._fresh, []
        for before_s, after_s, unix_s, planned_s, values in fresh:
            if len(values) != len(self._nothing):
                values = self._failed(ValueError("{} values".format(len(values))))
            t_s = (before_s + after_s) / 2.0
            ahead_s = unix_s - after_s
            self._writer.add(t_s, t_s + ahead_s, values)
            self._tally.add(t_s, planned_s, after_s - before_s, ahead_s, values)
        self._writer.flush()

    def end(self) -> None:
        """Bring all rows to the disk and close the file."""
        self.flush()
        self._writer.close()

    def statistics(self) -> Dict[str, Any]:
        """Return what telemetry.json says of the source."""
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
            rows_dropped=self._n_dropped + self._writer.n_lost,
            write_error=self._writer.error,
        )
        return about


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
        self._heap: List[Tuple[float, int, Channel]] = []

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
        for n, channel in enumerate(self._channels):
            channel.begin("{}/{}/{}".format(self._seed, channel.source.name, epoch))
            self._heap.append((channel.schedule.instant_s, n, channel))
        heapq.heapify(self._heap)
        self._flush_at_s = self._clock() + FLUSH_S
        return {"t_mono_s": self._clock()}

    def step(self) -> float:
        """Take the row that is due, if one is; return the time to the next instant, s."""
        if not self._heap:
            return IDLE_S
        now_s = self._clock()
        instant_s, n, channel = self._heap[0]
        if now_s < instant_s:
            return instant_s - now_s
        heapq.heapreplace(self._heap, (channel.due(now_s), n, channel))
        if now_s >= self._flush_at_s:
            self._flush_at_s = now_s + FLUSH_S
            for each in self._channels:
                each.flush()
        return max(0.0, self._heap[0][0] - self._clock())

    def end(self) -> Dict[str, Any]:
        """Take the last row of every source, close the files, write and return the statistics."""
        if not self._channels:
            raise ValueError("nothing was begun")
        channels, self._channels, self._heap = self._channels, [], []
        for channel in channels:
            channel.sample(None)
        for channel in channels:
            channel.end()
        cpu_s, end_s = _cpu_s() - self._cpu_s, self._clock()
        sources = {channel.source.name: channel.statistics() for channel in channels}
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
        self._channels, self._heap = [], []


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
