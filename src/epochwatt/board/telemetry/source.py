"""Define a source of readings, as the sampler uses it (board side: Python 3.6 grammar)."""

import re
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from epochwatt.board.records.shapes import Document

OFFLINE_C = -200.0  # a thermal zone whose unit is switched off reports -256 degrees


def column_names(stem: str, names: Sequence[str], unit: str) -> Tuple[str, ...]:
    """Return `stem_name_unit` in small letters for each name; equal ones are numbered from 2 on.

    >>> column_names("rail", ["VDD_IN", "vdd-in"], "w")
    ('rail_vdd_in_w', 'rail_vdd_in_2_w')
    """
    columns: List[str] = []
    for name in names:
        short = "{}_{}".format(stem, re.sub("[^a-z0-9]+", "_", name.strip().lower()))
        column, n = f"{short}_{unit}", 2
        while column in columns:
            column, n = f"{short}_{n}_{unit}", n + 1
        columns.append(column)
    return tuple(columns)


def zone_name(kind: str) -> str:
    """Return the part of a thermal zone: `CPU-therm`, `cpu-thermal` and `CPU` are all `cpu`.

    Empty for the power chip's: its constant (100 or 50 degrees) is not a temperature.
    """
    name = re.sub(r"[-_](therm|thermal|tegra)$", "", kind.strip().lower())
    return "" if name.startswith("pmic") else name


NAN = float("nan")
WRITTEN_W = 1e-4  # step of a power below 100 W in a file of samples, which has six digits

# A reading that fails with one of these counts as a gap, as does a wrong number of values. One
# library that answers oddly must not end the readings of the others.
READ_ERRORS = (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError)


def in_words(error: Exception) -> str:
    """Return kind and text of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")


class Source:
    """A sensor, or a group of sensors that are read together.

    It defines `read`, or else `take` and `values`.

    `name`: part of the file name of its samples: `[a-z0-9-]+`
    `period_s`: mean time between readings, s
    `columns`: names of the values of a reading, with their units at the end
    `scope`: power scope (`columns.POWER_SCOPES`); None: it measures no power
    `total`: column that holds the scope's whole power, W; None: there is none
    """

    name = ""
    period_s = 1.0
    columns: Tuple[str, ...] = ()
    scope: Optional[str] = None
    total: Optional[str] = None

    def start(self) -> None:
        """Begin a window: its first reading is not compared with the one before."""

    def read(self) -> List[float]:
        """Return a new list: one value per column, NaN for none. `READ_ERRORS` count as a gap."""
        return self.values(self.take())

    def take(self) -> Any:
        """Read what the sensor shows now, in any form that `values` can turn into numbers later.

        The sampler wakes for it at each instant. After a sleep the caches are cold, and whatever is
        done then costs several times as much; so numbers are made of many readings at once. Raises
        `READ_ERRORS`. As it stands here, for sources that define `read`, it makes them at once.
        """
        return self.read()

    def values(self, taken: Any) -> List[float]:
        """Return the values of what `take` returned; it fails as `read`."""
        return list(taken)

    def settings(self) -> Document:
        """Return the sensor's own settings for the record.

        A power source's have `sensor`: what one of its values says (`sensor_facts`).
        """
        return {}

    def close(self) -> None:
        """Give back what is held open."""


class Service(Source):
    """A program that samples by itself: each of its samples is kept once, with its own instant.

    To read its newest sample at instants of ours would keep some twice and lose others, and none
    at the instant at which it was taken.

    `period_s`: the service's own interval, s
    `arrivals`: its samples; those before `start` are forgotten, except the newest
    """

    def __init__(self) -> None:
        self.arrivals = Arrivals()

    def listen(self) -> None:
        """Take what has come into `arrivals`, without waiting; never raises."""

    def file(self) -> Optional[int]:
        """Return the descriptor that is ready when `listen` has work; None: nothing to watch."""
        return None

    def silence(self) -> str:
        """Return why no sample has come."""
        return "no sample"


Sample = Tuple[float, Any]  # when it was taken, s; what `values` takes, or text: why there is none


class Arrivals:
    """A service's samples until the sampler takes them; another thread may add some.

    `newest`: the latest sample; None: there is none
    """

    _MAX = 1000  # nobody leaves more than some tens waiting

    def __init__(self) -> None:
        self.newest: Optional[Sample] = None
        self._waiting: Deque[Sample] = deque(maxlen=self._MAX)

    def add(self, t_s: float, taken: Any) -> None:
        """Add a sample that was taken at `t_s`; none may be older than the one before."""
        if self.newest is not None:
            t_s = max(t_s, self.newest[0])
        self.newest = (t_s, taken)
        self._waiting.append(self.newest)

    def forget(self) -> None:
        """Forget all samples."""
        self.newest = None
        self._waiting.clear()

    def restart(self, oldest_s: float) -> None:
        """Forget all but the newest sample, and that one too where it is from before `oldest_s`."""
        newest, waiting = self.newest, self._waiting  # more may come while this runs
        while len(waiting) > 1:
            waiting.popleft()
        if not waiting and newest is not None:
            waiting.appendleft(newest)
        if waiting and waiting[0][0] < oldest_s:
            waiting.popleft()

    def take(self) -> List[Sample]:
        """Return the samples that have come since the last time, in order."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


def sensor_facts(
    reads: str,
    averaging_s: Optional[float] = None,
    update_s: Optional[float] = None,
    step_w: Optional[Dict[str, Optional[float]]] = None,
) -> Document:
    """Return what one value of a power sensor says, as the record has it.

    `reads`: "instant": the power at its stamp; "mean": over the time before it; "held": the sensor
    renews its value so seldom that a reading may repeat the one before
    `averaging_s`: the length of the mean, s; None: not known
    `update_s`: time between two new values, s; None: each reading is new, or not known
    `step_w`: smallest step of each column that the total is made of, W; None: not known
    """
    facts = {"reads": reads, "averaging_s": averaging_s, "update_s": update_s}  # type: Document
    return dict(facts, step_w=step_w or {})
