"""Watch the training in one mode until there is enough (board side: Python 3.6 grammar).

`ModeWatch` says after each mini-batch whether another one is wanted. Loop and timer are those of an
epoch, so that times of both mean the same.
"""

from bisect import bisect_left
from time import perf_counter
from typing import Any, Callable, List, Optional

from epochwatt.board.telemetry.client import Power
from epochwatt.board.telemetry.transition import Transition, find_transition
from epochwatt.board.training.procedure import Procedure

POLL_S = 0.2  # between two looks at the power while it has not followed


class ModeWatch:
    """Decides when power has followed the training, and when there is enough.

    The first mini-batch that begins after power has followed is dropped, those after it are clean.
    `power` gives the readings since the last time, `clock` is monotonic, s.

    `transition`: when power followed; None: it did not, or no sensor tells
    `n_power`: readings of power in the clean mini-batches
    `has_sensor`: there is one
    """

    def __init__(
        self,
        power: Callable[[], Power],
        procedure: Procedure,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._power, self._procedure, self._clock = power, procedure, clock
        self._t_s: List[float] = []
        self._power_w: List[float] = []
        self._ends_s: List[float] = []  # of mini-batches
        self._clean_s: Optional[float] = None  # from when on they may be clean
        self.transition: Optional[Transition] = None
        self.has_sensor = False
        self.n_power = 0

    def begin(self) -> None:
        """Read the power at rest and note the time: training begins now."""
        self._read_power()
        self._load_s = self._read_s = self._clock()

    def __call__(self, loss: Any = None) -> bool:
        """Note the end of a mini-batch and read due power; return whether another is wanted."""
        now_s = self._clock()
        self._ends_s.append(now_s)
        if self._clean_s is None:
            self._find_clean_start(now_s)
        return self._clean_s is None or not self._has_enough(now_s)

    def _find_clean_start(self, now_s: float) -> None:
        """Set `_clean_s` once power has followed the training, or no longer is waited for."""
        if now_s - self._read_s >= POLL_S:
            n_examined = len(self._t_s)
            self._read_s = now_s
            self._read_power()
            self.transition = find_transition(self._t_s, self._power_w, self._load_s, n_examined)
        limits = self._procedure
        longest_s = limits.patience_s if self.has_sensor else limits.warm_up_s
        if self.transition is not None:
            self._clean_s = self.transition.followed_s
        elif now_s - self._load_s >= longest_s:
            self._clean_s = now_s

    def _read_power(self) -> None:
        """Append the new readings of power; set `has_sensor`."""
        power = self._power()
        self.has_sensor = power.scope is not None
        self._t_s += power.t_s
        self._power_w += power.power_w

    def first(self) -> int:
        """Return the number of the first clean mini-batch; it may be still to come."""
        assert self._clean_s is not None
        # each begins when the one before has ended
        return bisect_left(self._ends_s, self._clean_s) + 2

    def mean_power_w(self) -> Optional[float]:
        """Return the mean power since the first clean mini-batch began, W; None: no reading.

        It is for the log alone: tables take the mean over time.
        """
        clean_s = self._ends_s[self.first() - 1]
        powers_w = [w for t_s, w in zip(self._t_s, self._power_w) if t_s >= clean_s]
        return sum(powers_w) / len(powers_w) if powers_w else None

    def _has_enough(self, now_s: float) -> bool:
        """Read due power, update `n_power`; return whether mini-batches and readings suffice."""
        first, limits = self.first(), self._procedure
        if len(self._ends_s) - first < limits.minibatches:
            return False
        if not self.has_sensor or self.n_power >= limits.power_readings:
            return True
        clean_s = self._ends_s[first - 1]
        if now_s - self._read_s >= POLL_S:
            self._read_s = now_s
            self._read_power()
            self.n_power = sum(t_s >= clean_s for t_s in self._t_s)
        return self.n_power >= limits.power_readings or now_s - clean_s >= limits.power_patience_s
