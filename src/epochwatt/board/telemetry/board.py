"""Read clocks, loads, fan and temperatures of a Jetson board (board side: Python 3.6 grammar).

Everything from files that stay open, once a second. Where only root may read (the memory's clock is
in debugfs), the value is NaN and the settings say so.

Sources: paths as in `device/board_files.py`; jetson_clocks as quoted in rbonghi/jetson_stats issue
323 (memory of the Nano); Linux Documentation/driver-api/thermal/sysfs-api.rst.
"""

import glob
import os
from typing import Any, Dict, List, Optional, Tuple

from epochwatt.board.device import alarms, board_files
from epochwatt.board.device.kinds import EMC_CLOCK_FILES
from epochwatt.board.telemetry.open_files import Handle, contents, number, readable, text
from epochwatt.board.telemetry.source import NAN, OFFLINE_C, Source, column_names, zone_name

MAX_ZONES = 16
_HZ_PER_MHZ, _KHZ_PER_MHZ = 1e6, 1e3

_LOADS = (  # of the GPU, from its devfreq folder; 0 to 1000
    "device/load",
    "../../load",
    "../load",
)
_EMC_LOADS = (  # kHz of the memory's clock that were of use
    "sys/kernel/actmon_avg_activity/mc_all",
    "sys/kernel/debug/cactmon/mc_all",
)
_FANS = ("sys/devices/pwm-fan/cur_pwm", "sys/class/hwmon/hwmon*/pwm1")  # 0 to 255


class BoardSource(Source):
    """Clocks, loads, fan and temperatures of a board: everything but power.

    Columns: `gpu_mhz`, `gpu_util_pct`, `emc_mhz`, `emc_util_pct` (of the bandwidth at that clock),
    `fan_pct` (of its drive, not of its speed), `throttle_state` (the largest state of all cooling
    devices that make the board slower; 0: none does), `temp_<zone>_c`.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    """

    name = "board"
    period_s = 1.0

    def __init__(self, root: str) -> None:
        gpu = board_files.find_gpu(root)
        self._gpu_clock = _first([os.path.join(gpu, "cur_freq")] if gpu else [])
        self._gpu_load = _first([os.path.join(gpu, path) for path in _LOADS] if gpu else [])
        self._emc_clock = _first([os.path.join(root, path) for path in EMC_CLOCK_FILES])
        self._emc_load = _first([os.path.join(root, path) for path in _EMC_LOADS])
        self._fan = _first(_fans(root))
        self._throttles = _throttles(root)
        self._zones = _zones(root)
        single = [self._gpu_clock, self._gpu_load, self._emc_clock, self._emc_load, self._fan]
        several: List[Optional[Handle]] = [h for _, h in self._throttles + self._zones]
        self._handles = single + several
        self.columns = (
            "gpu_mhz",
            "gpu_util_pct",
            "emc_mhz",
            "emc_util_pct",
            "fan_pct",
            "throttle_state",
        ) + column_names("temp", [name for name, _ in self._zones], "c")

    def take(self) -> List[bytes]:
        """Return what each file holds."""
        return contents(self._handles)

    def values(self, taken: List[bytes]) -> List[float]:
        """Return one value per column, NaN for what cannot be read."""
        gpu_hz, gpu_load, emc_hz, emc_load_khz, fan, *others = map(number, taken)
        emc_khz = emc_hz / 1e3
        states = [state for state in others[: len(self._throttles)] if state == state]
        values = [
            gpu_hz / _HZ_PER_MHZ,
            gpu_load / 10.0,  # per mille
            emc_khz / _KHZ_PER_MHZ,
            100.0 * emc_load_khz / emc_khz if emc_khz > 0 else NAN,
            fan / 2.55,
            max(states) if states else NAN,
        ]
        for millidegrees in others[len(self._throttles) :]:
            celsius = millidegrees / 1e3
            values.append(celsius if celsius > OFFLINE_C else NAN)
        return values

    def settings(self) -> Dict[str, Any]:
        """Return which files the values come from; None: there is none that may be read."""
        return {
            "files": {
                "gpu_mhz": _path(self._gpu_clock),
                "gpu_util_pct": _path(self._gpu_load),
                "emc_mhz": _path(self._emc_clock),
                "emc_util_pct": _path(self._emc_load),
                "fan_pct": _path(self._fan),
            },
            "throttle_state": [kind for kind, _ in self._throttles],
            "thermal_zones": [handle.path for _, handle in self._zones],
        }

    def close(self) -> None:
        """Close all files."""
        for handle in self._handles:
            if handle is not None:
                handle.close()


def _first(paths: List[str]) -> Optional[Handle]:
    """Return the first file that can be read, open."""
    handles = (readable(path, 64) for path in paths)
    return next((handle for handle in handles if handle is not None), None)


def _path(handle: Optional[Handle]) -> Optional[str]:
    return None if handle is None else handle.path


def _fans(root: str) -> List[str]:
    """Return the files that may hold the fan's drive."""
    board_fan, hwmon = [os.path.join(glob.escape(root), pattern) for pattern in _FANS]
    named = [
        p for p in glob.glob(hwmon) if text(os.path.join(os.path.dirname(p), "name")) == "pwmfan"
    ]
    return glob.glob(board_fan) + sorted(named)


def _throttles(root: str) -> List[Tuple[str, Handle]]:
    """Return type and open state of each cooling device that makes the board slower."""
    devices = []
    pattern = os.path.join(glob.escape(root), "sys/class/thermal/cooling_device*")
    for folder in sorted(glob.glob(pattern)):
        kind = text(os.path.join(folder, "type"))
        handle = (
            readable(os.path.join(folder, "cur_state"), 64) if alarms.slows_down(kind) else None
        )
        if handle is not None:
            devices.append((kind, handle))
    return devices


def _zones(root: str) -> List[Tuple[str, Handle]]:
    """Return name and open file of each thermal zone; zones that are off now may come back."""
    zones = []
    for n in range(MAX_ZONES):
        folder = os.path.join(root, f"sys/class/thermal/thermal_zone{n}")
        name = zone_name(text(os.path.join(folder, "type")))
        path = os.path.join(folder, "temp")
        if not name or not os.path.exists(path):
            continue
        try:
            zones.append((name, Handle(path, 64)))
        except OSError:
            continue
    return zones
