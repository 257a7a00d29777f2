"""Stand-in for a board's nvpmodel.

It does what reports say of the real one: a clock that is not in the table becomes the nearest
one without a word; the exit status is 255 when cores were switched off although all is done; a mode
whose TPC or FBP mask differs needs a reboot, for which it asks on its standard input; a file that
is not there or cannot be written gives three lines of error.

Sources: docs/reference/sources.md.
"""

import argparse
import errno
import glob
import os
import re
import sys
import uuid
from typing import NamedTuple

from epochwatt.board.device.board_files import Conf, Mode, parse_conf
from tests.fakeboard.tools.board_files import BoardFiles, nearest

STATUS = "var/lib/nvpmodel/status"
BOOT_ID = "proc/sys/kernel/random/boot_id"
GPU_IN_USE = "run/epochwatt-stand-in/gpu-in-use"  # its masks cannot change any more
BOOT_PENDING = "run/epochwatt-stand-in/reboot"
NO_LIMIT = 9223372036854775807
_NO_REQUEST = "optMask is 1, no request for power mode"


class RefusedError(Exception):
    """The request cannot be met; each line of the message is one that nvpmodel prints."""


def read_conf(path: str) -> Conf:
    """Return a configuration; raises RefusedError."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            conf = parse_conf(file.read())
        odd = [
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


class Write(NamedTuple):
    """A file that a mode sets."""

    param: str
    argument: str
    path: str
    value: str

    def into(self, board: BoardFiles) -> None:
        """Write it; raises RefusedError with the words that were recorded of the real one."""
        try:
            board.write(self.path, self.value)
        except OSError as error:
            raise self.refused("opening" if error.errno == errno.ENOENT else None, error) from None

    def refused(self, what: str | None, error: OSError) -> RefusedError:
        """Return the error of a file that cannot be written."""
        place = f"{what} {self.path}" if what else f"writing {self.value} to {self.path}"
        return RefusedError(
            f"Error {place}: {error.errno}\n"
            f"failed to write PARAM {self.param}: ARG {self.argument}: PATH: {self.path} "
            f"VAL: {self.value}\nfailed to set power mode!\n{_NO_REQUEST}"
        )


def resolved(board: BoardFiles, conf: Conf, mode_id: int) -> list[Write]:
    """Return what to write, in order, clocks as steps of their table.

    Raises RefusedError; nothing is written here.
    """
    mode = find_mode(conf, mode_id)
    if mode is None:
        raise RefusedError(f"request for bad power mode {mode_id}\ninvalid PM ID {mode_id}")
    writes: list[Write] = []
    bounds: dict[tuple[str, str], int] = {}
    for param, argument, value in mode.settings:
        path = _path(board, conf, param, argument) or ""
        if conf.params[param].type == "CLOCK":
            table = _path(board, conf, param, "FREQ_TABLE")
            bounds[param, argument] = _clock(board, table, path, value)
            value = str(bounds[param, argument])
        elif path.endswith("cpu0/online") and value == "0":
            raise RefusedError("CORE_0 cannot be switched off")
        writes.append(Write(param, argument, path, value))
    for param, argument in bounds:
        if argument == "MIN_FREQ" and bounds[param, argument] > bounds.get(
            (param, "MAX_FREQ"), NO_LIMIT
        ):
            raise RefusedError(f"{param}: MIN_FREQ is above MAX_FREQ")
    return writes


def _path(board: BoardFiles, conf: Conf, param: str, argument: str) -> str | None:
    """Return the file of an argument: since JetPack 5 that of `..._KNEXT`, where it has one."""
    paths = conf.params[param].paths
    newer = paths.get(argument + "_KNEXT") if board.facts["takes_knext"] else None
    path = newer or paths.get(argument)
    if path is not None and conf.params[param].type == "HWMON":
        folder, _, name = path.partition(" ")
        places = glob.glob(board.path(f"{folder}/hwmon*/{name}"))
        return "/" + os.path.relpath(places[0], board.root) if places else folder
    return path


def _clock(board: BoardFiles, table: str | None, path: str, value: str) -> int:
    """Return the nearest step of the table; a clock without one is taken as it is."""
    number = NO_LIMIT if value == "-1" else int(value)
    steps = board.facts["emc_hz"]
    if path.strip("/") == board.facts["emc_cap"]:
        if number == NO_LIMIT:
            return max(steps)  # as it reads on JetPack 6
        if number >= max(steps) and board.facts["emc_top_is_0"]:
            raise RefusedError(f"{path} cannot be {value}")
    if table is None:
        return number
    try:
        steps = [int(step) for step in board.text(table).split()]
    except OSError:  # the kind's steps are not all known, or the cores are off on a real kernel
        steps = board.facts["cpu_khz" if "/cpufreq/" in path else "gpu_hz"]
    return nearest(number, steps)


def apply(board: BoardFiles, conf: Conf, mode_id: int) -> int:
    """Make a mode's settings; return the exit status. Raises RefusedError."""
    writes = resolved(board, conf, mode_id)
    before = board.online()
    masks = [write for write in writes if write.path.endswith("_pg_mask")]
    if board.exists(GPU_IN_USE) and any(
        board.exists(mask.path) and board.text(mask.path) != mask.value for mask in masks
    ):
        _ask_for_reboot(mode_id)
        _remember(board, mode_id)
        with open(board.path(BOOT_PENDING), "w", encoding="utf-8"):
            return 0
    clocks = [write for write in writes if conf.params[write.param].type == "CLOCK"]
    for write in writes:
        if write not in clocks:
            write.into(board)
    online = board.online()
    for write in clocks:
        _write_clock(board, write, online)
    board.set_clocks()
    _remember(board, mode_id)
    return 255 if set(before) - set(online) else 0


def _write_clock(board: BoardFiles, write: Write, online: list[int]) -> None:
    core = re.search(r"/cpu(\d+)/cpufreq/", write.path)
    if core is not None:
        cluster = next(cpus for _, cpus in board.clusters() if int(core.group(1)) in cpus)
        if not set(cluster) & set(online):
            raise write.refused(None, OSError(errno.EBUSY, ""))
    write.into(board)
    if write.argument == "MAX_FREQ":  # the kernel lets no lower bound stand above
        lower = re.sub(r"max_freq$", "min_freq", write.path)
        if lower != write.path and board.exists(lower) and board.number(lower) > int(write.value):
            board.write(lower, write.value)


def _ask_for_reboot(mode_id: int) -> None:
    """Ask; raises RefusedError unless the answer is yes."""
    print("NVPM WARN: Golden image context is already created")
    print(f"NVPM WARN: Reboot required for changing to this power mode: {mode_id}")
    print("NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:", flush=True)
    answer = "" if sys.stdin is None else sys.stdin.readline()
    if answer.strip() not in ("YES", "yes"):
        raise RefusedError(_NO_REQUEST if answer else f"bad input!\n{_NO_REQUEST}")


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
        for line in str(error).splitlines():
            print(f"NVPM ERROR: {line}", file=sys.stderr)
        return 255
    return 0
