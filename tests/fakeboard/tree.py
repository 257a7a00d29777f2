"""Writer of the files of a fake board that has never been started."""

import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import epochwatt
from epochwatt.board.device.board_files import NVPMODEL_CONF
from epochwatt.board.device.helper_file import helper_file
from epochwatt.board.device.kinds import Kind as BoardKind
from epochwatt.board.device.root_helper import INSTALLED as INSTALLED_HELPER
from epochwatt.board.device.stock_modes import GPU_MASK
from tests.fakeboard.kinds import NC, Channel, FakeKind
from tests.fakeboard.tools.board_files import CPU, FACTS, NVFANCONTROL, cpu_list

PATHS = [str(Path(__file__).parents[2]), str(Path(epochwatt.__file__).parents[1])]  # for imports
RUN = "run/epochwatt-stand-in/"
INSTALLED = ("usr/sbin/nvpmodel", "usr/bin/jetson_clocks", "usr/bin/tegrastats", "bin/systemctl")
_TOOL = """#!{python} -IS
# epochwatt stand-in
import os, sys

sys.path[:0] = {paths!r}
from tests.fakeboard.tools.{tool} import main

sys.exit(main(os.path.realpath(__file__)[: -len({place!r})], sys.argv[1:]))
"""
# Opens, and answers every reading with an I/O error. Drivers say ENODATA of a channel that is off,
# EAGAIN of a zone without power: no file of a plain tree does.
IO_ERROR = "/proc/self/mem"

_HWMON = {
    "pwmfan": "sys/devices/platform/pwm-fan",
    "pwm_tach": "sys/devices/platform/39c0000.tachometer",
    "soctherm_oc": "sys/devices/platform/soctherm-oc-event",
}

Files = dict[str, Any]  # name -> content without its last newline; bytes as they are


def facts(kind: FakeKind) -> dict[str, Any]:
    """Return what the tools and the process of a board need to know of its files."""
    board, release = kind.board, kind.release
    return {
        "name": kind.name,
        "kind": board.name,
        "clusters": board.clusters,
        "cpu_khz": kind.cpu_khz,
        "gpu_hz": kind.gpu_hz,
        "gpu_device": release.gpu_device,
        "gpu": kind.gpu,
        "gpcs": board.gpcs,
        "has_gpu_load": board.has_gpu_load,
        "emc_hz": kind.emc_hz,
        "emc_files": board.emc_files,
        "emc_cap": release.emc_cap,
        "emc_top_is_0": board.emc_top_is_0,
        "takes_knext": kind.jetpack >= 5,
        "caps": kind.caps,
        "dialect": release.tegrastats,
        "zones": kind.zones,
        "rails": [_rail_facts(kind, channel) for channel in kind.channels],
        "tegrastats_rails": _rails_of_tegrastats(kind),
        "total": kind.total,
        "watts": kind.watts,
        "ram_mib": board.ram_mib,
        "swap_mib": (board.ram_mib or 0) // 2,
        "fan": _fan_facts(kind),
        "oc": _hwmon(kind, "soctherm_oc") + "/oc3_event_cnt" if kind.hwmon else None,
        "throttlers": [f"sys/class/thermal/cooling_device{n}/" for n in (1, 2)],
    }


def _rails_of_tegrastats(kind: FakeKind) -> list[str]:
    """Return the rails that tegrastats prints: from JetPack 6 on none that hangs below a sum."""
    labels = [channel.label for channel in kind.channels]
    if kind.jetpack < 6:
        return labels
    return [label for label in labels if label not in (NC, "VDDQ_VDD2_1V8AO")]


def _hwmon(kind: FakeKind, what: str) -> str:
    """Return the folder of a hwmon device; a sensor is named by its bus and address."""
    device = _HWMON.get(what) or f"sys/bus/i2c/drivers/{kind.drivers[what]}/{what}"
    return f"{device}/hwmon/hwmon{kind.hwmon.index(what)}"


def _iio(kind: FakeKind, chip: str) -> str:
    chips = sorted({channel.chip for channel in kind.channels})
    return f"sys/bus/i2c/drivers/ina3221x/{chip}/iio:device{chips.index(chip)}"


def _rail_facts(kind: FakeKind, channel: Channel) -> dict[str, Any]:
    """Return a channel with its files."""
    n, unit = channel.channel, {}
    if kind.hwmon:
        folder = _hwmon(kind, channel.chip)
        files = {"volt": f"in{n}_input", "curr": f"curr{n}_input", "alarm": f"curr{n}_crit_alarm"}
        if channel.driver == "ina238":
            files |= {"power": "power1_input", "alarm": "power1_max_alarm"}
            unit = {"unit_uw": 1}
    else:
        unit = {"unit_uw": 1000}
        folder = _iio(kind, channel.chip)
        files = {
            "volt": f"in_voltage{n}_input",
            "curr": f"in_current{n}_input",
            "power": f"in_power{n}_input",
        }
    return {**asdict(channel), **unit, **{key: f"{folder}/{name}" for key, name in files.items()}}


def _fan_facts(kind: FakeKind) -> dict[str, Any]:
    """Return the fan's files: speed wanted and now, its control (None: a service), turns."""
    if kind.hwmon:
        pwm = _hwmon(kind, "pwmfan") + "/pwm1"
        return {"pwm": pwm, "now": pwm, "control": None, "rpm": _hwmon(kind, "pwm_tach") + "/rpm"}
    folder = "sys/devices/pwm-fan/"
    return {
        "pwm": folder + "target_pwm",
        "now": folder + "cur_pwm",
        "control": folder + "temp_control",
        "rpm": folder + "rpm_measured",
    }


def write_tree(root: Path, kind: FakeKind) -> None:
    """Write every file, link and tool of a board that has never been started."""
    files: Files = {FACTS: json.dumps(facts(kind), indent=1)}
    for part in (_etc_and_proc, _cpus, _gpu, _emc, _sensors, _thermal, _fan_and_counters):
        files.update(part(kind))
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
    for name, target in _links(kind).items():
        link = root / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(
            target if target == IO_ERROR else os.path.relpath(root / target, link.parent)
        )
    python = os.path.realpath(sys.executable)  # a #! line takes no path with spaces
    programs = {INSTALLED_HELPER: helper_file(python)}
    for place in INSTALLED:
        words = {"python": python, "paths": PATHS, "place": "/" + place}
        programs[place] = _TOOL.format(tool=place.rpartition("/")[2], **words).encode()
    for name, code in programs.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(code)
        path.chmod(0o755)


def _etc_and_proc(kind: FakeKind) -> Files:
    release, revision = kind.l4t
    reference = "generic" if kind.jetpack > 5 else "t186ref"
    nul = b"\0"
    names = [name.encode() + nul for name in kind.release.compatible or kind.board.compatible]
    model = kind.release.model or kind.board.model
    return {
        "etc/nv_tegra_release": f"# R{release} (release), REVISION: {revision}, GCID: 1, BOARD: "
        f"{'t210ref' if kind.board.soc == 'tegra210' else reference}, EABI: aarch64, "
        "DATE: Thu Jan  1 00:00:00 UTC 1970",
        NVPMODEL_CONF: kind.conf,
        "proc/device-tree/model": model.encode() + nul,
        "proc/device-tree/compatible": b"".join(names),
        "proc/device-tree/serial-number": kind.serial.encode() + nul,
        "proc/sys/kernel/random/boot_id": uuid.uuid4(),
        "proc/sys/vm/drop_caches": 0,
        **dict.fromkeys(
            ("proc/stat", "proc/meminfo", "proc/loadavg", "proc/swaps", "proc/vmstat"), ""
        ),
        "var/lib/nvpmodel/status": f"pmode:{kind.release.default_mode:04d}",
        RUN + "faults.json": "{}",
        RUN + "power.csv": "monotonic_s,power_w",
        **({NVFANCONTROL: 1} if kind.hwmon else {}),
    }


def _cpus(kind: FakeKind) -> Files:
    board, cpus = kind.board, range(kind.board.cores)
    lowest, highest = kind.cpu_khz[0], kind.cpu_khz[-1]
    files: Files = {
        **dict.fromkeys([CPU + "present", CPU + "possible", CPU + "online"], cpu_list(cpus)),
        CPU + "offline": "",
    }
    for cpu in cpus:
        files[f"{CPU}cpu{cpu}/online"] = 1
        for number, name in enumerate(board.idle_states):
            state = f"{CPU}cpu{cpu}/cpuidle/state{number}/"
            files |= {state + "name": name, state + "disable": 0}
    for cluster in board.clusters:
        policy = f"{CPU}cpufreq/policy{cluster[0]}/"
        files |= {
            policy + "related_cpus": " ".join(map(str, cluster)),
            **_steps(board, "cpu", policy + "scaling_available_frequencies", kind.cpu_khz),
            policy + "scaling_available_governors": "userspace powersave performance schedutil",
            policy + "scaling_governor": "schedutil",
            policy + "scaling_setspeed": "<unsupported>",
            **{policy + f"{name}_min_freq": lowest for name in ("scaling", "cpuinfo")},
            **{policy + f"{name}_max_freq": highest for name in ("scaling", "cpuinfo")},
            **{policy + f"{name}_cur_freq": lowest for name in ("scaling", "cpuinfo")},
        }
    return files


def _gpu(kind: FakeKind) -> Files:
    device, devfreq = kind.release.gpu_device + "/", kind.gpu + "/"
    default = next(mode for mode in kind.modes if mode.id == kind.release.default_mode)
    masks = {name.lower() + "_pg_mask": mask for name, mask in default.masks.items()}
    gpu_mask = masks.pop("gpu_pg_mask", None)
    files: Files = {
        **({device + "load": 0} if kind.board.has_gpu_load else {}),
        device + "railgate_enable": 1,
        device + "power/control": "auto",
        **_steps(kind.board, "gpu", devfreq + "available_frequencies", kind.gpu_hz),
        devfreq + "min_freq": kind.gpu_hz[0],
        devfreq + "max_freq": kind.gpu_hz[-1],
        devfreq + "cur_freq": kind.gpu_hz[0],
        devfreq + "governor": "nvhost_podgov",
    }
    files |= {device + name: mask for name, mask in masks.items()}
    if gpu_mask is not None:
        files[GPU_MASK] = gpu_mask
    return files | dict.fromkeys(kind.caps, 0)


def _steps(board: BoardKind, clock: str, name: str, steps: Sequence[int]) -> Files:
    """Return the file that lists a clock's steps; none where not all of them are known."""
    return {} if clock in board.seen_only else {name: " ".join(map(str, steps))}


def _emc(kind: FakeKind) -> Files:
    names, steps = kind.board.emc_files, kind.emc_hz
    rates = {"min": steps[0], "max": steps[-1], "locked": 0}
    files = {path: rates.get(key, steps[0]) for key, path in names.items()}
    if "bpmp" in names["now"]:
        files[names["now"].replace("/rate", "/state")] = 1
    return files | {"sys/kernel/actmon_avg_activity/mc_all": 0}


def _sensors(kind: FakeKind) -> Files:
    """Return the files of the sensors, in the layout of the board's drivers."""
    files: Files = {}
    for chip, driver in sorted(kind.drivers.items()):
        if not kind.hwmon:
            files[_iio(kind, chip) + "/name"] = "ina3221x"
            continue
        folder = _hwmon(kind, chip) + "/"
        if driver == "ina238":  # no label and no settings, as the driver of Linux 6.8 has it
            shown = {"name": driver, "in0_input": 0, "temp1_input": 40000}
            shown |= {"power1_max": 168000000, "power1_max_alarm": 0}
            files |= {folder + name: value for name, value in shown.items()}
            continue
        n_on = sum(c.chip == chip and c.label != NC for c in kind.channels)
        files |= {folder + "name": "ina3221", folder + "in7_label": "sum of shunt voltages"}
        files |= {folder + f"in{n}_input": 0 for n in (4, 5, 6, 7)}  # of the shunts, and their sum
        files |= {folder + "curr4_input": 0, folder + "samples": 1}
        files |= {folder + "update_interval": round(2.2 * n_on), folder + "of_node/name": "ina3221"}
    for channel in kind.channels:
        names = _rail_facts(kind, channel)
        n = channel.channel
        folder = names["volt"].rpartition("/")[0] + "/"
        limit_ma = 32760
        if channel.driver == "ina238":
            pass
        elif kind.hwmon:
            is_on = channel.label != NC
            files |= {folder + f"in{n}_enable": int(is_on)}
            if is_on or kind.jetpack < 6:  # whose tegrastats prints the label, too
                files |= {folder + f"in{n}_label": channel.label}
            files |= {folder + f"curr{n}_{end}": limit_ma for end in ("max", "crit")}
            files |= {folder + f"curr{n}_{end}_alarm": 0 for end in ("max", "crit")}
            files |= {folder + f"shunt{n}_resistor": 2000}
        else:
            files |= {folder + f"rail_name_{n}": channel.label}
            files |= {folder + f"{end}_current_limit_{n}": limit_ma for end in ("warn", "crit")}
        if channel.label != NC:
            files |= {names[key]: 0 for key in ("volt", "curr", "power") if key in names}
    return files


def _thermal(kind: FakeKind) -> Files:
    files: Files = {}
    for number, zone in enumerate(kind.zones):
        folder = f"sys/class/thermal/thermal_zone{number}/"
        files |= {folder + "type": zone["type"], folder + "mode": "enabled"}
        files |= {folder + "trip_point_0_type": "passive", folder + "trip_point_0_temp": 95000}
        if zone["place"] != "off":
            files[folder + "temp"] = 30000
    slowing = "{}-balanced" if kind.jetpack < 5 else "{}-throttle-alert"
    for number, name in enumerate(("pwm-fan", slowing.format("cpu"), slowing.format("gpu"))):
        folder = f"sys/class/thermal/cooling_device{number}/"
        files |= {folder + "type": name, folder + "cur_state": 0, folder + "max_state": 10}
        if kind.hwmon:
            files[folder + "stats/total_trans"] = 0
    return files


def _fan_and_counters(kind: FakeKind) -> Files:
    fan = _fan_facts(kind)
    files: Files = {fan["pwm"]: 0, fan["now"]: 0, fan["rpm"]: 0}
    if not kind.hwmon:
        return files | {fan["control"]: 1, "sys/devices/pwm-fan/pwm_cap": 255}
    counters = _hwmon(kind, "soctherm_oc") + "/"
    files |= {f"{counters}oc{n}_event_cnt": 0 for n in (1, 2, 3)}
    files |= {f"{counters}oc{n}_throt_en": 1 for n in (1, 2, 3)}
    return files | {f"{_hwmon(kind, name)}/name": name for name in _HWMON}


def _links(kind: FakeKind) -> dict[str, str]:
    """Return link -> target, both below the root; or the file that cannot be read."""
    device = kind.release.gpu_device
    links = {**kind.gpu_links, kind.gpu + "/device": device}
    links["sys/class/devfreq/" + kind.gpu.rpartition("/")[2]] = kind.gpu
    for cluster in kind.board.clusters:
        for cpu in cluster:
            links[f"{CPU}cpu{cpu}/cpufreq"] = f"{CPU}cpufreq/policy{cluster[0]}"
    for number, name in enumerate(kind.hwmon):
        links[f"sys/class/hwmon/hwmon{number}"] = _hwmon(kind, name)
    for channel in kind.channels:
        if channel.label == NC:
            names = _rail_facts(kind, channel)
            links |= {names["volt"]: IO_ERROR, names["curr"]: IO_ERROR}
    for number, zone in enumerate(kind.zones):
        if zone["place"] == "off":
            links[f"sys/class/thermal/thermal_zone{number}/temp"] = IO_ERROR
    return links
