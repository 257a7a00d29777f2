"""Check that a table of modes is in our units: what no device can be or do is in another one.

A column in a unit that is a thousand times larger or smaller cannot be told by its name, and every
method would learn from it. So a range spans less than a factor of a thousand where devices let it:
then such a unit puts every number outside of it. Times have no such range, since a mini-batch takes
from 10 us to 10 s; in ms they pass below 10 ms. What passes is shown by `epochwatt validate`.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from epochwatt.errors import DataError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.text import counted

Units = Mapping[str, float]  # name -> how many of it are one of ours

HERTZ: Units = {"kHz": 1e3, "Hz": 1e6, "GHz": 1e-3}
WATTS: Units = {"mW": 1e3, "kW": 1e-3, "uW": 1e6}
SECONDS: Units = {"ms": 1e3, "us": 1e6, "ns": 1e9}
JETSONS = ("jetson", "nano", "tx1", "tx2", "tk1", "xavier", "orin", "thor")  # in a device's name
MOST_JETSON_W, LEAST_RAIL_W = 200.0, 0.1  # AGX Thor takes up to 130 W, a TX2's GPU from 0.2 W on


class Range(NamedTuple):
    """Range that a number can be in."""

    least: float  # in `unit`
    most: float
    unit: str
    why: str  # what the bounds leave room for
    others: Units = MappingProxyType({})  # units that such a column may be in by mistake

    def holds(self, value: float) -> bool:
        """Return whether a number is in it."""
        return self.least <= value <= self.most


RANGES = {
    "cores": Range(1, 1024, "", "one core to a server's threads"),
    "cpu_mhz": Range(25, 10_000, "MHz", "102 MHz of a Nano to 6 GHz of a desktop", HERTZ),
    "gpu_mhz": Range(25, 5_000, "MHz", "77 MHz of a Nano to 3 GHz of a desktop's card", HERTZ),
    "emc_mhz": Range(25, 20_000, "MHz", "41 MHz of a TX2 to 16 GHz of GDDR7", HERTZ),
    "gpu_share": Range(0.002, 1, "", "one of 200 parts to all", {"%": 100}),
    "power_limit_w": Range(2, 2_000, "W", "5 W of a Nano to 1200 W of a server's card", WATTS),
    "time_s": Range(1e-7, 1e7, "s", "a kernel to four months", SECONDS),
}
POWERS = {  # by scope
    "socket": Range(1, 12_000, "W", "a board at rest to a server of eight cards", WATTS),
    "board": Range(0.5, 500, "W", "a board at rest to a large one", WATTS),
    "module": Range(0.5, 500, "W", "1 W of a TX1 to 130 W of an AGX Thor", WATTS),
    "gpu": Range(1, 2_000, "W", "2 W of a laptop's card to 1200 W of a server's", WATTS),
    "cpu_package": Range(0.5, 2_000, "W", "a laptop at rest to two servers' sockets", WATTS),
}
MINIBATCH = Range(1e-5, 10, "s", "a median of 10 us to 10 s", SECONDS)
OF_LIMIT = (0.02, 4.0)  # median power over the limit that is kept
MOST_SD = 50.0  # median standard deviation over the median time


def implausible(lines: Sequence[tuple[str, SweepRow]], path: str) -> Iterator[DataError]:
    """Yield an error for each column with numbers that no device reaches: a wrong unit.

    `lines`: file and line of each row, and the row; `path`: of the file, for messages
    """
    for name in (*RANGES, "power_w"):
        cells = [(where, getattr(row, name), _range(name, row)) for where, row in lines]
        bad = [
            (where, value, allowed)
            for where, value, allowed in cells
            if value is not None and not allowed.holds(value)
        ]
        if bad:
            where, _, allowed = bad[0]
            values = [value for _, value, _ in bad]
            ends = dict.fromkeys(f"{end:.10g}" for end in (min(values), max(values)))
            more = f" and {counted(len(bad) - 1, 'more lines')}" if len(bad) > 1 else ""
            span = f"{allowed.least:g} to {allowed.most:g} {allowed.unit}".strip()
            yield DataError(
                f"no device has such a {name}",
                where=f"{where}{more}, column {name}",
                found=f"{' to '.join(ends)} {allowed.unit}".strip(),
                allowed=f"{span}: {allowed.why}",
                do=_advice(name, values, allowed),
            )
    rows = [row for _, row in lines]
    times_s = [row.time_s for row in rows if row.work == "mini-batch"]
    if times_s and not MINIBATCH.holds(median(times_s)):
        advice = _advice("time_s", [median(times_s)], MINIBATCH)
        yield DataError(
            "time_s is no time of a mini-batch",
            where=f"{path}, column time_s",
            found=f"a median of {median(times_s):g} s",
            allowed=f"{MINIBATCH.least:g} to {MINIBATCH.most:g} s",
            do=f"{advice}; or name in a column `work` what takes so long, such as epoch",
        )
    limited = [row.power_w / row.power_limit_w for row in rows if row.power_w and row.power_limit_w]
    if limited and not OF_LIMIT[0] <= median(limited) <= OF_LIMIT[1]:
        yield DataError(
            "power_w and power_limit_w cannot be in the same unit",
            where=f"{path}, columns power_w and power_limit_w",
            found=f"a median power of {median(limited):.3g} times the limit",
            allowed=f"{OF_LIMIT[0]:g} to {OF_LIMIT[1]:g}",
            do="give both in W",
        )
    spreads = [row.time_sd_s / row.time_s for row in rows if row.time_sd_s]
    if spreads and median(spreads) > MOST_SD:
        yield DataError(
            "time_s and time_sd_s cannot be in the same unit",
            where=f"{path}, columns time_s and time_sd_s",
            found=f"a median standard deviation of {median(spreads):.3g} times the time",
            allowed=f"up to {MOST_SD:g}",
            do="give both in s",
        )


def _range(name: str, row: SweepRow) -> Range:
    """Return the range of a column in a row; that of power depends on its scope and device."""
    if name != "power_w":
        return RANGES[name]
    usual = POWERS.get(row.power_scope, POWERS["gpu"])
    if not any(kind in row.device.lower() for kind in JETSONS):
        return usual
    least = LEAST_RAIL_W if row.power_scope == "gpu" else usual.least
    return usual._replace(least=least, most=MOST_JETSON_W, why="what Jetson boards take")


def _advice(name: str, values: Sequence[float], allowed: Range) -> str:
    """Return advice on a unit: the one that would make all numbers plausible, if there is one."""
    for unit, factor in allowed.others.items():
        if all(allowed.holds(value / factor) for value in values):
            change = f"divide it by {factor:.0f}"
            if factor < 1:
                change = f"multiply it by {1 / factor:.0f}"
            return f"{name} looks like {unit}: {change}"
    return f"give {name} in {allowed.unit}" if allowed.unit else f"mend {name}"
