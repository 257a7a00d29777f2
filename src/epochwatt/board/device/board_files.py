"""Read a board's files: kind, clocks, power modes, fan (board side: Python 3.6 grammar).

The board code and the root helper read through this module, so beside the standard library it
imports only the table of kinds. All functions take the folder that holds the board's files: `/`, or
the folder of a fake board. Sources: docs/explanation/root-helper.md.
"""

import glob
import os
import re
import stat
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from epochwatt.board.device.kinds import EMC_CLOCK_FILES, KINDS

NVPMODEL_CONF = "etc/nvpmodel.conf"

_Steps = Tuple[int, ...]
# `paths`: of each argument; of TYPE=HWMON the folder that holds hwmon*, a blank, the file's name
Param = NamedTuple("Param", [("type", str), ("paths", Dict[str, str])])
Mode = NamedTuple("Mode", [("id", int), ("name", str), ("settings", List[Tuple[str, str, str]])])
Conf = NamedTuple(
    "Conf",
    [
        ("params", Dict[str, Param]),
        ("modes", List[Mode]),
        ("default_id", Optional[int]),
        ("text", str),  # word by word
    ],
)
Tables = NamedTuple("Tables", [("cpu_khz", _Steps), ("gpu_hz", _Steps), ("emc_hz", _Steps)])

_GPU_FOLDERS = (
    "class/devfreq/*",
    "devices/*/devfreq/*",  # JetPack 4 and 5
    "devices/*/devfreq_dev",  # the newer kernel of JetPack 5
    "devices/platform/*/devfreq/*",  # JetPack 6
    "devices/platform/*/*/devfreq/*",
    "devices/platform/*/devfreq_dev",
)
_GPU_NAMES = {r"\.gp10b"} | {kind.gpu_name for kind in KINDS.values()}  # the first: Jetson TX2
_GPU_NAME = re.compile("({})(/devfreq_dev)?$".format("|".join(sorted(_GPU_NAMES))))


def board_kind(root: str) -> str:
    """Return the kind of board, `unknown` for a Jetson we do not know, empty for any other."""
    tree = os.path.join(root, "proc/device-tree")
    compatible, model = (text(tree, name).lower() for name in ("compatible", "model"))
    if "nvidia,tegra" not in compatible and "jetson" not in compatible + model:
        return ""
    # a part number decides: carrier boards of others may name another module as their model
    description = compatible if re.search(r"p[0-9]{4}", compatible) else compatible + " " + model
    for name, kind in KINDS.items():
        if re.search(kind.pattern, description):
            return name
    return "unknown"


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
    tables = (integers(text(cpu_folder(root, cpu), name)) for cpu in cpus(root))
    return next((table for table in tables if table), ())


def gpu_hz(root: str) -> Tuple[int, ...]:
    """Return the GPU's clocks in Hz, ascending; empty where the board does not list them."""
    folder = find_gpu(root)
    return integers(text(folder, "available_frequencies")) if folder else ()


def emc_hz(root: str) -> Tuple[int, ...]:
    """Return the memory's clocks in Hz, ascending, as `kinds` has them; empty: not known."""
    kind = KINDS.get(board_kind(root))
    return () if kind is None or "emc" in kind.seen_only else kind.emc_hz


def tables(root: str) -> Tables:
    """Return the clocks that the board can be set to."""
    return Tables(cpu_khz(root), gpu_hz(root), emc_hz(root))


def find_gpu(root: str) -> Optional[str]:
    """Return the GPU's devfreq folder (`available_frequencies`, `cur_freq`, ... in Hz), or None.

    The board's own nvpmodel.conf names it; without that it is looked for in the places known.
    """
    candidates = [os.path.dirname(_conf_file(root, _conf_or_none(root), "GPU", "MAX_FREQ"))]
    for pattern in _GPU_FOLDERS:
        folders = sorted(glob.glob(os.path.join(glob.escape(root), "sys", pattern)))
        candidates += [folder for folder in folders if _GPU_NAME.search(folder)]
    for folder in candidates:
        if any(os.path.exists(folder + name) for name in ("/available_frequencies", "/cur_freq")):
            return folder
    return None


def read_clocks(root: str) -> Dict[str, Any]:
    """Return the clocks as they are now; None for each that cannot be read.

    `cores_online` (list); `cpu_khz` (measured, where root reads it), `cpu_shown_khz` and
    `cpu_shown_after_khz` (by cpufreq, before and after that), `cpu_min_khz`, `cpu_max_khz` (CPU
    online as str -> kHz); `gpu_hz`, `gpu_min_hz`, `gpu_max_hz`; `emc_hz` (on many boards only root
    reads it) and `emc_cap_hz` (the mode's; 0 = none).
    """
    cores, gpu = online(root), find_gpu(root) or ""
    clocks: Dict[str, Any] = {"cores_online": list(cores)}
    for key, names in (
        ("shown_", ["scaling_cur"]),
        ("", ["cpuinfo_cur", "scaling_cur"]),
        ("shown_after_", ["scaling_cur"]),
        ("min_", ["scaling_min"]),
        ("max_", ["scaling_max"]),
    ):
        files = ["cpufreq/{}_freq".format(name) for name in names]
        clocks["cpu_{}khz".format(key)] = {
            str(c): number(cpu_folder(root, c), *files) for c in cores
        }
    for key, name in (("", "cur"), ("min_", "min"), ("max_", "max")):
        clocks["gpu_{}hz".format(key)] = number(gpu, name + "_freq")
    clocks["emc_hz"] = number(root, *EMC_CLOCK_FILES)
    cap = _conf_file(root, _conf_or_none(root), "EMC", "MAX_FREQ")
    clocks["emc_cap_hz"] = number(*os.path.split(cap)) if cap else None
    return clocks


_SECTIONS = {
    "PARAM": ("TYPE", "NAME"),
    "POWER_MODEL": ("ID", "NAME"),
    "PM_CONFIG": ("DEFAULT",),
    "FAN_CONFIG": ("DEFAULT",),
}
_HEADER = re.compile(r"< *([A-Z_]+)((?: [A-Z_]+=[^ <>]+)+) *>$")


def parse_conf(text: str) -> Conf:
    """Parse an nvpmodel configuration; raises ValueError with the first line that is no part of it.

    `< PARAM TYPE=t NAME=n >` opens a list of `ARG path` (TYPE=HWMON: `ARG folder name`),
    `< POWER_MODEL ID=i NAME=n >` one of `PARAM ARG value`, `< PM_CONFIG DEFAULT=i >` names the mode
    of a first start. `#` begins a comment.
    """
    conf = Conf({}, [], None, text)
    opened: Any = None  # the Param or Mode whose lines follow
    for number, line in enumerate(text.split("\n"), 1):
        words = _without_comment(line)
        try:
            if words[:1] and words[0][0] == "<":
                section, keys = _parse_header(words)
                opened = None
                if section == "PARAM":
                    opened = conf.params[keys["NAME"]] = Param(keys["TYPE"], {})
                elif section == "POWER_MODEL":
                    opened = Mode(int(keys["ID"]), keys["NAME"], [])
                    conf.modes.append(opened)
                elif section == "PM_CONFIG":
                    conf = conf._replace(default_id=int(keys["DEFAULT"]))
            elif words and isinstance(opened, Param):
                opened.paths[words[0]] = _argument_path(opened.type, words)
            elif words and isinstance(opened, Mode):
                opened.settings.append(_parse_setting(words))
            elif words:
                raise ValueError("it belongs to no parameter and to no power mode")
        except ValueError as error:
            raise ValueError("line {}, `{}`: {}".format(number, line.strip(), error)) from error
    if not conf.modes:
        raise ValueError("the nvpmodel configuration holds no power mode")
    return conf


def _without_comment(line: str) -> List[str]:
    return line.partition("#")[0].split()


def _parse_header(words: List[str]) -> Tuple[str, Dict[str, str]]:
    """Parse the words of a section's first line to its name and keys; raises ValueError.

    NVIDIA's own files have `<PARAM` as well as `< PARAM`.
    """
    match = _HEADER.match(" ".join(words))
    name = match.group(1) if match else ""
    keys = dict(word.split("=", 1) for word in match.group(2).split()) if match else {}
    if name not in _SECTIONS or not set(_SECTIONS[name]) <= set(keys):
        headers = ("< {} {}=... >".format(n, "=... ".join(k)) for n, k in _SECTIONS.items())
        raise ValueError("a section begins with one of {}".format(", ".join(headers)))
    return name, keys


def _argument_path(kind: str, words: List[str]) -> str:
    """Return the path behind an argument of a parameter of that type, with HWMON's file name.

    Raises ValueError: it is no path. Of another type any words are returned.
    """
    parts = {"FILE": ["a path"], "CLOCK": ["a path"], "HWMON": ["a path", "a name"]}.get(kind)
    if parts and (len(words) != 1 + len(parts) or words[1][0] != "/"):
        raise ValueError("of TYPE={} is an argument with {}".format(kind, " and ".join(parts)))
    return " ".join(words[1:])


def _parse_setting(words: List[str]) -> Tuple[str, str, str]:
    """Parse a row of a mode: parameter, argument, value; ValueError: a value is no number."""
    if len(words) != 3:
        raise ValueError("a setting of a power mode has three words")
    name, arg, value = words
    is_clock = arg[:4] in ("MAX_", "MIN_")
    number = r"-?[0-9]{1,19}$" if is_clock else r"(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,18})$"
    if (is_clock or _is_mask(arg)) and not re.match(number, value):
        raise ValueError("{} {} of a power mode is {}, no whole number".format(name, arg, value))
    return name, arg, value


def _is_mask(arg: str) -> bool:
    """Return whether an argument gates parts of the GPU off: TPC_PG_MASK, FBP_PG_MASK, ..."""
    return arg.endswith("MASK")


def strongest(conf: Conf) -> Mode:
    """Return the mode with the fewest GPU parts gated off, then most cores, memory, GPU, CPU."""

    def strength(mode: Mode) -> Tuple[float, ...]:
        def limit(*params: str) -> float:
            """Return the highest limit of some clocks; infinity: there is none (0 or below)."""
            limits = [
                int(value)
                for name, arg, value in mode.settings
                if name in params and arg[:3] == "MAX"
            ]
            return max([value if value > 0 else float("inf") for value in limits or [0]])

        n_gated = sum(bin(value).count("1") for value in masks(mode).values())
        return -n_gated, _n_cores(mode), limit("EMC"), limit("GPU"), limit(*_clusters(conf))

    return max(conf.modes, key=strength)


def custom_conf(
    conf: Conf, cores: int, cpu_khz: int, gpu_hz: int, emc_hz: int, tables: Tables
) -> str:
    """Return the text of an nvpmodel configuration with one mode of these upper limits.

    It is made of the strongest mode of `conf` and keeps that mode's id (so that `nvpmodel -q` and
    the board's next start know it), its masks and all its other settings, and all else of `conf`
    word by word. Cores count from the first; 0 leaves a limit as that mode has it. A cluster that
    is offline gets no clocks. The highest memory clock of `tables` is written as that mode writes
    `no cap`, else as 0. Raises ValueError for cores or clocks that the board lacks.
    """
    base, clusters = strongest(conf), _clusters(conf)
    n_present = sum(1 for row in base.settings if row[0] == "CPU_ONLINE")
    limits = dict.fromkeys(clusters, (cpu_khz, tables.cpu_khz))  # parameter -> limit and steps
    limits.update(GPU=(gpu_hz, tables.gpu_hz), EMC=(emc_hz, tables.emc_hz))
    limits = {name: limit for name, limit in limits.items() if limit[0]}
    allowed = dict(limits, cores=(cores, range(n_present + 1)))
    for name, (number, steps) in sorted(allowed.items()):
        if number not in steps:
            raise ValueError("{}: {} is none of {}".format(name, number, list(steps)))
        if name in limits and name not in conf.params:
            raise ValueError("the nvpmodel of this board cannot limit {}".format(name))
    cores = cores or _n_cores(base)
    unset = set(limits) - {name for name, arg, _ in base.settings if arg == "MAX_FREQ"}
    rows = []
    for name, arg, value in base.settings + [(name, "MAX_FREQ", "") for name in sorted(unset)]:
        if clusters.get(name, 0) >= cores:  # the cluster's first CPU is offline
            continue
        limit, steps = limits.get(name, (0, ()))
        if name == "CPU_ONLINE":
            value = str(int(int(arg.rpartition("_")[2]) < cores))
        elif limit and arg == "MAX_FREQ" and name == "EMC" and limit == steps[-1]:
            value = value if value in ("0", "-1") else "0"  # no cap
        elif limit and arg == "MAX_FREQ":
            value = str(limit)
        elif limit and arg == "MIN_FREQ" and (int(value) > limit or value == "-1"):  # -1: the top
            value = str(steps[0])
        rows.append((name, arg, value))
    return _with_one_mode(conf, Mode(base.id, "EPOCHWATT", rows))


def _with_one_mode(conf: Conf, mode: Mode) -> str:
    """Return the text of a configuration with `mode` in place of its modes, else word by word."""
    lines, section, new_lines = [], "", _mode_lines(mode)
    default = "DEFAULT={}".format(mode.id)
    for line in conf.text.split("\n"):
        words = _without_comment(line)
        if words[:1] and words[0][0] == "<":
            section = _parse_header(words)[0]
            if section == "PM_CONFIG":
                line = re.sub(r"DEFAULT=[^\s>]+", default, line)
        if section != "POWER_MODEL" or not words:
            lines.append(line)
        else:  # in place of the first line of a mode
            lines, new_lines = lines + new_lines, []
    if conf.default_id is None:  # the section is mandatory
        lines.append("< PM_CONFIG {} >".format(default))
    return "\n".join(lines)


def _mode_lines(mode: Mode) -> List[str]:
    header = "< POWER_MODEL ID={} NAME={} >".format(mode.id, mode.name)
    return [header] + [" ".join(row) for row in mode.settings]


def conf_text(params: Dict[str, Param], modes: List[Mode], default_id: Optional[int]) -> str:
    """Return a configuration in the grammar that `parse_conf` reads."""
    lines = []
    for name, param in params.items():
        lines.append("< PARAM TYPE={} NAME={} >".format(param.type, name))
        lines.extend(" ".join(pair) for pair in param.paths.items())
    for mode in modes:
        lines.extend(_mode_lines(mode))
    if default_id is not None:
        lines.append("< PM_CONFIG DEFAULT={} >".format(default_id))
    return "\n".join(lines + [""])


def _clusters(conf: Conf) -> Dict[str, int]:
    """Return the first CPU of each cluster by the name of the cluster's clocks."""
    paths = ((name, " ".join(param.paths.values())) for name, param in conf.params.items())
    matches = ((name, re.search(r"/cpu([0-9]+)/cpufreq/", path)) for name, path in paths)
    return {name: int(match.group(1)) for name, match in matches if match}


def _n_cores(mode: Mode) -> int:
    return sum(1 for name, _, value in mode.settings if name == "CPU_ONLINE" and value != "0")


_COMPARED_MASKS = ("TPC_PG_MASK", "FBP_PG_MASK")


def masks(mode: Mode) -> Dict[Tuple[str, str], int]:
    """Return the masks of the GPU's parts that a mode gates off, by parameter and argument."""
    return {(name, arg): int(value, 0) for name, arg, value in mode.settings if _is_mask(arg)}


def tpc_mask(mode: Mode) -> Optional[int]:
    """Return the mask of the TPCs that a mode gates off; None: it has none."""
    return next((mask for (_, arg), mask in masks(mode).items() if arg == "TPC_PG_MASK"), None)


def other_mask(root: str, mode: Mode) -> str:
    """Return the first mask of a mode that the GPU does not run with, in words; empty: none.

    Masks change only when the board starts. One that cannot be read is not compared, nor is Thor's,
    which nvpmodel keeps outside /sys: it asks by itself.
    """
    conf = board_conf(root)
    for (name, arg), wanted in masks(mode).items():
        path = _conf_file(root, conf, name, arg) if arg in _COMPARED_MASKS else ""
        running = text(*os.path.split(path)) if path else ""
        is_hex = re.match(r"0x[0-9a-fA-F]+$", running)
        if (is_hex or running.isdigit()) and int(running, 16 if is_hex else 10) != wanted:
            what = arg.partition("_")[0]
            return "the GPU runs with {} mask {}, the mode has {}".format(what, running, wanted)
    return ""


def gpu_share(conf: Conf, mode: Mode, kind: str) -> Optional[float]:
    """Return the share of the GPU (of its TPCs) that a mode leaves on, of the strongest mode's.

    None: not known.
    """
    n_tpcs = KINDS[kind].tpcs if kind in KINDS else None
    releases = KINDS[kind].releases if kind in KINDS else ()
    gates_parts = any(stock.masks for release in releases for stock in release.modes)
    if n_tpcs is None and not masks(mode) and gates_parts:
        return None  # the mask has a name that we do not know
    mask, strongest_mask = tpc_mask(mode), tpc_mask(strongest(conf))
    if n_tpcs is not None and mask is not None and strongest_mask is not None:
        n_on = n_tpcs - bin(mask).count("1")
        n_strongest = n_tpcs - bin(strongest_mask).count("1")
        return n_on / n_strongest if 0 < n_on <= n_strongest else None
    return 1.0 if masks(mode) == masks(strongest(conf)) else None


def board_conf(root: str) -> Conf:
    """Return the board's own modes; raises ValueError."""
    path = os.path.join(root, NVPMODEL_CONF)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return parse_conf(handle.read(1 << 20))
    except OSError as error:
        raise ValueError("it cannot be read: {}".format(error.strerror)) from error


def _conf_or_none(root: str) -> Optional[Conf]:
    try:
        return board_conf(root)
    except ValueError:
        return None


def _conf_file(root: str, conf: Optional[Conf], param: str, arg: str) -> str:
    """Return the path, below `root`, of a parameter's file; empty: none that `conf` names exists.

    Since JetPack 5, nvpmodel takes the path of `ARG_KNEXT` before that of `ARG`. A path outside
    /sys is not followed, because the root helper reads these files, too.
    """
    paths = conf.params[param].paths if conf is not None and param in conf.params else {}
    for name in (arg + "_KNEXT", arg):
        path = os.path.normpath(paths.get(name, ""))
        absolute = os.path.join(root, path.lstrip("/"))
        if path.startswith("/sys/") and os.path.exists(absolute):
            return absolute
    return ""


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
            # BOARD: a thermal zone without power answers EAGAIN, of which Python makes None
            return (handle.read(65536) or b"").decode("utf-8", "replace").strip(" \n\0")
    except OSError:
        return ""


def integers(text: str) -> Tuple[int, ...]:
    """Return the whole numbers among the words of a text, ascending, each once."""
    return tuple(sorted({int(word) for word in text.split() if re.match(r"[0-9]{1,19}$", word)}))


def number(folder: str, *names: str) -> Optional[int]:
    """Return the number in the first of the files that holds one."""
    return next((n for name in names for n in integers(text(folder, name))), None)


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
    """Return the files of clocks and cores whose values differ from those that were stored.

    `stored` is the file that `jetson_clocks --store` wrote, lines of path:value.
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


def first_not_root_only(path: str) -> str:
    """Return the first of a file and the folders above it that not only root can change.

    Empty: there is none. A group may write folders, as Debian's `staff` may write /usr/local;
    anybody only sticky ones.
    """
    folders = [path[:n] or "/" for n, character in enumerate(path) if character == "/"]
    for checked in [path] + folders:
        status = os.stat(checked)
        forbidden = 0o022 if checked == path else 0o002
        is_sticky_folder = checked != path and status.st_mode & stat.S_ISVTX
        if status.st_uid != 0 or (status.st_mode & forbidden and not is_sticky_folder):
            return checked
    return ""
