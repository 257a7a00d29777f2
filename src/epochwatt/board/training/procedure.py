"""Set the numbers by which a mode of a sweep is measured (board side: Python 3.6 grammar).

They are part of a sweep's factors where they differ from these (`procedure`), and of each record.
Why they are what they are: docs/explanation/sweep-measuring.md.
"""

from typing import NamedTuple

from epochwatt.columns import Factors
from epochwatt.errors import ConfigError

Procedure = NamedTuple(
    "Procedure",
    [
        ("minibatches", int),  # clean ones, at least
        ("power_readings", int),  # within them, at least
        ("idle_s", float),  # at rest in the mode before training: the power that it starts from
        ("patience_s", float),  # of training, until power has followed
        ("warm_up_s", float),  # of training instead, where no sensor tells
        ("power_patience_s", float),  # after the first clean mini-batch, for those readings
        ("lagged_s", float),  # later than that after training began, a sensor lags
    ],
)
DEFAULTS = Procedure(
    minibatches=40,
    power_readings=10,
    idle_s=3.0,
    patience_s=20.0,
    warm_up_s=10.0,
    power_patience_s=30.0,
    lagged_s=3.0,
)


def procedure_of(factors: Factors) -> Procedure:
    """Return the numbers of a sweep: `minibatches` and `procedure` of its factors, else defaults.

    Raises ConfigError for a number that is none of these, or below zero.
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
