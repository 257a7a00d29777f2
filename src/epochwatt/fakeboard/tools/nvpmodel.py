#!/usr/bin/env python3
"""Stand-in for a board's nvpmodel (any Python from 3.6).

epochwatt stand-in

It does what reports say of the real one: a clock that is not in the table becomes the nearest
one without a word; the exit status is 255 when cores were switched off although all is done; a mode
whose TPC mask differs needs a reboot, for which it asks on its standard input.

Sources: docs/reference/sources.md.
"""

import argparse
import os
import re
import sys
import uuid
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../usr/lib/epochwatt-stand-in")
)
from board_files import BoardFiles, nearest, root_above  # type: ignore

STATUS = "var/lib/nvpmodel/status"
BOOT_ID = "proc/sys/kernel/random/boot_id"
GPU_IN_USE = "run/epochwatt-stand-in/gpu-in-use"  # its TPC mask cannot change any more
BOOT_PENDING = "run/epochwatt-stand-in/reboot"
NO_LIMIT = 9223372036854775807

_HEADER = re.compile(r"< (PARAM|POWER_MODEL|PM_CONFIG|FAN_CONFIG) ([^>]*)>\s*$")
_WORDS = {"PARAM": ("TYPE", "NAME"), "POWER_MODEL": ("ID", "NAME"), "PM_CONFIG": ("DEFAULT",)}


class RefusedError(Exception):
    """The request cannot be met; the message is what nvpmodel prints."""


class Conf:
    """A configuration: parameters (type, {argument: path}), modes (name, settings), default."""

    def __init__(self, text: str) -> None:
        self.params: Dict[str, Tuple[str, Dict[str, str]]] = {}
        self.modes: Dict[int, Tuple[str, List[Tuple[str, str, str]]]] = {}
        self.default = -1
        self._block: Any = None
        for line in text.splitlines():
            if line.startswith("<"):
                self._header(line)
            elif line.strip() and not line.startswith("#"):
                self._setting(line)
        if self.default not in self.modes:
            raise RefusedError("PM_CONFIG names no power model")

    def _header(self, line: str) -> None:
        match = _HEADER.match(line)
        if match is None:
            raise RefusedError("bad header: " + line)
        kind = match.group(1)
        words = dict(word.partition("=")[::2] for word in match.group(2).split())
        if kind == "FAN_CONFIG":
            return
        if any(word not in words for word in _WORDS[kind]):
            raise RefusedError("bad header: " + line)
        if kind == "PARAM":
            self.params[words["NAME"]] = (words["TYPE"], {})
            self._block = self.params[words["NAME"]][1]
        elif kind == "POWER_MODEL":
            self.modes[int(words["ID"])] = (words["NAME"], [])
            self._block = self.modes[int(words["ID"])][1]
        else:
            self.default = int(words["DEFAULT"])

    def _setting(self, line: str) -> None:
        words = line.split()
        if isinstance(self._block, dict) and len(words) == 2:
            self._block[words[0]] = words[1]
        elif isinstance(self._block, list) and len(words) == 3:
            if words[0] not in self.params or words[1] not in self.params[words[0]][1]:
                raise RefusedError("unknown parameter: " + line)
            self._block.append((words[0], words[1], words[2]))
        else:
            raise RefusedError("bad line: " + line)


def read_conf(path: str) -> Conf:
    """Return a configuration; raises RefusedError."""
    try:
        with open(path, encoding="utf-8") as file:
            return Conf(file.read())
    except (OSError, ValueError, RefusedError) as error:
        raise RefusedError("failed to parse file {}: {}".format(path, error)) from error


def resolved(board: BoardFiles, conf: Conf, mode_id: int) -> List[Tuple[str, str, str]]:
    """Return (path, kind, value) to write, in order, clocks as steps of their table.

    Kind is `file` or the name of a clock's argument. Raises RefusedError; nothing is written here.
    """
    if mode_id not in conf.modes:
        raise RefusedError("invalid PM ID {}".format(mode_id))
    writes, bounds = [], {}  # type: List[Tuple[str, str, str]], Dict[Tuple[str, str], int]
    for param, argument, value in conf.modes[mode_id][1]:
        kind, paths = conf.params[param]
        path = paths[argument]
        if kind == "FILE":
            if path.endswith("cpu0/online") and value == "0":
                raise RefusedError("CORE_0 cannot be switched off")
            writes.append((path, "file", value))
            continue
        step = _clock(board, paths.get("FREQ_TABLE"), path, value)
        bounds[param, argument] = step
        writes.append((path, argument, str(step)))
    for param, argument in bounds:
        if argument == "MIN_FREQ" and bounds[param, argument] > bounds.get(
            (param, "MAX_FREQ"), NO_LIMIT
        ):
            raise RefusedError("{}: MIN_FREQ is above MAX_FREQ".format(param))
    return writes


def _clock(board: BoardFiles, table: Optional[str], path: str, value: str) -> int:
    """Return the nearest step of the table; a clock without one is taken as it is."""
    try:
        number = int(value)
    except ValueError:
        raise RefusedError("not a clock: {}".format(value)) from None
    number = NO_LIMIT if number == -1 else number
    is_cap = path.strip("/") == board.facts["emc_cap"]
    is_top = is_cap and number >= max(board.facts["emc_hz"])
    if is_top and board.facts["emc_top_is_0"]:
        raise RefusedError("{} cannot be {}".format(path, value))
    if table is None:
        return number
    if not board.exists(table):  # the kind's steps are not all known: take the nearest that is
        return nearest(number, board.facts["cpu_khz" if "/cpufreq/" in path else "gpu_hz"])
    return nearest(number, [int(step) for step in board.text(table).split()])


def apply(board: BoardFiles, conf: Conf, mode_id: int) -> int:
    """Make a mode's settings; return the exit status. Raises RefusedError."""
    writes = resolved(board, conf, mode_id)
    before = board.online()
    mask = [(path, value) for path, _, value in writes if path.endswith("tpc_pg_mask")]
    if any(board.text(path) != value for path, value in mask) and board.exists(GPU_IN_USE):
        if not _may_reboot(mode_id):
            raise RefusedError("the power mode stays as it was")
        _remember(board, mode_id)
        with open(board.path(BOOT_PENDING), "w", encoding="utf-8"):
            return 0
    for path, kind, value in sorted(writes, key=lambda write: write[1] != "file"):
        if kind == "file":
            board.write(path, value)
    online = board.online()
    for path, kind, value in writes:
        if kind != "file":
            _write_clock(board, path, kind, value, online)
    board.set_clocks()
    _remember(board, mode_id)
    return 255 if set(before) - set(online) else 0


def _write_clock(board: BoardFiles, path: str, kind: str, value: str, online: List[int]) -> None:
    core = re.search(r"/cpu(\d+)/cpufreq/", path)
    if core is not None:
        cluster = next(cpus for _, cpus in board.clusters() if int(core.group(1)) in cpus)
        if not set(cluster) & set(online):
            raise RefusedError("Error writing {} to {}: 16".format(value, path))
    board.write(path, value)
    if kind == "MAX_FREQ":  # the kernel lets no lower bound stand above
        lower = re.sub(r"max_freq$", "min_freq", path)
        if lower != path and board.exists(lower) and board.number(lower) > int(value):
            board.write(lower, value)


def _may_reboot(mode_id: int) -> bool:
    print("NVPM WARN: Golden image context is already created")
    print("NVPM WARN: Reboot required for changing to this power mode: {}".format(mode_id))
    print("NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:", flush=True)
    return sys.stdin is not None and sys.stdin.readline().strip() in ("YES", "yes")


def _remember(board: BoardFiles, mode_id: int) -> None:
    board.write(STATUS, "pmode:{:04d}".format(mode_id))


def stored_id(board: BoardFiles) -> int:
    """Return the id of the mode that was set last."""
    return int(board.text(STATUS).partition(":")[2])


def boot(board: BoardFiles, conf: Conf) -> int:
    """Make the remembered mode (the default when it is unknown), as at start-up; a new boot id."""
    if board.exists(GPU_IN_USE):
        os.remove(board.path(GPU_IN_USE))
    mode_id = stored_id(board)
    status = apply(board, conf, mode_id if mode_id in conf.modes else conf.default)
    with open(board.path(GPU_IN_USE), "w", encoding="utf-8"):
        pass
    board.write(BOOT_ID, uuid.uuid4())
    return status


def query(board: BoardFiles, conf: Conf) -> None:
    """Print name and id of the mode; raises RefusedError where the configuration has none."""
    mode_id = stored_id(board)
    if mode_id not in conf.modes:
        raise RefusedError("invalid PM ID {} in /{}".format(mode_id, STATUS))
    print("NV Fan Mode:quiet")
    print("NV Power Mode: {}".format(conf.modes[mode_id][0]))
    print(mode_id)


def show(conf: Conf, path: str) -> None:
    """Print parameters and modes in the form of `-p --verbose`."""
    say = "NVPM VERB: {}".format
    print(say("Config file: " + path))
    print(say("parsing done for " + path))
    default = "PM_CONFIG: DEFAULT={}({})".format(conf.modes[conf.default][0], conf.default)
    print(say(default))
    for name, (kind, paths) in conf.params.items():
        print(say("PARAM TYPE={} NAME={}".format(kind, name)))
        for argument, target in paths.items():
            print(say("{} {}".format(argument, target)))
    for mode_id, (name, settings) in sorted(conf.modes.items()):
        print(say(""))
        print(say("POWER_MODEL: ID={} NAME={}".format(mode_id, name)))
        for param, argument, value in settings:
            shown = NO_LIMIT if value == "-1" else value
            print(say("{} {} {}".format(param, argument, shown)))


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="nvpmodel")
    parser.add_argument("-q", "--query", action="store_true")
    parser.add_argument("-p", "--parse", action="store_true")
    parser.add_argument("-m", "--mode", type=int)
    parser.add_argument("-f", "--file")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--boot", action="store_true", help="stand-in only: what start-up does")
    words = parser.parse_args()
    root = root_above(__file__, 2)
    board = BoardFiles(root)
    path = words.file or os.path.join(root, "etc/nvpmodel.conf")
    try:
        conf = read_conf(path)
        if words.boot:
            return boot(board, conf)
        if words.mode is not None:
            return apply(board, conf, words.mode)
        if words.parse:
            show(conf, path)
        elif words.query:
            query(board, conf)
        else:
            parser.print_usage()
    except (RefusedError, OSError) as error:
        print("NVPM ERROR: {}".format(error), file=sys.stderr)
        return 255
    return 0


if __name__ == "__main__":
    sys.exit(main())
