"""Energy counters of Intel and AMD processors (board side: Python 3.6 grammar).

The counter is exact and the power is a mean: with `energy_cpu_package_j` a window's energy is a
difference of two rows. Reading needs root on most machines (since CVE-2020-8694).

Source: Linux Documentation/power/powercap/powercap.rst.
"""

import glob
import os
import time
from typing import Any, Callable, Dict, List, Tuple

from epochwatt.telemetry.handles import Handle, readable, text
from epochwatt.telemetry.source import NAN, Source

MIN_STEP_S = 0.01  # the counter moves once a millisecond: shorter means would be mostly noise


class RaplSource(Source):
    """Power of all processor packages together.

    Only packages are summed: their sub-zones (core, uncore, dram) are counted in them or beside
    them, and `psys` counts the packages again.

    Parameters
    ----------
    root : `/`, or the folder of a made-up system
    clock, sleep : seconds of the monotonic clock, and how to let some pass
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
        self._clock = clock
        self._sleep = sleep
        self._packages: List[Tuple[Handle, int]] = []
        self._unreadable: List[str] = []
        for zone in sorted(glob.glob(os.path.join(root, "sys/class/powercap/intel-rapl:*"))):
            if not text(os.path.join(zone, "name")).startswith("package"):
                continue
            handle = readable(os.path.join(zone, "energy_uj"), 64)
            wrap_uj = text(os.path.join(zone, "max_energy_range_uj"))
            if handle is None or not wrap_uj.isdigit():
                self._unreadable.append(os.path.basename(zone))
            else:
                self._packages.append((handle, int(wrap_uj)))
        self._raw_uj = [0] * len(self._packages)
        self._energy_uj = 0
        self._marks = [(0.0, 0)] * 2  # (t_s, energy_uj) that powers are taken from, older first

    def usable(self) -> bool:
        """Say whether every package can be read: a part of them would be no total."""
        return bool(self._packages) and not self._unreadable

    def start(self) -> None:
        """Count from zero; wait long enough for the first row to have a power."""
        self._raw_uj = [int(handle.read()) for handle, _ in self._packages]
        self._energy_uj = 0
        self._marks = [(self._clock(), 0)] * 2
        self._sleep(MIN_STEP_S)

    def read(self) -> List[float]:
        """Return the mean power since the row before, W, and the energy since the start, J."""
        t_s = self._clock()
        for n, (handle, wrap_uj) in enumerate(self._packages):
            now_uj = int(handle.read())
            step_uj = now_uj - self._raw_uj[n]
            self._raw_uj[n] = now_uj
            self._energy_uj += step_uj if step_uj >= 0 else step_uj + wrap_uj
        # Two rows may be closer than a mean needs: then it goes back to the row before that.
        older, newer = self._marks
        since_s, since_uj = newer if t_s - newer[0] >= MIN_STEP_S else older
        step_s = t_s - since_s
        power_w = (self._energy_uj - since_uj) / 1e6 / step_s if step_s > 0 else NAN
        if t_s - newer[0] >= MIN_STEP_S:
            self._marks = [newer, (t_s, self._energy_uj)]
        return [power_w, self._energy_uj / 1e6]

    def settings(self) -> Dict[str, Any]:
        """Return what the power is a mean of, and when the counters wrap."""
        return {
            "power": "mean since the row before, from the energy counter",
            "packages": len(self._packages),
            "max_energy_range_j": [wrap_uj / 1e6 for _, wrap_uj in self._packages],
        }

    def close(self) -> None:
        """Close all handles."""
        for handle, _ in self._packages:
            handle.close()
