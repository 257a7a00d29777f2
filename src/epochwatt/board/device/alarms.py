"""Read throttling and over-current alarms of a board (board side: Python 3.6 grammar).

Source: the kernel's Documentation/ABI/testing/sysfs-class-thermal and hwmon/ina3221.rst; NVIDIA's
driver of `soctherm_oc`, which counts under-voltage and over-current events (oc1 to oc3, Orin).
"""

import glob
import os
import re
from typing import List, NamedTuple, Optional

from epochwatt.board.device.board_files import number, text


class Alarm(NamedTuple):
    """Events counted so far, and states that are set now."""

    events: int  # counted by the kernel since the start of the board
    active: int  # states and alarms that are set now


# Cooling devices that slow the board down. Others are above 0 on a healthy board: fans, warnings,
# and on the Nano those that follow the temperature from 15 °C on (`gpu_scaling`, `CORE-floor`).
_SLOWS_DOWN = re.compile(r"throttle|balanced|heavy|cpufreq|devfreq")


def slows_down(kind: str) -> bool:
    """Return whether a cooling device of that type makes the board slower."""
    return _SLOWS_DOWN.search(kind.lower()) is not None


def throttling(root: str) -> Optional[Alarm]:
    """Read events and states of the cooling devices that limit clocks; None: there are none.

    States are read, not temperatures: the first trip point of many boards only warns of a hot
    surface.
    """
    events, active = [], []
    for folder in _paths(root, "sys/class/thermal/cooling_device*"):
        state = number(folder, "cur_state")
        if state is None or not slows_down(text(folder, "type")):
            continue
        active.append(int(state > 0))
        events.append(number(folder, "stats/total_trans") or 0)
    return Alarm(sum(events), sum(active)) if active else None


def over_current(root: str) -> Optional[Alarm]:
    """Read the counters of `soctherm_oc` and the alarms of the INA3221; None: there are neither.

    Reading one alarm of a chip clears the others, so of all but the first only a condition that
    still holds is seen. Counters miss nothing.
    """
    events: List[int] = []
    active: List[int] = []
    for folder in _paths(root, "sys/class/hwmon/hwmon*"):
        name = text(folder, "name")
        if name == "soctherm_oc":
            events += _numbers(folder, "oc*_event_cnt")
        elif name == "ina3221":
            active += [int(n > 0) for n in _numbers(folder, "curr*_crit_alarm")]
            active += [int(n > 0) for n in _numbers(folder, "curr*_max_alarm")]
    return Alarm(sum(events), sum(active)) if events or active else None


def _paths(root: str, pattern: str) -> List[str]:
    return sorted(glob.glob(os.path.join(glob.escape(root), pattern)))


def _numbers(folder: str, pattern: str) -> List[int]:
    values = [number(*os.path.split(path)) for path in _paths(folder, pattern)]
    return [value for value in values if value is not None]
