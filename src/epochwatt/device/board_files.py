"""Reader of a board's files: kind, clocks, power modes, fan (board side: Python 3.6 grammar).

The board code and the root helper read through this module, so beside the standard library it
imports only the table of kinds. All functions take the folder that holds the board's files: `/`, or
the folder of a fake board. Sources: docs/explanation/root-helper.md.
"""

import glob
import os
import re
import stat
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from epochwatt.device.kinds import EMC_CAP, EMC_CLOCK_FILES, KINDS

NVPMODEL_CONF = "etc/nvpmodel.conf"

_Steps = Tuple[int, ...]
Param = NamedTuple("Param", [("type", str), ("paths", Dict[str, str])])
Mode = NamedTuple("Mode", [("id", int), ("name", str), ("settings", List[Tuple[str, str, str]])])
Conf = NamedTuple(
    "Conf", [("params", Dict[str, Param]), ("modes", List[Mode]), ("default_id", Optional[int])]
)
Tables = NamedTuple("Tables", [("cpu_khz", _Steps), ("gpu_hz", _Steps), ("emc_hz", _Steps)])

_GPU_FOLDERS = (
    "class/devfreq/*",
    "devices/*/devfreq/*",  # JetPack 4 and 5
    "devices/*/devfreq_dev",  # the newer kernel of JetPack 5
    "devices/platform/*/devfreq/*",  # JetPack 6
    "devices/platform/*/*/devfreq/*",
)
_GPU_NAMES = {r"\.gp10b"} | {kind.gpu_name for kind in KINDS.values()}  # the first: Jetson TX2
_GPU_NAME = re.compile("({})(/devfreq_dev)?$".format("|".join(sorted(_GPU_NAMES))))


def board_kind(root: str) -> str:
    """Return the kind of board, `unknown` for a Jetson we do not know, empty for any other."""
    tree = os.path.join(root, "proc/device-tree")
    words = text(tree, "compatible") + " " + text(tree, "model")
    words = words.replace("\0", " ").lower()
    if "nvidia,tegra" not in words and "jetson" not in words:
        return ""
    names = (name for name, kind in KINDS.items() if re.search(kind.pattern, words))
    return next(names, "unknown")


def cpus(root: str) -> Tuple[int, ...]:
    """Return the numbers of the CPUs that are present, online or not."""
    folders = glob.glob(os.path.join(glob.escape(root), "sys/devices/system/cpu/cpu[0-9]*"))
    return tuple(sorted(int(os.path.basename(folder)[3:]) for folder in folders))


def online(root: str) -> Tuple[int, ...]:
    """Return the numbers of the CPUs that are online; one without a switch always is."""
    return tuple(cpu for cpu in cpus(root) if text(cpu_folder(root, cpu), "online") != "0")


def cpu_khz(root: str) -> Tuple[int, ...]:
    """Return the CPU's clocks in kHz, ascending; empty where the board does not list them."""
    name = "cpufreq/scaling_available_frequencies"
    tables = (_integers(text(cpu_folder(root, cpu), name)) for cpu in cpus(root))
    return next((table for table in tables if table), ())


def gpu_hz(root: str) -> Tuple[int, ...]:
    """Return the GPU's clocks in Hz, ascending; empty where the board does not list them."""
    folder = find_gpu(root)
    return _integers(text(folder, "available_frequencies")) if folder else ()


def emc_hz(root: str) -> Tuple[int, ...]:
    """Return the memory's clocks in Hz, ascending, as `kinds` has them; empty: not known."""
    kind = KINDS.get(board_kind(root))
    return () if kind is None or "emc" in kind.seen_only else kind.emc_hz


def tables(root: str) -> Tables:
    """Return the clocks that the board can be set to."""
    return Tables(cpu_khz(root), gpu_hz(root), emc_hz(root))


def find_gpu(root: str) -> Optional[str]:
    """Return the GPU's devfreq folder (`available_frequencies`, `cur_freq`, ... in Hz), or None."""
    for pattern in _GPU_FOLDERS:
        for folder in sorted(glob.glob(os.path.join(glob.escape(root), "sys", pattern))):
            files = (folder + "/available_frequencies", folder + "/cur_freq")
            if _GPU_NAME.search(folder) and any(map(os.path.exists, files)):
                return folder
    return None


def read_clocks(root: str) -> Dict[str, Any]:
    """Return the clocks as they are now; None for each that cannot be read.

    Returns
    -------
    dict : `cores_online` (list of int); `cpu_khz`, `cpu_min_khz`, `cpu_max_khz` (CPU online as str
        -> kHz); `gpu_hz`, `gpu_min_hz`, `gpu_max_hz`; `emc_hz` (only root reads it) and
        `emc_cap_hz` (the mode's; 0 = none)
    """
    cores, gpu = online(root), find_gpu(root) or ""
    clocks: Dict[str, Any] = {"cores_online": list(cores)}
    for key, name, more in (
        ("", "cur", ["cpuinfo_cur_freq"]),
        ("min_", "min", []),
        ("max_", "max", []),
    ):
        clocks["gpu_{}hz".format(key)] = _number(gpu, name + "_freq")
        files = ["cpufreq/" + file for file in more + ["scaling_{}_freq".format(name)]]
        clocks["cpu_{}khz".format(key)] = {
            str(c): _number(cpu_folder(root, c), *files) for c in cores
        }
    clocks["emc_hz"] = _number(root, *EMC_CLOCK_FILES)
    clocks["emc_cap_hz"] = _number(root, EMC_CAP)
    return clocks


def parse_conf(text: str) -> Conf:
    """Parse an nvpmodel configuration; raises ValueError where it is none.

    `< PARAM TYPE=t NAME=n >` opens a list of `ARG path`, `< POWER_MODEL ID=i NAME=n >` one of
    `PARAM ARG value`, `< PM_CONFIG DEFAULT=i >` names the mode of a first start.
    """
    conf = Conf({}, [], None)
    section = ""
    rows: Any = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if line.startswith("<") and len(words) > 1:
            section, keys = words[1], dict(word.partition("=")[::2] for word in words[2:])
            if section == "PARAM":
                rows = {}
                conf.params[keys.get("NAME", "")] = Param(keys.get("TYPE", ""), rows)
            elif section == "POWER_MODEL":
                rows = []
                conf.modes.append(Mode(int(keys.get("ID", "")), keys.get("NAME", ""), rows))
            elif section == "PM_CONFIG":
                conf = conf._replace(default_id=int(keys.get("DEFAULT", "")))
        elif section == "PARAM" and len(words) == 2:
            rows[words[0]] = words[1]
        elif section == "POWER_MODEL" and len(words) == 3:
            rows.append(_setting(*words))
    if not conf.modes:
        raise ValueError("the nvpmodel configuration holds no power mode")
    return conf


def _setting(name: str, arg: str, value: str) -> Tuple[str, str, str]:
    """Return a row of a mode; ValueError where a clock or mask is no number."""
    is_clock = arg[:4] in ("MAX_", "MIN_")
    number = r"-?[0-9]{1,18}$" if is_clock else r"(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,18})$"
    if (is_clock or arg == "TPC_PG_MASK") and not re.match(number, value):
        raise ValueError("{} {} of a power mode is {}, no whole number".format(name, arg, value))
    return name, arg, value


def strongest(conf: Conf) -> Mode:
    """Return the mode with the fewest GPU parts gated off, then most cores, memory, GPU, CPU."""

    def power(mode: Mode) -> Tuple[float, ...]:
        def limit(*names: str) -> float:
            limits = [
                int(v) for name, arg, v in mode.settings if name in names and arg[:3] == "MAX"
            ]
            return max([value if value > 0 else float("inf") for value in limits or [0]])

        gated = bin(tpc_mask(mode) or 0).count("1")
        return -gated, _cores(mode), limit("EMC"), limit("GPU"), limit(*_clusters(conf))

    return max(conf.modes, key=power)


def custom_conf(
    conf: Conf, cores: int, cpu_khz: int, gpu_hz: int, emc_hz: int, tables: Tables
) -> str:
    """Return an nvpmodel configuration with one mode, made of the strongest mode of `conf`.

    It keeps that mode's id (so that `nvpmodel -q` and the board's next start know it), its TPC mask
    and all its other settings. The numbers are upper limits, cores count from the first; 0 leaves a
    limit as that mode has it. A cluster that is offline gets no clocks, and the highest memory
    clock of `tables` is written as 0, no cap. Raises ValueError for cores or clocks that the board
    lacks.
    """
    base, clusters = strongest(conf), _clusters(conf)
    present = sum(1 for row in base.settings if row[0] == "CPU_ONLINE")
    limits = dict.fromkeys(clusters, (cpu_khz, tables.cpu_khz))
    limits.update(GPU=(gpu_hz, tables.gpu_hz), EMC=(emc_hz, tables.emc_hz))
    limits = {name: limit for name, limit in limits.items() if limit[0]}
    for name, (number, steps) in sorted(dict(limits, cores=(cores, range(present + 1))).items()):
        if number not in steps:
            raise ValueError("{}: {} is none of {}".format(name, number, list(steps)))
        if name in limits and name not in conf.params:
            raise ValueError("the nvpmodel of this board cannot limit {}".format(name))
    cores = cores or _cores(base)
    rows = []
    unset = set(limits) - {name for name, arg, _ in base.settings if arg == "MAX_FREQ"}
    for name, arg, value in base.settings + [(name, "MAX_FREQ", "") for name in sorted(unset)]:
        number, steps = limits.get(name, (0, ()))
        if name == "CPU_ONLINE":
            value = str(int(int(arg.rpartition("_")[2]) < cores))
        elif number and arg == "MAX_FREQ":
            value = str(0 if name == "EMC" and number == steps[-1] else number)
        elif number and arg == "MIN_FREQ" and int(value) > number:
            value = str(steps[0])
        rows.append((name, arg, value))
    rows = [row for row in rows if clusters.get(row[0], 0) < cores]
    return conf_text(conf._replace(modes=[Mode(base.id, "EPOCHWATT", rows)], default_id=base.id))


def conf_text(conf: Conf) -> str:
    """Return a configuration in the grammar that `parse_conf` reads."""
    lines = []
    for name, param in conf.params.items():
        lines.append("< PARAM TYPE={} NAME={} >".format(param.type, name))
        lines.extend(" ".join(pair) for pair in param.paths.items())
    for mode in conf.modes:
        lines.append("< POWER_MODEL ID={} NAME={} >".format(mode.id, mode.name))
        lines.extend(" ".join(row) for row in mode.settings)
    if conf.default_id is not None:
        lines.append("< PM_CONFIG DEFAULT={} >".format(conf.default_id))
    return "\n".join(lines + [""])


def _clusters(conf: Conf) -> Dict[str, int]:
    """Return the first CPU of each cluster by the name of the cluster's clocks."""
    paths = ((name, param.paths.get("MAX_FREQ", "")) for name, param in conf.params.items())
    matches = ((name, re.search(r"/cpu([0-9]+)/cpufreq/", path)) for name, path in paths)
    return {name: int(match.group(1)) for name, match in matches if match}


def _cores(mode: Mode) -> int:
    return sum(1 for name, _, value in mode.settings if name == "CPU_ONLINE" and value != "0")


def tpc_mask(mode: Mode) -> Optional[int]:
    """Return the mask of the GPU's parts that a mode gates off; None: it has none."""
    return next((int(value, 0) for _, arg, value in mode.settings if arg == "TPC_PG_MASK"), None)


def running_mask(root: str) -> Optional[int]:
    """Return the mask of the GPU's parts that are off since the board's start; None: not known."""
    paths = [param.paths.get("TPC_PG_MASK") for param in board_conf(root).params.values()]
    masks = [text(root, path.lstrip("/")) for path in paths if path]
    return int(masks[0], 0) if masks and masks[0] else None


def gpu_share(conf: Conf, mode: Mode, kind: str) -> Optional[float]:
    """Return the share of the GPU that a mode leaves on, of the strongest's; None: not known."""
    n_parts = KINDS[kind].tpcs if kind in KINDS else None
    masks = [tpc_mask(mode), tpc_mask(strongest(conf))]
    if n_parts is None and masks[0] is None and _stock_modes_gate(kind):
        return None  # the mask has a name that we do not know
    if masks[0] == masks[1]:
        return 1.0
    if n_parts is None or None in masks:
        return None
    on, whole = (n_parts - bin(mask or 0).count("1") for mask in masks)
    return on / whole if 0 < on <= whole else None


def _stock_modes_gate(kind: str) -> bool:
    """Return whether some stock mode of the kind switches parts of the GPU off."""
    releases = KINDS[kind].releases if kind in KINDS else ()
    return any(mode.tpc_mask for release in releases for mode in release.modes)


def board_conf(root: str) -> Conf:
    """Return the board's own modes; raises ValueError."""
    return parse_conf(text(root, NVPMODEL_CONF))


def boot_id(root: str) -> str:
    """Return the kernel's id of this boot."""
    return text(root, "proc/sys/kernel/random/boot_id")


def cpu_folder(root: str, cpu: int) -> str:
    """Return the folder of a CPU."""
    return os.path.join(root, "sys/devices/system/cpu/cpu{}".format(cpu))


def text(folder: str, name: str) -> str:
    """Return the content of a small file, stripped; empty where it cannot be read."""
    try:
        with open(os.path.join(folder, name), "rb") as handle:
            return handle.read(65536).decode("utf-8", "replace").strip(" \n\0")
    except OSError:
        return ""


def _integers(text: str) -> Tuple[int, ...]:
    return tuple(sorted({int(word) for word in text.split() if re.match(r"[0-9]{1,18}$", word)}))


def _number(folder: str, *names: str) -> Optional[int]:
    """Return the number in the first of the files that holds one."""
    return next((n for name in names for n in _integers(text(folder, name))), None)


def fan_files(root: str) -> List[Tuple[str, str, str]]:
    """Return folder, name and value of each file that turns the fan up, in the order of writing."""
    pattern = os.path.join(glob.escape(root), "sys/class/hwmon/hwmon*")
    fans = [(fan, ("pwm1",)) for fan in glob.glob(pattern) if text(fan, "name") == "pwmfan"]
    jetpack_4 = (os.path.join(root, "sys/devices/pwm-fan"), ("temp_control", "target_pwm"))
    return [
        (folder, name, "0" if name == "temp_control" else "255")
        for folder, names in [jetpack_4, *fans]
        for name in names
        if os.path.exists(os.path.join(folder, name))
    ]


def not_put_back(root: str, stored: str) -> List[str]:
    """Return the clocks and cores that are not as jetson_clocks stored them, none where all are.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    stored : the file that `jetson_clocks --store` wrote, lines of path:value
    """
    changed = []
    with open(stored, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            path, _, value = line.strip().rpartition(":")
            name = os.path.basename(path)
            if name == "online" or name.endswith("min_freq"):
                now = text(root, path.lstrip("/"))
                if now and now != value:
                    changed.append(path)
    return changed


def not_roots_alone(path: str) -> str:
    """Return the first of a file and the folders above it that others can change, else nothing.

    A group may write folders, as Debian's `staff` may write /usr/local; anybody only sticky ones.
    """
    for place in [path] + [path[:n] or "/" for n, sign in enumerate(path) if sign == "/"]:
        status = os.stat(place)
        loose = 0o022 if place == path else 0 if status.st_mode & stat.S_ISVTX else 0o002
        if status.st_uid != 0 or status.st_mode & loose:
            return place
    return ""
