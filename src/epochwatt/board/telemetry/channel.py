"""Read one source, and keep its rows and counts of each window (board side: Python 3.6 grammar).

Windows may lie within one another: a row is in the file of each that is open when it is taken.
"""

from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from epochwatt.board.records.samples import SampleWriter
from epochwatt.board.telemetry.schedule import Schedule
from epochwatt.board.telemetry.source import NAN, READ_ERRORS, Service, Source, in_words
from epochwatt.board.telemetry.source_statistics import Tally

# The cap on rows per source while a window is open: all instants for 5.5 h at 10 Hz, then one in
# ten for 55 h, then none but the last.
FULL_ROWS, MAX_ROWS, THINNING = 200000, 400000, 10
UNASKED = 1000  # readings of power that are kept for who asks for them
HANG_S = 1.0  # nobody knows when a reading that took longer was taken: it counts as failed

Clock = Callable[[], float]
# monotonic clock before and after a reading, wall clock after it, instant (None: a bound), what the
# source took (text: why it failed)
Reading = Tuple[float, float, float, Optional[float], Any]


class Tape:
    """Rows of a source in one window: their file and their counts.

    Parameters
    ----------
    source : where the readings come from
    folder : of the window
    n_before : instants that had passed when it was opened
    n_late : those of them that were skipped
    """

    def __init__(self, source: Source, folder: str, n_before: int, n_late: int) -> None:
        self.tally = Tally(source.columns, source.total)
        self.writer = SampleWriter(folder, source.name, source.columns)
        self.n_before, self.n_late_before = n_before, n_late
        self.n_rows = 0

    def fail(self, why: str, n: int = 1) -> None:
        """Count readings that gave nothing."""
        self.tally.n_failed += n
        self.tally.error = why


class Channel:
    """A source that is read at instants of ours.

    A wake-up finds cold caches, so `sample` only reads and keeps; what can wait is done for many
    rows at once in `ahead` and `flush`, at a tenth of the cost.

    Parameters
    ----------
    source : where the readings come from
    clock, wall : the monotonic and the wall clock, s
    """

    def __init__(self, source: Source, clock: Clock, wall: Clock) -> None:
        self.source = source
        self._clock, self._wall = clock, wall
        self._tapes: Dict[str, Tape] = {}  # by the folder of their window
        self._take = source.take
        self._fresh: List[Reading] = []
        self._total = None if source.total is None else source.columns.index(source.total)
        self._powers: Deque[Tuple[float, float]] = deque(maxlen=UNASKED)
        self._n_planned = 1  # the first bound
        self._n_rows = 0
        self._thinned_s: Optional[float] = None  # when the cap took effect
        self._start_error: Optional[str] = None
        self.schedule = Schedule(source.period_s, "", clock())  # until `begin`
        try:
            source.start()
        except READ_ERRORS as error:
            self._start_error = in_words(error)

    def open(self, folder: str) -> None:
        """Keep the rows from now on in a folder, too; raises OSError: its file cannot be made."""
        self.flush()
        n_late = self._n_late()
        tape = Tape(self.source, folder, self._n_rows + n_late, n_late)
        tape.tally.error = self._start_error
        self._tapes[folder] = tape

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
            taken = in_words(error)
        after_s = self._clock()
        self._fresh.append((before_s, after_s, self._wall(), planned_s, taken))
        return after_s

    def flush(self) -> None:
        """Count the rows since the last time and write them."""
        fresh, self._fresh = self._fresh, []
        self._n_rows += len(fresh)
        self._powers.extend(self._keep(fresh, list(self._tapes.values())))
        for tape in self._tapes.values():
            tape.writer.flush()

    def _keep(self, readings: List[Reading], tapes: List[Tape]) -> List[Tuple[float, float]]:
        """Add readings to windows; return stamp, s, and power, W, of those that have one."""
        powers = []
        for before_s, after_s, unix_s, planned_s, taken in readings:
            if after_s - before_s > HANG_S:
                taken = f"a reading took {after_s - before_s:.1f} s"
            values, error = self._values(taken)
            t_s = (before_s + after_s) / 2.0
            ahead_s = unix_s - after_s
            for tape in tapes:
                tape.tally.add(t_s, planned_s, after_s - before_s, ahead_s, values)
                if error is not None:
                    tape.fail(error)
            if self._total is not None and values[self._total] < 0.0:
                values[self._total] = NAN  # no reading, and counted; the rails stand as they were
            if self._total is not None and values[self._total] == values[self._total]:
                powers.append((t_s, values[self._total]))
            for tape in tapes:
                tape.n_rows += 1
                tape.writer.add(t_s, t_s + ahead_s, values)
        return powers

    def power(self) -> List[Tuple[float, float]]:
        """Return stamp, s, and power, W, of each reading since the last time this was asked."""
        self.flush()
        readings = list(self._powers)
        self._powers.clear()
        return readings

    def _values(self, taken: Any) -> Tuple[List[float], Optional[str]]:
        """Return a reading's values, and why there are none."""
        error = taken if isinstance(taken, str) else None
        values: List[float] = []
        try:
            values = self.source.values(taken) if error is None else []
        except READ_ERRORS as raised:
            error = in_words(raised)
        if error is None and len(values) != len(self.source.columns):
            error = f"ValueError: {len(values)} values"
        return (values, None) if error is None else ([NAN] * len(self.source.columns), error)

    def hangs(self, folder: str) -> None:
        """Count a reading that has not come back, in a window that was open when it began."""
        if folder in self._tapes:
            self._tapes[folder].fail("a reading hangs")

    def end(self, folder: str) -> Optional[Tape]:
        """Bring a window's rows to the disk and close its file; None: it has none."""
        self.flush()
        tape = self._tapes.pop(folder, None)
        if tape is not None:
            tape.writer.close()
        return tape

    def _n_dropped(self, tape: Tape, end_s: float) -> int:
        """Return how many instants of the full rate the cap has cost a window."""
        if self._thinned_s is None:
            return 0
        n_instants = int((end_s - self._thinned_s) / self.source.period_s)
        n_taken = self._n_rows + self._n_late() - max(FULL_ROWS, tape.n_before)
        return max(0, n_instants - max(0, tape.n_before - FULL_ROWS) * THINNING - n_taken)

    def _n_late(self) -> int:
        return self.schedule.n_late

    def statistics(self, tape: Tape, end_s: float) -> Dict[str, Any]:
        """Return what telemetry.json says of the source in a window that ended at `end_s`."""
        source, n_late = self.source, self._n_late() - tape.n_late_before
        statistics = tape.tally.summary()
        statistics.update(
            columns=list(source.columns),
            scope=source.scope,
            total=source.total,
            period_s=source.period_s,
            settings=_settings(source),
            n_samples=tape.n_rows,
            n_late=n_late,
            n_gaps=n_late + statistics["n_failed"],
            rows_dropped=self._n_dropped(tape, end_s) + tape.writer.n_lost,
            write_error=tape.writer.error,
        )
        return statistics


class ServiceChannel(Channel):
    """A service whose samples carry their own instants: none is planned, each is kept once.

    The first row is its last sample before the window, the last one its first sample after it.
    """

    def __init__(self, source: Service, clock: Clock, wall: Clock) -> None:
        super().__init__(source, clock, wall)
        self.source: Service = source
        self._latest: Optional[Reading] = None
        self._n_beyond = 0  # the cap

    def open(self, folder: str) -> None:
        """Keep the rows from the last one before now on; raises OSError."""
        super().open(folder)
        if self._latest is not None:  # other windows have it already
            self._keep([self._latest], [self._tapes[folder]])

    def begin(self, seed: str, start_s: float) -> None:
        """Plan nothing."""

    def ahead(self, now_s: float, until_s: float) -> List[float]:
        """Return nothing: the service chooses the instants."""
        return []

    def sample(self, before_s: float, planned_s: Optional[float]) -> float:
        """Keep the samples that have come; return the moment after that, s."""
        self.source.listen()
        now_s = self._clock()
        unix_ahead_s = self._wall() - now_s
        for t_s, taken in self.source.arrivals.take():
            gap_s = 0.0 if self._latest is None else t_s - self._latest[0]
            n_missing = round(gap_s / self.source.period_s) - 1
            if n_missing > 0:
                self._miss(n_missing, f"no sample for {gap_s:.1f} s")
            self._latest = (t_s, t_s, t_s + unix_ahead_s, None, taken)
            if self._n_rows + len(self._fresh) < MAX_ROWS:
                self._fresh.append(self._latest)
            else:
                self._n_beyond += 1
        return now_s

    def flush(self) -> None:
        """Count and write what has come since the last time."""
        self.sample(0.0, None)
        super().flush()

    def has_reached(self, t_s: float) -> bool:
        """Say whether a sample that was taken at `t_s` or later has come."""
        self.sample(0.0, None)
        return self._latest is not None and self._latest[0] >= t_s

    def give_up(self, t_s: float) -> None:
        """Count what should have come by `t_s`, and the sample after it."""
        latest_s = t_s - self.source.period_s if self._latest is None else self._latest[0]
        n_missing = max(1, round((t_s - latest_s) / self.source.period_s))
        self._miss(n_missing, self.source.silence())

    def _miss(self, n: int, why: str) -> None:
        """Count samples that did not come."""
        for tape in self._tapes.values():
            tape.fail(why, n)

    def _n_dropped(self, tape: Tape, end_s: float) -> int:
        return self._n_beyond


def channel_of(source: Source, clock: Clock, wall: Clock) -> Channel:
    """Return the channel of a source."""
    if isinstance(source, Service):
        return ServiceChannel(source, clock, wall)
    return Channel(source, clock, wall)


def _settings(source: Source) -> Dict[str, Any]:
    try:
        return source.settings()
    except READ_ERRORS as error:
        return {"error": in_words(error)}
