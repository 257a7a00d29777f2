"""Count what one source did during an epoch (board side: Python 3.6 grammar)."""

import math
from array import array
from typing import Any, Dict, List, Optional, Sequence

from epochwatt.board.telemetry.source import NAN

JUMP_S = 1.0  # a wall clock that moves by more against the monotonic clock has jumped


class Tally:
    """Counts the readings of one source and keeps what the quantiles need.

    Parameters
    ----------
    columns : the source's columns
    total : the one that holds its whole power; None: there is none

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
        self._read_s = 0.0
        self._longest_read_s = 0.0
        self._value = NAN  # equals nothing, itself included
        self._since_s = 0.0
        self._stuck_s = 0.0
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
        """Count a reading.

        Parameters
        ----------
        planned_s : the instant it stands for; None: it is a bound and stands for none
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
        if self._total is not None:
            self._add_total(t_s, values[self._total])

    def _add_total(self, t_s: float, value: float) -> None:
        if value < 0:
            self._n_negative += 1
        if value == self._value:
            if t_s - self._since_s > self._stuck_s:
                self._stuck_s = t_s - self._since_s
        else:
            self._value = value
            self._since_s = t_s

    def summary(self) -> Dict[str, Any]:
        """Return the counts; None where there is nothing to take a statistic of."""
        steps_s = [after - before for before, after in zip(self._t_s, self._t_s[1:])]
        deviation_s = sorted(self._deviation_s)
        mean_s = sum(steps_s) / len(steps_s) if steps_s else None
        variance = sum((step - (mean_s or 0.0)) ** 2 for step in steps_s)
        total_nan = 0 if self._total is None else self._nan_cells[self._total]
        return {
            "n_failed": self.n_failed,
            "error": self.error,
            "step_mean_s": mean_s,
            "step_sd_s": math.sqrt(variance / len(steps_s)) if steps_s else None,
            "step_p99_s": quantile(sorted(steps_s), 0.99),
            "step_max_s": max(steps_s) if steps_s else None,
            "deviation_p50_s": quantile(deviation_s, 0.5),
            "deviation_p99_s": quantile(deviation_s, 0.99),
            "deviation_max_s": deviation_s[-1] if deviation_s else None,
            "read_mean_s": self._read_s / len(self._t_s) if self._t_s else None,
            "read_max_s": self._longest_read_s if self._t_s else None,
            "n_nan": total_nan,
            "n_negative": self._n_negative,
            "stuck_s": self._stuck_s,
            "clock_jumps": self._n_jumps,
            "nan_cells": {name: n for name, n in zip(self._columns, self._nan_cells) if n},
        }


def quantile(ascending: List[float], share: float) -> Optional[float]:
    """Return the smallest value that at least `share` of the values do not exceed."""
    if not ascending:
        return None
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]
