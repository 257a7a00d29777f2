"""Read one source: its instants, and its rows and counts in each window (board side: Python 3.6).

Windows may lie within one another: a row is in the file of each that is open when it is taken.

Training is periodic, and sampling it at an exact period is biased however long it goes on: with
mini-batches of 350 ms and an exact 100 ms by about 5 % rms, after 10 s as after 600 s. With one
random instant per period the error falls with time, and no two instants can drift apart.
"""

import math
import random
from array import array
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

from epochwatt.board.records.samples import SampleWriter
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.source import NAN, READ_ERRORS, Service, Source, in_words

# The cap on rows per source while a window is open: all instants for 5.5 h at 10 Hz, then one in
# ten for 55 h, then none but the last.
FULL_ROWS, MAX_ROWS, THINNING = 200000, 400000, 10
UNASKED = 1000  # readings of power that are kept until `power` fetches them
HANG_S = 1.0  # nobody knows when a reading that took longer was taken: it counts as failed
JUMP_S = 1.0  # a wall clock that moves by more against the monotonic clock has jumped

Clock = Callable[[], float]
# monotonic clock before and after a reading, wall clock after it, instant (None: a bound), what the
# source took (text: why it failed)
Reading = Tuple[float, float, float, Optional[float], Any]


class Schedule:
    """The instants `start + (k + u) period`, u uniform in [0, 1) and drawn anew for each k.

    `period_s`: length of a stratum; each holds one instant
    `instant_s`: the next instant, on the monotonic clock
    `n_late`: instants that were skipped because they had passed
    """

    def __init__(self, period_s: float, seed: object, start_s: float) -> None:
        self.period_s = period_s
        self.n_late = 0
        self._random = random.Random(str(seed)).random
        self._start_s, self._k = start_s, 0  # of stratum 0
        self.instant_s = self._draw()

    def _draw(self) -> float:
        # from the start each time: a sum of periods would drift
        return self._start_s + (self._k + self._random()) * self.period_s

    def take(self, now_s: float) -> float:
        """Return the planned instant that a sample at `now_s` stands for, and advance past it.

        When several have passed by `now_s`, it stands for the latest: the others are skipped and
        counted in `n_late`, as samples in a bunch would be worth no more than one.
        """
        planned_s = self.instant_s
        self._advance()
        while self.instant_s <= now_s:
            planned_s = self.instant_s
            self.n_late += 1
            self._advance()
        return planned_s

    def _advance(self) -> None:
        self._k += 1
        self.instant_s = self._draw()

    def slow_down(self, factor: int) -> None:
        """Make the strata longer, from the beginning of the next instant's on."""
        self._start_s += self._k * self.period_s
        self.period_s *= factor
        self._k = 0
        self.instant_s = self._draw()


def together(
    instants: Sequence[float], power_instants: Sequence[float], start_s: float, period_s: float
) -> List[float]:
    """Return instants, s, each moved to the power instant in its stratum, to share a wake-up.

    Strata last `period_s` from `start_s`; both lists are ascending. They stay as random as before.
    An instant stays where its stratum has no power instant, or an earlier one has taken it.
    """
    free = {int((t_s - start_s) / period_s): t_s for t_s in power_instants}
    return [free.pop(int((t_s - start_s) / period_s), t_s) for t_s in instants]


class Tally:
    """Counts the readings of one source and keeps what the quantiles need.

    `total` is the column that holds the source's whole power; None: there is none.

    `n_failed`: readings that gave nothing at all
    `error`: the latest reason
    """

    def __init__(self, columns: Sequence[str], total: Optional[str]) -> None:
        self.n_failed = 0
        self.error: Optional[str] = None
        self._columns = tuple(columns)
        self._total = None if total is None else self._columns.index(total)
        self._nan_cells = [0] * len(self._columns)
        self._n_negative = 0
        self._t_s = array("d")
        self._deviation_s = array("d")
        self._read_s = self._longest_read_s = 0.0
        self._value = NAN  # equals nothing, itself included
        self._since_s = self._stuck_s = 0.0
        self._ahead_s: Optional[float] = None
        self._n_jumps = 0

    def add(
        self,
        t_s: float,
        planned_s: Optional[float],
        read_s: float,
        ahead_s: float,
        values: Sequence[float],
    ) -> None:
        """Count a reading: step, deviation, duration, clock jumps, NaN, negative and stuck values.

        t_s : when it was taken, s
        planned_s : the instant it stands for, s; None: it is the first or last row of a window
        read_s : how long it took, s
        ahead_s : wall clock minus monotonic clock, s; a change is a jump
        values : one per column
        """
        self._t_s.append(t_s)
        if planned_s is not None:
            self._deviation_s.append(abs(t_s - planned_s))
        self._read_s += read_s
        if read_s > self._longest_read_s:
            self._longest_read_s = read_s
        if self._ahead_s is not None and abs(ahead_s - self._ahead_s) > JUMP_S:
            self._n_jumps += 1
        self._ahead_s = ahead_s
        for n, value in enumerate(values):
            if value != value:
                self._nan_cells[n] += 1
        if self._total is None:
            return
        value = values[self._total]
        if value < 0:
            self._n_negative += 1
        if value != self._value:
            self._value, self._since_s = value, t_s
        elif t_s - self._since_s > self._stuck_s:
            self._stuck_s = t_s - self._since_s

    def summary(self) -> Document:
        """Return the counts; None where there is nothing to take a statistic of."""
        steps_s = [after - before for before, after in zip(self._t_s, self._t_s[1:])]
        n_steps, n_read = len(steps_s), len(self._t_s)
        mean_s = sum(steps_s) / n_steps if steps_s else None
        squares = sum((step - (mean_s or 0.0)) ** 2 for step in steps_s)
        steps_s.sort()
        deviation_s = sorted(self._deviation_s)
        return {
            "n_failed": self.n_failed,
            "error": self.error,
            "step_mean_s": mean_s,
            "step_sd_s": math.sqrt(squares / n_steps) if steps_s else None,
            "step_p99_s": quantile(steps_s, 0.99),
            "step_max_s": quantile(steps_s, 1.0),
            "deviation_p50_s": quantile(deviation_s, 0.5),
            "deviation_p99_s": quantile(deviation_s, 0.99),
            "deviation_max_s": quantile(deviation_s, 1.0),
            "read_mean_s": self._read_s / n_read if n_read else None,
            "read_max_s": self._longest_read_s if n_read else None,
            "n_nan": 0 if self._total is None else self._nan_cells[self._total],
            "n_negative": self._n_negative,
            "stuck_s": self._stuck_s,
            "clock_jumps": self._n_jumps,
            "nan_cells": {name: n for name, n in zip(self._columns, self._nan_cells) if n},
        }


def quantile(ascending: List[float], share: float) -> Optional[float]:
    """Return the smallest value that at least `share` of the values do not exceed; None: none."""
    if not ascending:
        return None
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


class Tape:
    """Rows of a source in one window: their file and their counts.

    `source`: where the readings come from
    `folder`: of the window
    `n_before`: instants that had passed when it was opened
    `n_late`: those of them that were skipped
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
    """A source that is read at instants of ours, and its file in an epoch's folder.

    A wake-up finds cold caches, so `sample` only reads and keeps; what can wait is done for many
    rows at once in `ahead` and `flush`, at a tenth of the cost. `clock` and `wall` are the
    monotonic and the wall clock, s.
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
        """Take the instants before `until_s` off the schedule and return them, ascending, s.

        Those that had passed at `now_s` are skipped. From `FULL_ROWS` on the schedule is slowed
        down; none is planned beyond `MAX_ROWS`.
        """
        schedule, instants = self.schedule, []
        while schedule.instant_s < until_s and self._n_planned < MAX_ROWS - 1:
            instants.append(schedule.take(now_s))
            self._n_planned += 1
            if self._n_planned == FULL_ROWS:
                self._thinned_s = schedule.instant_s
                schedule.slow_down(THINNING)
        return instants

    def sample(self, before_s: float, planned_s: Optional[float]) -> float:
        """Read the source once and keep what it gave for `flush`; return the moment after, s.

        `before_s`: the moment now; `planned_s`: the instant it stands for, None: it is a bound.
        """
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
        """Count readings and write them to windows; return (stamp, s; power, W) of each with power.

        A reading that took longer than `HANG_S` counts as failed. A negative total is counted, and
        its cell becomes NaN.
        """
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
            if self._total is not None:
                if values[self._total] < 0.0:
                    values[self._total] = NAN
                if not math.isnan(values[self._total]):
                    powers.append((t_s, values[self._total]))
            for tape in tapes:
                tape.n_rows += 1
                tape.writer.add(t_s, t_s + ahead_s, values)
        return powers

    def power(self) -> List[Tuple[float, float]]:
        """Flush, and return (stamp, s; power, W) of each reading since the previous call."""
        self.flush()
        readings = list(self._powers)
        self._powers.clear()
        return readings

    def _values(self, taken: Any) -> Tuple[List[float], Optional[str]]:
        """Return a reading's values and None, or NaN for every column and the reason."""
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
        """Return how many instants of the full rate the cap on rows has cost a window."""
        if self._thinned_s is None:
            return 0
        # since the cap took effect, at the full rate: until now, and until the window was opened
        n_instants = int((end_s - self._thinned_s) / self.source.period_s)
        n_instants_before = max(0, tape.n_before - FULL_ROWS) * THINNING
        n_taken = self._n_rows + self._n_late() - max(FULL_ROWS, tape.n_before)
        return max(0, n_instants - n_instants_before - n_taken)

    def _n_late(self) -> int:
        return self.schedule.n_late

    def statistics(self, tape: Tape, end_s: float) -> Document:
        """Return the source's entry in telemetry.json, of a window that ended at `end_s`."""
        source, n_late = self.source, self._n_late() - tape.n_late_before
        try:
            settings = source.settings()
        except READ_ERRORS as error:
            settings = {"error": in_words(error)}
        statistics = tape.tally.summary()
        statistics.update(
            columns=list(source.columns),
            scope=source.scope,
            total=source.total,
            period_s=source.period_s,
            settings=settings,
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
        """Keep the samples that have come for `flush`; count missing ones; return the moment after.

        Beyond `MAX_ROWS` they are only counted. Both parameters are `Channel`'s and not used.
        """
        self.source.listen()
        now_s = self._clock()
        unix_ahead_s = self._wall() - now_s
        for t_s, taken in self.source.arrivals.take():
            gap_s = 0.0 if self._latest is None else t_s - self._latest[0]
            n_missing = round(gap_s / self.source.period_s) - 1
            if n_missing > 0:
                self.miss(n_missing, f"no sample for {gap_s:.1f} s")
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
        """Count as failed the samples that should have come by `t_s`, at least one."""
        latest_s = t_s - self.source.period_s if self._latest is None else self._latest[0]
        n_missing = max(1, round((t_s - latest_s) / self.source.period_s))
        self.miss(n_missing, self.source.silence())

    def miss(self, n: int, why: str) -> None:
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
