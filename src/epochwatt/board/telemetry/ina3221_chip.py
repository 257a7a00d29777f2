"""Find averaging, cycle and smallest step of INA3221 sensors (board side: Python 3.6 grammar).

The chip converts current and voltage of its channels one after the other, again and again: a cycle.
With an average of N the register moves by 1 / N of the difference at each cycle, a filter of first
order: a reading is (N - 1/2) cycles old on average, and as quiet as a plain mean over twice that
time. Two drivers show its settings differently, or not at all; what is not shown stays unknown.

Its offset is up to 80 uV, two steps, typically one, as it reads with no voltage at all. So what it
does with a part of a step, which no document says, is in there: a constant shift. The drivers add
little: the kernel's rounds to 1 mA and 1 mV, NVIDIA's cuts off at 1 mW.

Sources: TI datasheet SBOS576B, 6.5 (offset), 8.4.1 (averaging), 8.4.2.2, 8.6.2.1 (configuration),
8.6.2.2 (40 uV a step); Linux drivers/hwmon/ina3221.c and Documentation/hwmon/ina3221.rst;
N. Malwade's "use CVRF only for single-shot conversion" (linux-hwmon, 2021-06-04), since which
`update_interval` leaves N out; NVIDIA's drivers/staging/iio/meter/ina3221.c (L4T 32): its settings
are in the device tree.
"""

import glob
import os
import re
import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from epochwatt.board.telemetry.open_files import text
from epochwatt.board.telemetry.rails import is_connected
from epochwatt.board.telemetry.source import sensor_facts

# Where a chip's files are, below its address; names of a channel's files; its first number. The
# number of a hwmon or iio folder changes from boot to boot.
Layout = NamedTuple(
    "Layout",
    [
        ("folders", str),
        ("label", str),
        ("files", Tuple[str, ...]),  # of a reading: the power in mW, or mV and mA
        ("volt", str),  # mV
        ("shunt", str),  # micro-ohm
        ("first", int),
    ],
)
_IIO = "sys/bus/i2c/drivers/ina3221x/*-*/iio:device*"
_HWMON = "sys/bus/i2c/drivers/ina3221/*-*/hwmon/hwmon*"
_VOLT, _CURRENT, _SHUNT = "in_voltage{}_input", "in_current{}_input", "shunt_resistor_{}"
LAYOUTS = (
    Layout(_IIO, "rail_name_{}", ("in_power{}_input",), _VOLT, _SHUNT, 0),
    Layout(_IIO, "rail_name_{}", (_VOLT, _CURRENT), _VOLT, _SHUNT, 0),
    Layout(
        _HWMON, "in{}_label", ("in{}_input", "curr{}_input"), "in{}_input", "shunt{}_resistor", 1
    ),
)
CHANNELS = 3

Rail = NamedTuple("Rail", [("shunt_ohm", Optional[float]), ("volt", Optional[float])])
Timing = NamedTuple("Timing", [("averaging_s", Optional[float]), ("update_s", Optional[float])])
UNKNOWN = Timing(None, None)

_SHUNT_STEP_V = 40e-6
_CONVERSION_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
_AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
_ONE_CYCLE_SINCE = (5, 14)  # Linux
_LONGEST_CYCLE_S = CHANNELS * 2 * _CONVERSION_US[-1] / 1e6


def chips(root: str) -> Tuple[Layout, List[str]]:
    """Return how a board's files are named, and the folder of each chip."""
    for layout in LAYOUTS:
        folders = os.path.join(glob.escape(root), layout.folders)
        if glob.glob(os.path.join(folders, layout.files[0].format("*"))):
            return layout, sorted(glob.glob(folders))
    return LAYOUTS[0], []


def sensor(root: str, parts: Mapping[str, str], period_s: float) -> Dict[str, Any]:
    """Return what one value of a board's power sensors says, for the record.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    parts : the rails that make up the total: label -> column
    period_s : mean time between readings, s

    Returns
    -------
    `sensor_facts`: averaging is twice the mean age of a reading, an update is a cycle, a step is at
    the voltage that the rail has now. Of several chips the slowest counts. And `is_centred`: what
    it does with a part of a step is in its offset, a matter of calibration.
    """
    layout, folders = chips(root)
    timings: List[Timing] = []
    steps_w: Dict[str, Optional[float]] = {}
    for folder in folders:
        rails = _rails(layout, folder)
        ours = [label for label in rails if label in parts]
        if ours:
            timings.append(timing(layout, folder, len(rails), root))
        steps_w.update((parts[label], _step_w(rails[label])) for label in ours)
    update_s = _longest([entry.update_s for entry in timings])
    facts = sensor_facts(
        "held" if update_s is not None and update_s > period_s / 2 else "mean",
        _longest([entry.averaging_s for entry in timings]),
        update_s,
        {column: steps_w.get(column) for column in parts.values()},
    )
    return dict(facts, is_centred=True)


def timing(layout: Layout, folder: str, n_channels: int, root: str = "/") -> Timing:
    """Return averaging and cycle of a chip; `n_channels` are those that measure something."""
    if layout.folders == _HWMON:
        samples, shown_ms = _number(folder, "samples"), _number(folder, "update_interval")
        if not samples or shown_ms is None:
            return UNKNOWN
        is_new = _shows_one_cycle(text(os.path.join(root, "proc/sys/kernel/osrelease")))
        return _timing(samples, _cycle_s(samples, shown_ms, n_channels, is_new))
    return _from_device_tree(folder)


def _shows_one_cycle(kernel: str) -> bool:
    """Say whether the driver of a kernel shows one cycle, and not all of an average."""
    number = re.match(r"(\d+)\.(\d+)", kernel)
    return number is None or tuple(map(int, number.groups())) >= _ONE_CYCLE_SINCE


def _cycle_s(samples: float, shown_ms: float, n_channels: int, is_new: bool) -> float:
    """Return a cycle's length from what the driver shows, in whole milliseconds.

    Older drivers show all cycles of an average, newer ones one cycle. A vendor's kernel may have
    the newer driver, so what the chip can do says which. The kernel decides where both could be (as
    16 cycles of 0.84 ms and one of 12.7) or neither (bus and shunt converted at unlike speeds).
    """
    fits = {}
    for n_shown in (1.0, samples):
        alike_ms = [n_channels * 2 * microseconds / 1e3 for microseconds in _CONVERSION_US]
        nearest_ms = min(alike_ms, key=lambda cycle_ms: abs(cycle_ms * n_shown - shown_ms))
        if abs(nearest_ms * n_shown - shown_ms) <= 0.5:
            fits[n_shown] = nearest_ms
    n_shown = next(iter(fits)) if len(fits) == 1 else 1.0 if is_new else samples
    if n_shown == 1.0 and shown_ms / 1e3 > _LONGEST_CYCLE_S:
        n_shown = samples
    return fits.get(n_shown, shown_ms / n_shown) / 1e3


def _from_device_tree(folder: str) -> Timing:
    """Return the settings that the device tree gives NVIDIA's driver, which does not show them."""
    tree = os.path.join(os.path.dirname(folder), "of_node")
    mode = text(os.path.join(folder, "running_mode"))  # only root may read it
    forced = os.path.exists(os.path.join(tree, "ti,enable-forced-continuous"))
    continuous = mode == "1" if mode else forced
    if not continuous and not mode:
        return UNKNOWN  # it follows the CPU's clock
    kind = "continuous" if continuous else "trigger"
    config = _cell(os.path.join(tree, f"ti,{kind}-config"))
    if not config:
        return UNKNOWN
    n_channels = bin(config >> 12 & 7).count("1")
    conversion_us = _CONVERSION_US[config >> 6 & 7] + _CONVERSION_US[config >> 3 & 7]
    cycle_s = n_channels * conversion_us / 1e6
    samples = _AVERAGES[config >> 9 & 7]
    if not continuous:  # each reading has a conversion of its own; what the filter keeps is unknown
        return Timing(cycle_s if samples == 1 else None, None)
    return _timing(samples, cycle_s)


def _timing(samples: float, cycle_s: float) -> Timing:
    return Timing((2 * samples - 1) * cycle_s, cycle_s)


def _rails(layout: Layout, folder: str) -> Dict[str, Rail]:
    """Return shunt and voltage of each rail that a chip measures, by label."""
    in_tree = _shunts_in_tree(folder)
    rails = {}
    for n in range(layout.first, layout.first + CHANNELS):
        label = text(os.path.join(folder, layout.label.format(n)))
        if not is_connected(label):
            continue
        micro_ohm, millivolt = (
            _number(folder, name.format(n)) for name in (layout.shunt, layout.volt)
        )
        shunt_ohm = micro_ohm / 1e6 if micro_ohm else in_tree.get(label)
        rails[label] = Rail(shunt_ohm, millivolt / 1e3 if millivolt else None)
    return rails


def _shunts_in_tree(folder: str) -> Dict[str, float]:
    """Return the shunts that the device tree gives NVIDIA's driver, ohm, by label."""
    tree = os.path.join(glob.escape(os.path.dirname(folder)), "of_node")
    shunts_ohm = {}
    for path in glob.glob(os.path.join(tree, "*", "ti,rail-name")):
        milliohm = _cell(os.path.join(os.path.dirname(path), "ti,shunt-resistor-mohm"))
        if milliohm:
            shunts_ohm[text(path).rstrip("\0")] = milliohm / 1e3
    return shunts_ohm


def _step_w(rail: Rail) -> Optional[float]:
    if rail.shunt_ohm is None or rail.volt is None:
        return None
    return _SHUNT_STEP_V / rail.shunt_ohm * rail.volt


def _number(folder: str, name: str) -> Optional[float]:
    digits = text(os.path.join(folder, name))
    return float(digits) if digits.isdigit() else None


def _cell(path: str) -> Optional[int]:
    """Return a number of the device tree: four bytes, the highest first."""
    try:
        with open(path, "rb") as file:
            return int(struct.unpack(">I", file.read(4))[0])
    except (OSError, struct.error):
        return None


def _longest(seconds: List[Optional[float]]) -> Optional[float]:
    readings = [value for value in seconds if value is not None]
    return max(readings) if readings and len(readings) == len(seconds) else None
