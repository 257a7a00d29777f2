"""A power signal with a known integral and every way to fail, read by the real sampler process.

For tests, benchmarks and fault injection; its settings say `synthetic`, so a record never passes it
off as measured. `Sampler.start(..., program=sampler_with(...))` starts a sampler that reads it too.
"""

import errno
import json
import math
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from epochwatt.board.telemetry.source import NAN, WRITTEN_W, Source, sensor_facts

# 350 ms as in a training with 17.2 W on average: 120 ms wait at 8 W, 230 ms compute at 22 W
TRAINING = ((0.12, 8.0), (0.23, 22.0))


def make_counter(folder: Path) -> Path:
    """Make the energy counter of a processor (RAPL) in the place of /sys/class; return its file.

    It has twelve digits, uJ, and whoever drives it keeps that many.
    """
    zone = folder / "powercap/intel-rapl/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("999999999999\n")
    (zone / "energy_uj").write_text("100000000000\n")
    (zone.parent / "subsystem").symlink_to("..")
    (zone.parents[1] / zone.name).symlink_to(zone.relative_to(zone.parents[1]))
    return zone / "energy_uj"


FAULTS = {
    "die_after": "readings after which each one raises an I/O error",
    "error_every": "each such reading raises an I/O error, the others are good",
    "stuck_after": "readings after which the value stays as it is",
    "nan_after": "readings after which there is no value",
    "negative_after": "readings after which the sign is wrong",
    "hang_at": "the reading that takes `hang_s` seconds",
    "hang_s": "how long that is",
    "wall_jump_after": "readings after which the wall clock is `wall_jump_s` off",
    "wall_jump_s": "how far that is, s",
}


class SyntheticSource(Source):
    """A periodic signal as a function of the monotonic clock, spread over some rails.

    Parameters
    ----------
    signal : (duration_s, watt) of each level of a period, in order
    phase_s : where in its period the signal is at time 0
    rails : columns: the total, and rails that add up to it
    faults : names of `FAULTS`, each with its number
    clock, sleep : seconds of the monotonic clock, and how to let some pass
    """

    def __init__(
        self,
        signal: Sequence[Sequence[float]] = TRAINING,
        phase_s: float = 0.0,
        rails: int = 1,
        name: str = "synthetic",
        period_s: float = 0.1,
        scope: str | None = "module",
        faults: dict[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name, self.period_s, self.scope = name, period_s, scope
        self.total = "power_total_w"
        self.columns = (self.total, *(f"power_rail{n}_w" for n in range(1, rails)))
        self._signal = tuple((float(d), float(w)) for d, w in signal)
        self._phase_s = phase_s
        self._share = 1.0 / max(1, rails - 1)
        self._clock, self._sleep = clock, sleep
        self._faults = dict(faults or {})
        unknown = sorted(set(self._faults) - set(FAULTS))
        if unknown:
            raise ValueError(
                "no such fault: {}; there are {}".format(", ".join(unknown), ", ".join(FAULTS))
            )
        self._watts = [watt for _, watt in self._signal]
        self._bounds_s = [0.0, *accumulate(duration_s for duration_s, _ in self._signal)]
        self._joules = [0.0, *accumulate(duration_s * watt for duration_s, watt in self._signal)]
        self._n_reads = 0
        self._stuck: list[float] | None = None

    def power_w(self, t_s: float) -> float:
        """Return the power at a moment of the monotonic clock."""
        place_s = (t_s + self._phase_s) % self._bounds_s[-1]
        return self._watts[bisect_right(self._bounds_s, place_s, 0, len(self._watts)) - 1]

    def energy_j(self, t0_s: float, t1_s: float) -> float:
        """Return the exact energy between two moments."""
        return self._energy_since_0_j(t1_s) - self._energy_since_0_j(t0_s)

    def _energy_since_0_j(self, t_s: float) -> float:
        n_periods, place_s = divmod(t_s + self._phase_s, self._bounds_s[-1])
        level = bisect_right(self._bounds_s, place_s, 0, len(self._watts)) - 1
        part_j = self._joules[level] + self._watts[level] * (place_s - self._bounds_s[level])
        return math.floor(n_periods) * self._joules[-1] + part_j

    def read(self) -> list[float]:
        """Return the power now, or what the faults make of it; raises OSError."""
        self._n_reads += 1
        power_w = self.power_w(self._clock())
        values = [power_w] + [power_w * self._share] * (len(self.columns) - 1)
        return self._spoilt(values) if self._faults else values

    def _spoilt(self, values: list[float]) -> list[float]:
        n, faults = self._n_reads, self._faults
        if n == faults.get("hang_at"):
            self._sleep(faults.get("hang_s", 0.0))
        every = faults.get("error_every")
        if self._past("die_after") or (every and n % every == 0):
            raise OSError(errno.EIO, "the sensor does not answer")
        if self._past("stuck_after"):
            if self._stuck is None:
                self._stuck = values
            return self._stuck
        if self._past("nan_after"):
            return [NAN] * len(values)
        return [-value for value in values] if self._past("negative_after") else values

    def _past(self, fault: str) -> bool:
        return fault in self._faults and self._n_reads > self._faults[fault]

    @property
    def spoils_the_clock(self) -> bool:
        """Say whether `unix_s` is to stand for the wall clock."""
        return "wall_jump_after" in self._faults

    def unix_s(self) -> float:
        """Return the wall clock as the faults have it."""
        jump_s = self._faults.get("wall_jump_s", 0.0) if self._past("wall_jump_after") else 0.0
        return time.time() + jump_s

    def settings(self) -> dict[str, Any]:
        """Return what is simulated."""
        return {
            "synthetic": True,
            "signal_s_w": [list(level) for level in self._signal],
            "phase_s": self._phase_s,
            "faults": self._faults,
            "sensor": sensor_facts("instant", 0.0, None, {self.columns[0]: WRITTEN_W}),
        }


def sampler_with(*sources: dict[str, Any]) -> list[str]:
    """Return the program of a sampler that also reads sources: arguments of `SyntheticSource`."""
    return [os.path.abspath(__file__), json.dumps(sources)]


if __name__ == "__main__":
    from epochwatt.board.telemetry.__main__ import main

    made = [SyntheticSource(**arguments) for arguments in json.loads(sys.argv[1])]
    clocks = [source.unix_s for source in made if source.spoils_the_clock]
    sys.exit(main(sys.argv[2:], made, *clocks[:1]))
