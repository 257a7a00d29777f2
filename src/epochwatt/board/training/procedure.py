"""Set the numbers by which a mode of a sweep is measured (board side: Python 3.6 grammar).

They are part of a sweep's factors where they differ from these (`procedure`), and of each record.
Why they are what they are: docs/explanation/sweep-measuring.md.
"""

from typing import NamedTuple

from epochwatt.columns import Factors
from epochwatt.errors import ConfigError


class Procedure(NamedTuple):
    """Lengths of a mode's measurement."""

    minibatches: int = 40  # clean ones, at least
    power_readings: int = 10  # within them, at least
    idle_s: float = 3.0  # at rest in the mode before training: the power that it starts from
    patience_s: float = 20.0  # of training, until power has followed
    warm_up_s: float = 10.0  # of training instead, where no sensor tells
    power_patience_s: float = 30.0  # after the first clean mini-batch, for those readings
    lagged_s: float = 3.0  # later than that after training began, a sensor lags


DEFAULTS = Procedure()


def procedure_of(factors: Factors) -> Procedure:
    """Return a sweep's procedure: its factors `minibatches` and `procedure` over the defaults.

    Raises ConfigError: an unknown name, fewer than 2 mini-batches, or a negative number.
    """
    numbers = dict(factors.get("procedure", {}))
    if "minibatches" in factors:
        numbers["minibatches"] = factors["minibatches"]
    for name, number in numbers.items():
        if name not in Procedure._fields:
            raise ConfigError(f"unknown number {name!r} of a sweep", allowed=Procedure._fields)
        if not number >= (2 if name == "minibatches" else 0):
            raise ConfigError(f"{name} of a sweep is {number}", allowed="2 mini-batches, or more")
    return DEFAULTS._replace(**numbers)
