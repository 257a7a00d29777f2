"""Energy of a work with what draws power besides: the rest of the board, idling until a deadline.

A sensor may see the module alone, or the GPU. What it does not see draws power for as long as the
work takes, so a slow mode costs more than it shows. With a deadline until which the board stays on,
that is the same for all modes, and what counts is that the board idles from the end of the work on.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

PACED = 0.95  # of a deadline, from which on a mode just meets it
Value = TypeVar("Value", float, NDArray[np.float64])


class OtherPower(NamedTuple):
    """Power that counts besides that of the mode while it works, W."""

    rest_w: float = 0.0  # of what the sensor does not see
    idle_w: float = 0.0  # of what it sees, from the end of the work to the deadline; 0: it is off
    deadline_s: float | None = None

    @property
    def per_s_w(self) -> float:
        """Power that each second of work costs besides; below zero where it would idle instead."""
        return -self.idle_w if self.idle_w else self.rest_w

    @property
    def fixed_j(self) -> float:
        """Energy that is the same for all modes: until the deadline, where the board stays on."""
        is_on = self.idle_w and self.deadline_s is not None
        return self.deadline_s * (self.idle_w + self.rest_w) if is_on else 0.0  # type: ignore[operator]

    def energy_j(self, time_s: Value, power_w: Value) -> Value:
        """Return the energy of what takes `time_s` and draws `power_w`, with all that counts."""
        return time_s * (power_w + self.per_s_w) + self.fixed_j


NOTHING_ELSE = OtherPower()
