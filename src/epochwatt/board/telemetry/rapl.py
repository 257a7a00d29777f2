"""Read energy counters of Intel and AMD processors (board side: Python 3.6 grammar).

The counter is exact and the power is a mean: with `energy_cpu_package_j` a window's energy is a
difference of two rows. Reading needs root on most machines (since CVE-2020-8694).

A counter that has fallen has wrapped or was set back (resume, a driver that was loaded anew). It
has wrapped if the energy that this means could have been advance in that time; if not, nobody knows
what was advance, and the window has no count from there on.

Source: Linux Documentation/power/powercap/powercap.rst.
"""

import glob
import os
import time
from typing import Callable, List, Optional

from epochwatt.board.device.board_files import text
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.open_files import Handle, readable
from epochwatt.board.telemetry.source import NAN, Source, sensor_facts

MIN_STEP_S = 0.01  # the counter moves once a millisecond: shorter means would be mostly noise
MAX_W = 2000.0  # more than any package takes, for however short a time
UPDATE_S = 0.001


class Package:
    """The counter of one package: its file, open, and where it wraps, uJ."""

    def __init__(self, handle: Handle, range_uj: int) -> None:
        self.handle = handle
        self.range_uj = range_uj
        self._uj, self._t_s = 0, 0.0

    def start(self, t_s: float) -> None:
        """Count from what it shows now."""
        self._uj, self._t_s = int(self.handle.read()), t_s

    def advance(self, now_uj: int, t_s: float) -> Optional[int]:
        """Return the energy since the previous reading, uJ; None: the counter was set back.

        The reading `now_uj` at `t_s`, s, is kept for the next call. A counter that has fallen has
        wrapped if at most `MAX_W` explains the energy.
        """
        step_uj = now_uj - self._uj
        if step_uj < 0:
            step_uj += self.range_uj
        most_uj = 1e6 * MAX_W * (t_s - self._t_s + MIN_STEP_S)
        self._uj, self._t_s = now_uj, t_s
        return step_uj if step_uj <= most_uj else None


class RaplSource(Source):
    """Power of all processor packages together.

    Only packages are summed: their sub-zones (core, uncore, dram) are counted in them or beside
    them, and `psys` counts the packages again.

    `root` is `/`, or the folder of a made-up system; `clock` and `sleep` are the monotonic clock,
    s, and how to let some pass.
    """

    name = "rapl"
    period_s = 0.1
    columns = ("power_cpu_package_w", "energy_cpu_package_j")
    scope = "cpu_package"
    total = "power_cpu_package_w"

    def __init__(
        self,
        root: str = "/",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._packages: List[Package] = []
        self._unreadable: List[str] = []
        for zone in sorted(glob.glob(os.path.join(root, "sys/class/powercap/intel-rapl:*"))):
            if not text(zone, "name").startswith("package"):
                continue
            handle = readable(os.path.join(zone, "energy_uj"), 64)
            wrap_uj = text(zone, "max_energy_range_uj")
            if handle is None or not wrap_uj.isdigit():
                self._unreadable.append(os.path.basename(zone))
            else:
                self._packages.append(Package(handle, int(wrap_uj)))
        self._n_restarts = self._energy_uj = 0
        self._marks = [(0.0, 0)] * 2  # (t_s, energy_uj) that powers are taken from, older first

    def usable(self) -> bool:
        """Say whether every package can be read: a part of them would be no total."""
        return bool(self._packages) and not self._unreadable

    def start(self) -> None:
        """Count from zero; wait long enough for the first row to have a power."""
        t_s = self._clock()
        for package in self._packages:
            package.start(t_s)
        self._energy_uj = self._n_restarts = 0
        self._marks = [(t_s, 0)] * 2
        self._sleep(MIN_STEP_S)

    def read(self) -> List[float]:
        """Return the mean power since the row before, W, and the energy since the start, J.

        Raises OSError where a counter was set back; from there on the energy is NaN.
        """
        t_s = self._clock()
        shown = [int(package.handle.read()) for package in self._packages]
        steps_uj = [package.advance(now_uj, t_s) for package, now_uj in zip(self._packages, shown)]
        usable = [step_uj for step_uj in steps_uj if step_uj is not None]
        self._energy_uj += sum(usable)
        if len(usable) < len(steps_uj):
            self._n_restarts += 1
            self._marks = [(t_s, self._energy_uj)] * 2
            raise OSError(f"an energy counter was set back: it shows {shown} uJ")
        # Two rows may be closer than a mean needs: then it goes back to the row before that.
        older, newer = self._marks
        since_s, since_uj = newer if t_s - newer[0] >= MIN_STEP_S else older
        step_s = t_s - since_s
        power_w = (self._energy_uj - since_uj) / 1e6 / step_s if step_s > 0 else NAN
        if t_s - newer[0] >= MIN_STEP_S:
            self._marks = [newer, (t_s, self._energy_uj)]
        return [power_w, NAN if self._n_restarts else self._energy_uj / 1e6]

    def settings(self) -> Document:
        """Return what the power is a mean of, and when the counters wrap."""
        facts = sensor_facts("mean", self.period_s, None, {self.columns[0]: None})
        return {
            "power": "mean since the row before, from the energy counter",
            "packages": len(self._packages),
            "max_energy_range_j": [package.range_uj / 1e6 for package in self._packages],
            "counter_restarts": self._n_restarts,
            "sensor": dict(facts, counter_update_s=UPDATE_S),
        }

    def close(self) -> None:
        """Close all handles."""
        for package in self._packages:
            package.handle.close()
