"""Read one source during one epoch: its instants, file and counts (board side: Python 3.6 grammar).

Training is periodic, and sampling it at an exact period is biased however long it goes on: with
mini-batches of 350 ms and an exact 100 ms by about 5 % rms, after 10 s as after 600 s. With one
random instant per period the error falls with time, and no two instants can drift apart.
"""

import math
import random
from array import array
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Sequence, Tuple

from epochwatt.board.records.samples import SampleWriter
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.source import NAN, READ_ERRORS, Service, Source, in_words

# The cap on rows per epoch and source: all instants for 5.5 h at 10 Hz, then one in ten for 55 h,
# then none but the last.
FULL_ROWS, MAX_ROWS, THINNING = 200000, 400000, 10
UNASKED = 1000  # readings of power that are kept for who asks for them
HANG_S = 1.0  # nobody knows when a reading that took longer was taken: it counts as failed
JUMP_S = 1.0  # a wall clock that moves by more against the monotonic clock has jumped

Clock = Callable[[], float]
# monotonic clock before and after a reading, wall clock after it, instant (None: a bound), what the
# source took (text: why it failed)
Reading = Tuple[float, float, float, Optional[float], Any]


class Schedule:
    """The instants `start + (k + u) period`, u uniform in [0, 1) and drawn anew for each k.

    Attributes
    ----------
    period_s : length of a stratum; each holds one instant
    instant_s : the next instant, on the monotonic clock
    n_late : instants that were skipped because they had passed
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
        """Return the instant that a sample at `now_s` (not before it) stands for; move on.

        When several have passed it stands for the latest: the others are skipped and counted, as
        samples in a bunch would be worth no more than one.
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
    instants: Sequence[float], others: Sequence[float], start_s: float, period_s: float
) -> List[float]:
    """Move each of the instants, s, to the one of the others that lies in its stratum.

    Both are ascending. It is as random as before. Where there is none, or an instant before has
    taken it, it stays.
    """
    free = {int((t_s - start_s) / period_s): t_s for t_s in others}
    return [free.pop(int((t_s - start_s) / period_s), t_s) for t_s in instants]


class Tally:
    """Counts the readings of one source and keeps what the quantiles need.

    `total` is the column that holds the source's whole power; None: there is none.

    Attributes
    ----------
    n_failed : readings that gave nothing at all
    error : the latest reason
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
        """Count a reading; `planned_s` is the instant it stands for, None: it is a bound."""
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
        variance = sum((step - (mean_s or 0.0)) ** 2 for step in steps_s)
        ascending_s, deviation_s = sorted(steps_s), sorted(self._deviation_s)
        return {
            "n_failed": self.n_failed,
            "error": self.error,
            "step_mean_s": mean_s,
            "step_sd_s": math.sqrt(variance / n_steps) if steps_s else None,
            "step_p99_s": quantile(ascending_s, 0.99),
            "step_max_s": quantile(ascending_s, 1.0),
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


class Channel:
    """A source that is read at instants of ours, and its file in an epoch's folder.

    A wake-up finds cold caches, so `sample` only reads and keeps; what can wait is done for many
    rows at once in `ahead` and `flush`, at a tenth of the cost. `clock` and `wall` are the
    monotonic and the wall clock, s. Raises OSError where the file cannot be made.
    """

    def __init__(self, source: Source, folder: str, clock: Clock, wall: Clock) -> None:
        self.source = source
        self._clock, self._wall = clock, wall
        self._tally = Tally(source.columns, source.total)
        self._writer = SampleWriter(folder, source.name, source.columns)
        self._take = source.take
        self._fresh: List[Reading] = []
        self._nothing = [NAN] * len(source.columns)
        self._total = None if source.total is None else source.columns.index(source.total)
        self._powers: Deque[Tuple[float, float]] = deque(maxlen=UNASKED)
        self._n_planned = 1  # the first bound
        self._n_rows = 0
        self._thinned_s: Optional[float] = None  # when the cap took effect
        try:
            source.start()
        except READ_ERRORS as error:
            self._tally.error = in_words(error)

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
        for before_s, after_s, unix_s, planned_s, taken in fresh:
            if after_s - before_s > HANG_S:
                taken = f"a reading took {after_s - before_s:.1f} s"
            values = self._values(taken)
            t_s = (before_s + after_s) / 2.0
            ahead_s = unix_s - after_s
            self._tally.add(t_s, planned_s, after_s - before_s, ahead_s, values)
            if self._total is not None and values[self._total] < 0.0:
                values[self._total] = NAN  # no reading, and counted; the rails stand as they were
            if self._total is not None and values[self._total] == values[self._total]:
                self._powers.append((t_s, values[self._total]))
            self._writer.add(t_s, t_s + ahead_s, values)
        self._writer.flush()

    def power(self) -> List[Tuple[float, float]]:
        """Return stamp, s, and power, W, of each reading since the last time this was asked."""
        self.flush()
        readings = list(self._powers)
        self._powers.clear()
        return readings

    def _values(self, taken: Any) -> List[float]:
        why = taken
        if not isinstance(taken, str):
            try:
                values = self.source.values(taken)
                if len(values) == len(self._nothing):
                    return values
                why = f"ValueError: {len(values)} values"
            except READ_ERRORS as error:
                why = in_words(error)
        self.miss(1, why)
        return list(self._nothing)

    def miss(self, n: int, why: str) -> None:
        """Count readings that did not come."""
        self._tally.n_failed += n
        self._tally.error = why

    def end(self) -> None:
        """Bring all rows to the disk and close the file."""
        self.flush()
        self._writer.close()

    def _counts(self, end_s: float) -> Tuple[int, int]:
        """Return how many instants were late, and how many of the full rate the cap has cost."""
        n_late, n_dropped = self.schedule.n_late, 0
        if self._thinned_s is not None:
            n_instants = int((end_s - self._thinned_s) / self.source.period_s)
            n_dropped = max(0, n_instants - (self._n_rows + n_late - FULL_ROWS))
        return n_late, n_dropped

    def statistics(self, end_s: float) -> Document:
        """Return what telemetry.json says of the source, whose last row was taken at `end_s`."""
        source, (n_late, n_dropped) = self.source, self._counts(end_s)
        try:
            settings = source.settings()
        except READ_ERRORS as error:
            settings = {"error": in_words(error)}
        statistics = self._tally.summary()
        statistics.update(
            columns=list(source.columns),
            scope=source.scope,
            total=source.total,
            period_s=source.period_s,
            settings=settings,
            n_samples=self._n_rows,
            n_late=n_late,
            n_gaps=n_late + statistics["n_failed"],
            rows_dropped=n_dropped + self._writer.n_lost,
            write_error=self._writer.error,
        )
        return statistics


class ServiceChannel(Channel):
    """A service whose samples carry their own instants: none is planned, each is kept once.

    The first row is its last sample before the window, the last one its first sample after it.
    """

    def __init__(self, source: Service, folder: str, clock: Clock, wall: Clock) -> None:
        super().__init__(source, folder, clock, wall)
        self.source: Service = source
        self._latest_s: Optional[float] = None
        self._n_beyond = 0  # the cap

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
            gap_s = 0.0 if self._latest_s is None else t_s - self._latest_s
            n_missing = round(gap_s / self.source.period_s) - 1
            if n_missing > 0:
                self.miss(n_missing, f"no sample for {gap_s:.1f} s")
            self._latest_s = t_s
            if self._n_rows + len(self._fresh) < MAX_ROWS:
                self._fresh.append((t_s, t_s, t_s + unix_ahead_s, None, taken))
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
        return self._latest_s is not None and self._latest_s >= t_s

    def give_up(self, t_s: float) -> None:
        """Count what should have come by `t_s`, and the sample after it."""
        latest_s = t_s - self.source.period_s if self._latest_s is None else self._latest_s
        n_missing = max(1, round((t_s - latest_s) / self.source.period_s))
        self.miss(n_missing, self.source.silence())

    def _counts(self, end_s: float) -> Tuple[int, int]:
        return 0, self._n_beyond  # what is missing counts as failed


def channel_of(source: Source, folder: str, clock: Clock, wall: Clock) -> Channel:
    """Return the channel of a source; raises OSError where its file cannot be made."""
    if isinstance(source, Service):
        return ServiceChannel(source, folder, clock, wall)
    return Channel(source, folder, clock, wall)
