"""Stand-in for a board's jetson_clocks.

It locks CPU, GPU and memory to the highest clock that the mode allows and switches idle states off;
`--store` and `--restore` keep `path:value` lines; `--fan` turns the fan up and stops its control.

Sources: docs/reference/sources.md.
"""

import glob
import os
import sys
from collections.abc import Iterator

from tests.fakeboard.tools.board_files import CPU, NVFANCONTROL, BoardFiles

USAGE = "jetson_clocks [--fan] [--store [file]] [--restore [file]]"


def idle_switches(board: BoardFiles) -> list[str]:
    """Return the files that switch the CPUs' idle states off."""
    paths = glob.glob(board.path(CPU + "cpu[0-9]*/cpuidle/state[0-9]/disable"))
    return sorted("/" + os.path.relpath(path, board.root) for path in paths)


def changed_files(board: BoardFiles) -> Iterator[str]:
    """Give every file that locking the clocks, or `--fan`, changes."""
    for cpu in board.cpus():
        yield f"/{CPU}cpu{cpu}/online"
    for cpu in board.cpus():
        yield f"/{CPU}cpu{cpu}/cpufreq/scaling_min_freq"
    yield from idle_switches(board)
    yield "/{}/min_freq".format(board.facts["gpu"])
    yield "/{}/railgate_enable".format(board.facts["gpu_device"])
    yield "/" + board.emc.get("locked", board.emc["wanted"])
    fan = board.facts["fan"]
    yield "/" + fan["pwm"]
    yield "/" + (fan["control"] or NVFANCONTROL)


def store(board: BoardFiles, path: str) -> int:
    """Write what is set now into a file that must not be there yet."""
    if os.path.exists(path):
        print(f"File {path} already exists. Can I overwrite it? Y/N:", flush=True)
        if sys.stdin is None or sys.stdin.readline().strip().lower() != "y":
            print(f"Error: file {path} already exists!")
            return 1
    lines = [f"{name}:{board.text(name)}\n" for name in changed_files(board)]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return 0


def restore(board: BoardFiles, path: str) -> int:
    """Put back what a file says."""
    if not os.path.exists(path):
        print(f"Error: {path} file not found !")
        return 1
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, _, value = line.strip().rpartition(":")
            if board.exists(name):
                board.write(name, value)
    board.set_clocks()
    return 0


def lock(board: BoardFiles) -> None:
    """Lock all clocks to the highest that the mode allows."""
    online = board.online()
    for folder, cpus in board.clusters():
        if set(cpus) & set(online):
            board.write(folder + "scaling_min_freq", board.text(folder + "scaling_max_freq"))
    for path in idle_switches(board):
        board.write(path, 1)
    gpu = board.facts["gpu"]
    board.write(board.facts["gpu_device"] + "/railgate_enable", 0)
    board.write(gpu + "/min_freq", board.text(gpu + "/max_freq"))
    if "locked" in board.emc:
        board.write(board.emc["locked"], 1)
    board.write(board.emc["wanted"], board.emc_limit_hz())
    board.set_clocks()


def full_fan(board: BoardFiles) -> None:
    """Stop the fan's control and turn it up."""
    fan = board.facts["fan"]
    board.write(fan["control"] or NVFANCONTROL, 0)
    board.write(fan["pwm"], 255)


def main(root: str, words: list[str]) -> int:
    """Do what the command line says; return the exit status."""
    board = BoardFiles(root)
    file = words[1] if len(words) > 1 else os.path.expanduser("~/l4t_dfs.conf")
    try:
        if words[:1] == ["--store"]:
            return store(board, file)
        if words[:1] == ["--restore"]:
            return restore(board, file)
        if words in ([], ["--fan"]):
            lock(board)
            if words:
                full_fan(board)
        else:
            print(USAGE)
            return 1
    except OSError as error:
        print(f"Error: {error}")
        return 1
    return 0
