"""Stand-in for a board's nvpmodel.

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

from epochwatt.device.board_files import Conf, Mode, parse_conf
from epochwatt.fakeboard.tools.board_files import BoardFiles, nearest

STATUS = "var/lib/nvpmodel/status"
BOOT_ID = "proc/sys/kernel/random/boot_id"
GPU_IN_USE = "run/epochwatt-stand-in/gpu-in-use"  # its TPC mask cannot change any more
BOOT_PENDING = "run/epochwatt-stand-in/reboot"
NO_LIMIT = 9223372036854775807

# as strict as the real one: header, setting, comment or nothing
_LINE = re.compile(r"(< (PARAM|POWER_MODEL|PM_CONFIG|FAN_CONFIG) [^<>]*>|\S+ \S+( \S+)?|#.*|)\s*$")


class RefusedError(Exception):
    """The request cannot be met; the message is what nvpmodel prints."""


def read_conf(path: str) -> Conf:
    """Return a configuration; raises RefusedError."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        conf = parse_conf(text)
        odd = [line for line in text.splitlines() if not _LINE.match(line)]
        odd += [
            " ".join(row)
            for mode in conf.modes
            for row in mode.settings
            if row[0] not in conf.params or row[1] not in conf.params[row[0]].paths
        ]
        if odd:
            raise ValueError("bad line: " + odd[0])
        if find_mode(conf, conf.default_id) is None:
            raise ValueError("PM_CONFIG names no power model")
    except (OSError, ValueError) as error:
        raise RefusedError(f"failed to parse file {path}: {error}") from error
    return conf


def find_mode(conf: Conf, mode_id: int | None) -> Mode | None:
    """Return the mode of an id; None: there is none."""
    return next((mode for mode in conf.modes if mode.id == mode_id), None)


def resolved(board: BoardFiles, conf: Conf, mode_id: int) -> list[tuple[str, str, str]]:
    """Return (path, kind, value) to write, in order, clocks as steps of their table.

    Kind is `file` or the name of a clock's argument. Raises RefusedError; nothing is written here.
    """
    mode = find_mode(conf, mode_id)
    if mode is None:
        raise RefusedError(f"invalid PM ID {mode_id}")
    writes: list[tuple[str, str, str]] = []
    bounds: dict[tuple[str, str], int] = {}
    for param, argument, value in mode.settings:
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
            raise RefusedError(f"{param}: MIN_FREQ is above MAX_FREQ")
    return writes


def _clock(board: BoardFiles, table: str | None, path: str, value: str) -> int:
    """Return the nearest step of the table; a clock without one is taken as it is."""
    number = NO_LIMIT if value == "-1" else int(value)
    is_cap = path.strip("/") == board.facts["emc_cap"]
    is_top = is_cap and number >= max(board.facts["emc_hz"])
    if is_top and board.facts["emc_top_is_0"]:
        raise RefusedError(f"{path} cannot be {value}")
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


def _write_clock(board: BoardFiles, path: str, kind: str, value: str, online: list[int]) -> None:
    core = re.search(r"/cpu(\d+)/cpufreq/", path)
    if core is not None:
        cluster = next(cpus for _, cpus in board.clusters() if int(core.group(1)) in cpus)
        if not set(cluster) & set(online):
            raise RefusedError(f"Error writing {value} to {path}: 16")
    board.write(path, value)
    if kind == "MAX_FREQ":  # the kernel lets no lower bound stand above
        lower = re.sub(r"max_freq$", "min_freq", path)
        if lower != path and board.exists(lower) and board.number(lower) > int(value):
            board.write(lower, value)


def _may_reboot(mode_id: int) -> bool:
    print("NVPM WARN: Golden image context is already created")
    print(f"NVPM WARN: Reboot required for changing to this power mode: {mode_id}")
    print("NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:", flush=True)
    return sys.stdin is not None and sys.stdin.readline().strip() in ("YES", "yes")


def _remember(board: BoardFiles, mode_id: int) -> None:
    board.write(STATUS, f"pmode:{mode_id:04d}")


def stored_id(board: BoardFiles) -> int:
    """Return the id of the mode that was set last."""
    return int(board.text(STATUS).partition(":")[2])


def boot(board: BoardFiles, conf: Conf) -> int:
    """Make the remembered mode (the default when it is unknown), as at start-up; a new boot id."""
    if board.exists(GPU_IN_USE):
        os.remove(board.path(GPU_IN_USE))
    mode_id = stored_id(board)
    mode = find_mode(conf, mode_id) or find_mode(conf, conf.default_id)
    assert mode is not None  # `read_conf` has looked
    status = apply(board, conf, mode.id)
    with open(board.path(GPU_IN_USE), "w", encoding="utf-8"):
        pass
    board.write(BOOT_ID, uuid.uuid4())
    return status


def query(board: BoardFiles, conf: Conf) -> None:
    """Print name and id of the mode; raises RefusedError where the configuration has none."""
    mode_id = stored_id(board)
    mode = find_mode(conf, mode_id)
    if mode is None:
        raise RefusedError(f"invalid PM ID {mode_id} in /{STATUS}")
    print("NV Fan Mode:quiet")
    print(f"NV Power Mode: {mode.name}")
    print(mode_id)


def main(root: str, arguments: list[str]) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="nvpmodel")
    parser.add_argument("-q", "--query", action="store_true")
    parser.add_argument("-m", "--mode", type=int)
    parser.add_argument("-f", "--file")
    parser.add_argument("--boot", action="store_true", help="stand-in only: what start-up does")
    words = parser.parse_args(arguments)
    board = BoardFiles(root)
    path = words.file or os.path.join(root, "etc/nvpmodel.conf")
    try:
        conf = read_conf(path)
        if words.boot:
            return boot(board, conf)
        if words.mode is not None:
            return apply(board, conf, words.mode)
        if words.query:
            query(board, conf)
        else:
            parser.print_usage()
    except (RefusedError, OSError) as error:
        print(f"NVPM ERROR: {error}", file=sys.stderr)
        return 255
    return 0
