"""Read the module's power sensors by the kernel's files (board side: Python 3.6 grammar).

An INA3221 measures voltage and current of three rails; a board has one or two. JetPack 4 has a
driver of NVIDIA's own with a file for the power, JetPack 5 and later the kernel's, without one:
power is voltage times current. An unconnected channel has no label there, and its current no data.

An INA238 measures one rail and multiplies by itself: AGX Thor's carrier board has one at its input.
Its driver sets it to plain means of 16 conversions of shunt, voltage and temperature, and shows
neither that nor the shunt.

The chip converts current and voltage of its channels one after the other, again and again: a cycle.
With an average of N the register moves by 1 / N of the difference at each cycle, a filter of first
order: a reading is (N - 1/2) cycles old on average, and as quiet as a plain mean over twice that
time. Two drivers show its settings differently, or not at all; what is not shown stays unknown.

Its offset is up to 80 uV, two steps, typically one, as it reads with no voltage at all. So what it
does with a part of a step, which no document says, is in there: a constant shift. The drivers add
little: the kernel's rounds to 1 mA and 1 mV, NVIDIA's cuts off at 1 mW.

Sources: TI datasheet SBOS576B, 6.5 (offset), 8.4.1 (averaging), 8.4.2.2, 8.6.2.1 (configuration),
8.6.2.2 (40 uV a step); Linux drivers/hwmon/ina3221.c and Documentation/hwmon/ina3221.rst, and
drivers/hwmon/ina238.c of 6.8 (INA238_ADC_CONFIG_DEFAULT) and its ina238.rst (power in uW);
N. Malwade's "use CVRF only for single-shot conversion" (linux-hwmon, 2021-06-04), since which
`update_interval` leaves N out; NVIDIA's drivers/staging/iio/meter/ina3221.c (L4T 32): its settings
are in the device tree; GearDVFS@3c50990 configs (paths of JetPack 4); alumet-dev/alumet issue 212
(all files of an AGX Orin).
"""

import glob
import os
import re
import struct
from itertools import islice
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from epochwatt.board.device.board_files import text
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.rails import ModulePower, is_connected
from epochwatt.board.telemetry.source import NAN, Source, sensor_facts

PERIOD_S = 0.1
_READ_BYTES = 32
_ADDRESS = 5  # place of the chip's address in the path of its folder


class Layout(NamedTuple):
    """Names of a chip's files.

    The number of a hwmon or iio folder changes from boot to boot.
    """

    folders: str  # pattern of the chips' folders
    labels: Tuple[str, ...]  # files of which the first that is there has a channel's label
    files: Tuple[str, ...]  # of a reading: the power, or mV and mA, whose product it is
    per_w: float  # of that in a watt
    volt: str  # mV
    shunt: str  # micro-ohm
    numbers: Tuple[int, ...]  # of its channels
    unlabelled: str = ""  # label of a channel without one


_IIO = "sys/bus/i2c/drivers/ina3221x/*-*/iio:device*"
_HWMON = "sys/bus/i2c/drivers/{}/*-*/hwmon/hwmon*"
_IIO_OF_POWER = Layout(
    folders=_IIO,
    labels=("rail_name_{}",),
    files=("in_power{}_input",),
    per_w=1e3,
    volt="in_voltage{}_input",
    shunt="shunt_resistor_{}",
    numbers=(0, 1, 2),
)
LAYOUTS = (
    _IIO_OF_POWER,
    _IIO_OF_POWER._replace(files=("in_voltage{}_input", "in_current{}_input"), per_w=1e6),
    Layout(
        folders=_HWMON.format("ina3221"),
        labels=("in{}_label",),
        files=("in{}_input", "curr{}_input"),
        per_w=1e6,
        volt="in{}_input",
        shunt="shunt{}_resistor",
        numbers=(1, 2, 3),
    ),
)
# SOURCE: files, and VIN where no label is: jetson_stats 7.2.2, and readers of Thors (stored index
# 69545150365, 70371453488)
INA238 = Layout(
    folders=_HWMON.format("ina238"),
    labels=("in{}_label", "label"),
    files=("power{}_input",),
    per_w=1e6,
    volt="in{}_input",
    shunt="shunt{}_resistor",
    numbers=(1,),
    unlabelled="VIN",
)


def chips(root: str) -> List[Tuple[Layout, str]]:
    """Return the chips of a board: how the files of each are named, and its folder."""
    found: Dict[str, Layout] = {}
    for layout in LAYOUTS + (INA238,):
        folders = os.path.join(glob.escape(root), layout.folders)
        for path in glob.glob(os.path.join(folders, layout.files[0].format("*"))):
            found.setdefault(os.path.dirname(path), layout)
    return [(layout, folder) for folder, layout in sorted(found.items())]


def _label(folder: str, layout: Layout, number: int) -> str:
    names = (text(folder, name.format(number)) for name in layout.labels)
    return next(filter(None, names), layout.unlabelled)


class Channel:
    """One rail, a channel of the chip whose files lie in `folder`: its files, open.

    `label`: the rail
    `fds`: the files of a reading, open; none where it is not connected or cannot be opened
    `error`: why the latest reading failed; None when it did not
    """

    def __init__(self, folder: str, layout: Layout, number: int) -> None:
        self.label = _label(folder, layout, number)
        self._per_w = layout.per_w
        self.shunt = text(folder, layout.shunt.format(number)) or None
        self.error: Optional[str] = None
        self.fds: List[int] = []
        if not is_connected(self.label):
            return
        try:
            for name in layout.files:
                path = os.path.join(folder, name.format(number))
                self.fds.append(os.open(path, os.O_RDONLY))
        except OSError as error:
            self.error = str(error)
            self.close()

    def take(self) -> List[bytes]:
        """Return what each file holds; nothing when one of them cannot be read."""
        try:
            return [os.pread(fd, _READ_BYTES, 0) for fd in self.fds]
        except OSError as error:
            self.error = str(error)
            return [b""] * len(self.fds)

    def watts(self, taken: List[bytes]) -> float:
        """Return the rail's power, W; NaN where a file holds no number."""
        try:
            numbers = [int(text) for text in taken]
        except ValueError as error:
            self.error = self.error or str(error)
            return NAN
        return (numbers[0] * numbers[1] if len(numbers) == 2 else numbers[0]) / self._per_w

    def close(self) -> None:
        """Close the files."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class Ina3221Source(Source):
    """All rails of a board, and the power of its module, or of the whole board, out of them.

    `root`: `/`, or the folder of a fake board
    `kind`: kind of board, which says what the rails add up to
    `fallback`: why this source stands for another that was asked for; None: it does not
    """

    name = "sysfs"
    period_s = PERIOD_S

    def __init__(self, root: str, kind: str, fallback: Optional[str] = None) -> None:
        self._root = root
        self._fallback = fallback
        self._chips = chips(root)
        channels = [Channel(f, layout, n) for layout, f in self._chips for n in layout.numbers]
        self._channels = [channel for channel in channels if channel.fds]
        self._unread = {c.label: c.error for c in channels if c.error is not None}
        if not self._channels:
            reason = "; ".join(map(str, self._unread.values())) or "no such sensor"
            raise OSError(f"no rail of an INA3221 can be read below {root}: {reason}")
        self._fds = [fd for channel in self._channels for fd in channel.fds]
        self._power = ModulePower(kind, [channel.label for channel in self._channels])
        self.columns = self._power.columns
        self.scope, self.total = self._power.scope, self._power.total

    def start(self) -> None:
        """Count contradictions from zero."""
        self._power.start()
        for channel in self._channels:
            channel.error = None

    def take(self) -> List[bytes]:
        """Return what each file holds; empty for all files of a rail that cannot be read."""
        pread = os.pread
        try:  # all at once; after an error rail by rail, so that each failure is noted
            return [pread(fd, _READ_BYTES, 0) for fd in self._fds]
        except OSError:
            return [content for channel in self._channels for content in channel.take()]

    def values(self, taken: List[bytes]) -> List[float]:
        """Return the power of each rail and the total, W; raises OSError when none answers."""
        contents = iter(taken)
        watts = [c.watts(list(islice(contents, len(c.fds)))) for c in self._channels]
        if all(value != value for value in watts):  # NaN
            raise OSError(f"no rail answers: {self._channels[0].error}")
        return self._power.row(watts)

    def settings(self) -> Document:
        """Return the sensors' settings and what the total is made of."""
        settings = self._power.settings()
        settings.update(
            power="; ".join(sorted({" x ".join(layout.files) for layout, _ in self._chips})),
            chips=[  # None where the driver does not show it
                {
                    "address": os.path.relpath(folder, self._root).split(os.sep)[_ADDRESS],
                    "samples": text(folder, "samples") or None,
                    "update_interval_ms": text(folder, "update_interval") or None,
                }
                for _, folder in self._chips
            ],
            shunt={channel.label: channel.shunt for channel in self._channels},
            errors={c.label: c.error for c in self._channels if c.error is not None},
            cannot_be_opened=self._unread,
            sensor=sensor(self._root, self._power.parts(), self.period_s),
        )
        if self._fallback is not None:
            settings["fallback"] = self._fallback
        return settings

    def close(self) -> None:
        """Close all files."""
        for channel in self._channels:
            channel.close()


# -- averaging, cycle and smallest step ------------------------------------------------------------


class Timing(NamedTuple):
    """Over how long a chip averages, and how long a cycle takes, s; None: not known."""

    averaging_s: Optional[float]
    update_s: Optional[float]


UNKNOWN = Timing(None, None)
_SHUNT_STEP_V = 40e-6
_CONVERSION_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
_AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
_ONE_CYCLE_SINCE = (5, 14)  # Linux
_ROUNDING_MS = 0.5  # of the driver's `update_interval`
_LONGEST_CYCLE_S = 3 * 2 * _CONVERSION_US[-1] / 1e6
# ASSUME: NVIDIA's kernel leaves the driver's settings: a new mean when 16 conversions of each of
# shunt, voltage and temperature, 1.052 ms each, are done
_INA238_S = 16 * 3 * 1.052e-3


def sensor(root: str, parts: Mapping[str, str], period_s: float) -> Document:
    """Return averaging, cycle and smallest steps of a board's power sensors, for the record.

    `parts`: the rails that make up the total: label -> column; `period_s`: mean time between
    readings, s

    Returns `sensor_facts`: averaging is twice the mean age of a reading, an update is a cycle, a
    step is at the voltage that the rail has now. Of several chips the slowest counts. And
    `is_centred`: what it does with a part of a step is in its offset, a matter of calibration (of
    an INA238: unknown).
    """
    layouts: List[Layout] = []
    timings: List[Timing] = []
    steps_w: Dict[str, Optional[float]] = dict.fromkeys(parts.values())
    for layout, folder in chips(root):
        rail_steps_w = _steps_w(layout, folder)
        labels_in_total = [label for label in rail_steps_w if label in parts]
        if labels_in_total:
            layouts.append(layout)
            timings.append(timing(layout, folder, len(rail_steps_w), root))
        for label in labels_in_total:
            steps_w[parts[label]] = rail_steps_w[label]
    update_s = _longest([entry.update_s for entry in timings])
    facts = sensor_facts(
        "held" if update_s is not None and update_s > period_s / 2 else "mean",
        _longest([entry.averaging_s for entry in timings]),
        update_s,
        steps_w,
    )
    return dict(facts, is_centred=INA238 not in layouts)


def timing(layout: Layout, folder: str, n_channels: int, root: str = "/") -> Timing:
    """Return averaging and cycle of a chip; `n_channels` are those that measure something."""
    if layout == INA238:
        return Timing(_INA238_S, _INA238_S)
    if layout.folders == _IIO:
        return _timing_from_device_tree(folder)
    samples, shown_ms = _number(folder, "samples"), _number(folder, "update_interval")
    if not samples or shown_ms is None:
        return UNKNOWN
    kernel = re.match(r"(\d+)\.(\d+)", text(root, "proc/sys/kernel/osrelease"))
    shows_one_cycle = kernel is None or tuple(map(int, kernel.groups())) >= _ONE_CYCLE_SINCE
    return _timing(samples, _cycle_s(samples, shown_ms, n_channels, shows_one_cycle))


def _cycle_s(samples: float, shown_ms: float, n_channels: int, shows_one_cycle: bool) -> float:
    """Return a cycle's length, s, from the `update_interval` that the driver shows, whole ms.

    Older drivers show all cycles of an average, newer ones one cycle. A vendor's kernel may have
    the newer driver, so the interval is compared with the cycles that the chip can do. The kernel
    (`shows_one_cycle`) decides where both fit (as 16 cycles of 0.84 ms and one of 12.7) or neither
    (bus and shunt converted at unlike speeds).
    """
    possible_ms = [n_channels * 2 * conversion_us / 1e3 for conversion_us in _CONVERSION_US]
    fitting_ms = {}  # cycles in the interval -> the cycle that the chip can do and that fits
    for n_cycles in (1.0, samples):
        errors_ms = {cycle_ms: abs(cycle_ms * n_cycles - shown_ms) for cycle_ms in possible_ms}
        nearest_ms = min(possible_ms, key=errors_ms.__getitem__)
        if errors_ms[nearest_ms] <= _ROUNDING_MS:
            fitting_ms[n_cycles] = nearest_ms
    if len(fitting_ms) == 1:
        n_cycles = next(iter(fitting_ms))
    else:
        n_cycles = 1.0 if shows_one_cycle else samples
    if n_cycles == 1.0 and shown_ms / 1e3 > _LONGEST_CYCLE_S:
        n_cycles = samples
    return fitting_ms.get(n_cycles, shown_ms / n_cycles) / 1e3


def _timing_from_device_tree(folder: str) -> Timing:
    """Return averaging and cycle that the device tree gives NVIDIA's driver, which hides them.

    The configuration register's bits (SBOS576B, 8.6.2.1): 14 to 12 enable channels, 11 to 9 are the
    average, 8 to 6 the bus's conversion time, 5 to 3 the shunt's.
    """
    tree = os.path.join(os.path.dirname(folder), "of_node")
    mode = text(folder, "running_mode")  # only root may read it
    is_forced = os.path.exists(os.path.join(tree, "ti,enable-forced-continuous"))
    is_continuous = mode == "1" if mode else is_forced
    if not is_continuous and not mode:
        return UNKNOWN  # the driver switches with the CPU's clock
    kind = "continuous" if is_continuous else "trigger"
    config = _device_tree_number(os.path.join(tree, f"ti,{kind}-config"))
    if not config:
        return UNKNOWN
    n_channels = bin(config >> 12 & 7).count("1")
    conversion_us = _CONVERSION_US[config >> 6 & 7] + _CONVERSION_US[config >> 3 & 7]
    cycle_s = n_channels * conversion_us / 1e6
    samples = _AVERAGES[config >> 9 & 7]
    if not is_continuous:  # each reading has its own conversion; what the filter keeps is unknown
        return Timing(cycle_s if samples == 1 else None, None)
    return _timing(samples, cycle_s)


def _timing(samples: float, cycle_s: float) -> Timing:
    return Timing((2 * samples - 1) * cycle_s, cycle_s)


def _steps_w(layout: Layout, folder: str) -> Dict[str, Optional[float]]:
    """Return the smallest step of each rail that a chip measures, W, by label; None: not known.

    A step is 40 uV on the shunt, times the voltage that the rail has now. NVIDIA's driver has the
    shunts from the device tree, and that of an INA238 shows none.
    """
    in_tree_ohm = {}
    tree = os.path.join(glob.escape(os.path.dirname(folder)), "of_node")
    for path in glob.glob(os.path.join(tree, "*", "ti,rail-name")):
        milliohm = _device_tree_number(
            os.path.join(os.path.dirname(path), "ti,shunt-resistor-mohm")
        )
        if milliohm:
            in_tree_ohm[text(*os.path.split(path))] = milliohm / 1e3
    steps_w: Dict[str, Optional[float]] = {}
    for n in layout.numbers:
        label = _label(folder, layout, n)
        if not is_connected(label):
            continue
        micro_ohm = _number(folder, layout.shunt.format(n))
        millivolt = _number(folder, layout.volt.format(n))
        shunt_ohm = micro_ohm / 1e6 if micro_ohm else in_tree_ohm.get(label)
        steps_w[label] = None
        if shunt_ohm is not None and millivolt and layout != INA238:
            steps_w[label] = _SHUNT_STEP_V / shunt_ohm * (millivolt / 1e3)
    return steps_w


def _number(folder: str, name: str) -> Optional[float]:
    digits = text(folder, name)
    return float(digits) if digits.isdigit() else None


def _device_tree_number(path: str) -> Optional[int]:
    """Return a number of the device tree, four bytes big-endian; None: it cannot be read."""
    try:
        with open(path, "rb") as file:
            return int(struct.unpack(">I", file.read(4))[0])
    except (OSError, struct.error):
        return None


def _longest(seconds: List[Optional[float]]) -> Optional[float]:
    readings = [value for value in seconds if value is not None]
    return max(readings) if readings and len(readings) == len(seconds) else None
