"""Read all files of a board that our code uses, with the links between them.

A board's files are one tree under many names: `hwmon3` is a link, and so is the folder of each
CPU's clocks. A value is kept once, under its real name, and the links beside it, so that the tree
can be rebuilt (`epochwatt.fakeboard.replay`).
"""

import errno
import glob
import os
from dataclasses import dataclass, field
from typing import Any

LIMIT_BYTES = 65536  # read of a file; none of these is longer

_CPU = "sys/devices/system/cpu/"
_FREQ = ("available_frequencies", "min_freq", "max_freq", "cur_freq", "governor")
_GPU = ("load", "railgate_enable", "*_pg_mask", "power/control")
_EMC = "sys/kernel/debug/bpmp/debug/clk/emc/"
_NANO_EMC = ("clk_rate", "clk_update_rate", "clk_state")
_INA_IIO = ("name", "rail_name_*", "in_*_input", "shunt_resistor_*", "*_current_limit_*", "*_mode")
_INA_TREE = ("ti,*", "*/ti,*")  # its settings, which NVIDIA's driver does not show
_INA_CHANNELS = ("in*_label", "in*_input", "in*_enable", "curr*_input", "shunt*_resistor")
_INA_LIMITS = ("curr*_max", "curr*_crit", "curr*_alarm", "samples", "update_interval")

# Folders and the files in them, as patterns relative to the board's root.
READINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("etc", ("nv_tegra_release",)),
    ("proc/device-tree", ("model", "compatible", "serial-number")),
    ("proc", ("stat", "meminfo", "swaps", "loadavg", "vmstat", "cpuinfo", "version")),
    ("proc/self", ("mountinfo",)),
    ("proc/sys/kernel/random", ("boot_id",)),
    (_CPU, ("present", "possible", "online", "offline")),
    (_CPU + "cpu[0-9]*", ("online", "cpuidle/state*/name", "cpuidle/state*/disable")),
    (_CPU + "cpu[0-9]*/cpufreq", ("scaling_*", "cpuinfo_*", "related_cpus")),
    ("sys/class/devfreq/*", (*_FREQ, "device/load")),
    ("sys/devices/*/devfreq/*", _FREQ),
    ("sys/devices/*/devfreq_dev", _FREQ),
    ("sys/devices/platform/*/devfreq_dev", _FREQ),
    ("sys/devices/platform/*/devfreq/*", _FREQ),
    ("sys/devices/platform/*/*/devfreq/*", _FREQ),
    ("sys/devices/gpu.0", _GPU),
    ("sys/devices/*.g?1*b", _GPU),
    ("sys/devices/platform/*.gpu", _GPU),
    ("sys/devices/platform/gpu.0", _GPU),
    ("sys/kernel/gpu_static_pg", ("gpu_pg_mask",)),
    ("sys/bus/i2c/drivers/ina3221x/*-*/iio:device*", _INA_IIO),
    ("sys/bus/i2c/drivers/ina3221x/*-*/of_node", _INA_TREE),
    ("sys/bus/i2c/drivers/ina3221/*-*/hwmon/hwmon*", ("name", *_INA_CHANNELS, *_INA_LIMITS)),
    (
        "sys/class/hwmon/hwmon*",
        ("name", "oc*_event_cnt", "oc*_throt_en", "pwm1", "rpm", "fan1_input"),
    ),
    ("sys/devices/pwm-fan", ("target_pwm", "cur_pwm", "temp_control", "pwm_cap", "rpm_measured")),
    ("sys/class/thermal/thermal_zone*", ("type", "temp", "mode", "trip_point_*_t*")),
    ("sys/class/thermal/cooling_device*", ("type", "cur_state", "max_state", "stats/total_trans")),
    (_EMC.rstrip("/"), ("rate", "min_rate", "max_rate", "mrq_rate_locked", "state")),
    ("sys/kernel/debug/tegra_bwmgr", ("emc_min_rate", "emc_max_rate")),
    ("sys/kernel/debug/clk/override.emc", _NANO_EMC),
    ("sys/kernel/debug/clk/emc", ("clk_rate",)),
    ("sys/kernel/debug/cactmon", ("mc_all",)),
    ("sys/kernel/actmon_avg_activity", ("mc_all",)),
    ("sys/kernel/nvpmodel_emc_cap", ("*",)),
    ("sys/kernel/nvpmodel_clk_cap", ("*",)),
    ("sys/class/powercap/intel-rapl:*", ("name", "energy_uj", "max_energy_range_uj")),
    ("sys/class/power_supply/*", ("type",)),
    (
        "sys/dev/block/*",
        ("dev", "size", "partition", "queue/rotational", "device/type", "slaves/*"),
    ),
    ("sys/class/block/*", ("dev",)),
)


@dataclass
class Readings:
    """The values of a board's files."""

    values: dict[str, bytes] = field(default_factory=dict)  # real name below the root -> content
    links: dict[str, str] = field(default_factory=dict)  # name -> name, both below the root
    errors: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> errno, at, text


def read_all(root: str) -> Readings:
    """Read every file of `READINGS`; note the error of each that cannot be read.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    """
    readings = Readings()
    for folder, names in READINGS:
        for name in names:
            pattern = os.path.join(folder, name)
            paths = glob.glob(os.path.join(glob.escape(root), pattern))
            for path in sorted(paths):
                _read(root, os.path.relpath(path, root), readings)
            if not paths:
                _note_hidden(root, pattern, readings)
    return readings


def _read(root: str, name: str, readings: Readings) -> None:
    real = _real_name(root, name, readings)
    if real is None or real in readings.values or real in readings.errors:
        return
    at = "open"
    try:
        with open(os.path.join(root, real), "rb") as handle:
            at = "read"
            readings.values[real] = handle.read(LIMIT_BYTES)
    except IsADirectoryError:
        return  # a link to another device; only the link counts
    except OSError as error:
        readings.errors[real] = {"errno": error.errno, "at": at, "text": str(error.strerror)}


def _note_hidden(root: str, pattern: str, readings: Readings) -> None:
    """Note a file in a folder that this user may not enter (the debugfs of the kernel)."""
    if glob.has_magic(pattern):
        return
    try:
        os.stat(os.path.join(root, pattern))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            text = str(error.strerror)
            readings.errors[pattern] = {"errno": error.errno, "at": "open", "text": text}


def _real_name(root: str, name: str, readings: Readings) -> str | None:
    """Return a file's name without links, all below the root; keep the links on the way.

    A link that leads out of the root counts as the file itself. None: an endless chain of links.
    """
    parts, real, n_links = name.split("/"), "", 0
    while parts:
        here = os.path.join(real, parts.pop(0))
        path = os.path.join(root, here)
        target = os.readlink(path) if os.path.islink(path) else None
        aim = None if target is None else _below(root, real, target)
        if aim is None:
            real = here
            continue
        n_links += 1
        if n_links > 40:
            return None
        readings.links[here] = aim
        parts, real = aim.split("/") + parts, ""
    return real


def _below(root: str, folder: str, target: str) -> str | None:
    """Return the target of a link in a folder, relative to the root; None: outside of it."""
    aim = os.path.normpath(os.path.join("/", folder, target))
    if os.path.isabs(target) and root != "/":
        return None
    return aim.lstrip("/") or None
