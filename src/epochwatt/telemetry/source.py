"""What the sampler asks of a source of readings (board side: Python 3.6 grammar)."""

from typing import Any, Dict, List, Optional, Tuple

NAN = float("nan")

# What a reading may fail with: it counts as a gap, as does a wrong number of values. One library
# that answers oddly must not end the readings of the others.
READ_ERRORS = (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError)


class Source:
    """A sensor, or a group of sensors that are read together.

    Attributes
    ----------
    name : part of the file name of its samples: `[a-z0-9-]+`
    period_s : mean time between readings, s
    columns : names of the values of a reading, with their units at the end
    scope : power scope (`module`, `socket`, `gpu`, `cpu_package`); None: it measures no power
    total : column that holds the scope's whole power, W; None: there is none
    """

    name = ""
    period_s = 1.0
    columns: Tuple[str, ...] = ()
    scope: Optional[str] = None
    total: Optional[str] = None

    def start(self) -> None:
        """A window begins: what comes next is no difference to a reading before it."""

    def read(self) -> List[float]:
        """Return a new list: one value per column, NaN for none. `READ_ERRORS` count as a gap."""
        raise NotImplementedError

    def take(self) -> Any:
        """Do of a reading what cannot wait, for `values` to make its values of; fails as `read`.

        After a sleep the caches are cold, and whatever is done then costs several times as much.
        """
        return self.read()

    def values(self, taken: Any) -> List[float]:
        """Return the values of what `take` gave; it may fail as `read` may."""
        return list(taken)

    def settings(self) -> Dict[str, Any]:
        """Return the sensor's own settings for the record: units, averaging, update interval."""
        return {}

    def close(self) -> None:
        """Give back what is held open."""
