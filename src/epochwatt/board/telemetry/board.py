"""Read clocks, loads, fan and temperatures of a Jetson board (board side: Python 3.6 grammar).

Everything from files that stay open, once a second. Where only root may read (the memory's clock is
in debugfs), the value is NaN and the settings say so. A GPU without a file of its load is asked by
NVML (Thor's).

Sources: paths as in `device/board_files.py`; jetson_clocks as quoted in rbonghi/jetson_stats issue
323 (memory of the Nano); Linux Documentation/driver-api/thermal/sysfs-api.rst.
"""

import glob
import os
from typing import Dict, List, Optional, Tuple

from epochwatt.board.device import alarms, board_files
from epochwatt.board.device.board_files import text
from epochwatt.board.device.kinds import EMC_CLOCK_FILES
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import nvml
from epochwatt.board.telemetry.open_files import Handle, contents, number, readable
from epochwatt.board.telemetry.source import NAN, OFFLINE_C, Source, column_names, zone_name

MAX_ZONES = 16
_GPU_LOADS = ("device/load", "../../load", "../load")  # from its devfreq folder; 0 to 1000
_EMC_LOADS = (  # kHz of the memory's clock that were of use
    "sys/kernel/actmon_avg_activity/mc_all",
    "sys/kernel/debug/cactmon/mc_all",
)


class BoardSource(Source):
    """Clocks, loads, fan and temperatures of a board: everything but power.

    Columns: `gpu_mhz`, `gpu_util_pct`, `emc_mhz`, `emc_util_pct` (of the bandwidth at that clock),
    `fan_pct` (of its drive, not of its speed), `throttle_state` (the largest state of all cooling
    devices that make the board slower; 0: none does), `temp_<zone>_c`.

    `root` is `/`, or the folder of a fake board.
    """

    name = "board"
    period_s = 1.0

    def __init__(self, root: str) -> None:
        gpu = board_files.find_gpu(root)
        hwmon = sorted(glob.glob(os.path.join(glob.escape(root), "sys/class/hwmon/hwmon*/pwm1")))
        fans = [p for p in hwmon if text(os.path.dirname(p), "name") == "pwmfan"]
        paths: Dict[str, List[str]] = {  # column -> files of which the first that can be read is it
            "gpu_mhz": [os.path.join(gpu, "cur_freq")] if gpu else [],
            "gpu_util_pct": [os.path.join(gpu, name) for name in _GPU_LOADS] if gpu else [],
            "emc_mhz": [os.path.join(root, path) for path in EMC_CLOCK_FILES],
            "emc_util_pct": [os.path.join(root, path) for path in _EMC_LOADS],
            "fan_pct": [os.path.join(root, "sys/devices/pwm-fan/cur_pwm")] + fans,  # 0 to 255
        }
        self._single: Dict[str, Optional[Handle]] = {}
        for column, candidates in paths.items():
            handles = (readable(path, 64) for path in candidates)
            self._single[column] = next((handle for handle in handles if handle is not None), None)
        has_load = self._single["gpu_util_pct"] is not None
        self._gpu_load = nvml.open_load() if gpu and not has_load and root == "/" else None
        self._throttles = _throttles(root)
        self._zones = _zones(root)
        several: List[Optional[Handle]] = [h for _, h in self._throttles + self._zones]
        self._handles = list(self._single.values()) + several
        temps = column_names("temp", [name for name, _ in self._zones], "c")
        self.columns = tuple(self._single) + ("throttle_state",) + temps

    def take(self) -> List[bytes]:
        """Return what each file holds."""
        return contents(self._handles)

    def values(self, taken: List[bytes]) -> List[float]:
        """Return one value per column, NaN for what cannot be read."""
        gpu_hz, gpu_per_mille, emc_hz, emc_load_khz, fan, *others = map(number, taken)
        emc_khz = emc_hz / 1e3
        states = [state for state in others[: len(self._throttles)] if state == state]
        celsius = [millidegrees / 1e3 for millidegrees in others[len(self._throttles) :]]
        return [
            gpu_hz / 1e6,
            gpu_per_mille / 10.0 if self._gpu_load is None else self._gpu_load(),
            emc_khz / 1e3,
            100.0 * emc_load_khz / emc_khz if emc_khz > 0 else NAN,
            fan / 2.55,
            max(states) if states else NAN,
        ] + [value if value > OFFLINE_C else NAN for value in celsius]

    def settings(self) -> Document:
        """Return which files the values come from; None: there is none that may be read."""
        paths = {column: handle and handle.path for column, handle in self._single.items()}
        if self._gpu_load is not None:
            paths["gpu_util_pct"] = "NVML"
        return {
            "files": paths,
            "throttle_state": [kind for kind, _ in self._throttles],
            "thermal_zones": [handle.path for _, handle in self._zones],
        }

    def close(self) -> None:
        """Close all files."""
        for handle in self._handles:
            if handle is not None:
                handle.close()


def _throttles(root: str) -> List[Tuple[str, Handle]]:
    """Return type and open state of each cooling device that makes the board slower."""
    devices = []
    pattern = os.path.join(glob.escape(root), "sys/class/thermal/cooling_device*")
    for folder in sorted(glob.glob(pattern)):
        kind = text(folder, "type")
        if alarms.slows_down(kind):
            handle = readable(os.path.join(folder, "cur_state"), 64)
            if handle is not None:
                devices.append((kind, handle))
    return devices


def _zones(root: str) -> List[Tuple[str, Handle]]:
    """Return name and open file of each thermal zone; zones that are off now may come back."""
    zones = []
    for n in range(MAX_ZONES):
        folder = os.path.join(root, f"sys/class/thermal/thermal_zone{n}")
        name = zone_name(text(folder, "type"))
        try:
            if name:
                zones.append((name, Handle(os.path.join(folder, "temp"), 64)))
        except OSError:
            continue
    return zones
