"""Stand-in for a board's jetson_clocks.

It locks CPU, GPU and memory to the highest clock that the mode allows and switches idle states off;
`--store` and `--restore` keep `path:value` lines; `--fan` turns the fan up and stops its control.

Sources: docs/reference/sources.md.
"""

import glob
import os
import sys
from collections.abc import Iterator

from epochwatt.fakeboard.tools.board_files import CPU, NVFANCONTROL, BoardFiles

USAGE = "jetson_clocks [--show] [--fan] [--store [file]] [--restore [file]]"


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


def show(board: BoardFiles) -> None:
    """Print the settings and clocks."""
    facts, online = board.facts, board.online()
    print("SOC family:{}  Machine:{}".format(facts["soc"], facts["model"]))
    print("Online CPUs: {}".format(board.text(CPU + "online")))
    for folder, cpus in board.clusters():
        values = [board.text(folder + "scaling_" + end) for end in _CPU_FILES]
        for cpu in cpus:
            if cpu in online:
                idle = " ".join(_idle_states(board, cpu))
                print(_CPU_LINE.format(cpu, *values, idle=idle))
    gpu = [board.text("{}/{}_freq".format(facts["gpu"], end)) for end in ("min", "max", "cur")]
    print("GPU MinFreq={} MaxFreq={} CurrentFreq={}".format(*gpu))
    emc = [board.text(board.emc[end]) for end in ("min", "max", "now")]
    locked = board.text(board.emc["locked"]) if "locked" in board.emc else 0
    print("EMC MinFreq={} MaxFreq={} CurrentFreq={} FreqOverride={}".format(*emc, locked))
    pwm = board.text(facts["fan"]["pwm"])
    if facts["fan"]["control"]:
        print(f"Fan: PWM={pwm}")
    else:
        state = "active" if board.text(NVFANCONTROL) == "1" else "inactive"
        node = facts["fan"]["pwm"].split("/")[-2]
        print(f"FAN Dynamic Speed control={state} {node}_pwm1={pwm}")


_CPU_FILES = ("governor", "min_freq", "max_freq", "cur_freq")
_CPU_LINE = "cpu{}: Online=1 Governor={} MinFreq={} MaxFreq={} CurrentFreq={} IdleStates: {idle}"


def _idle_states(board: BoardFiles, cpu: int) -> Iterator[str]:
    for number, name in enumerate(board.facts["idle_states"]):
        switch = f"{CPU}cpu{cpu}/cpuidle/state{number}/disable"
        yield f"{name}={1 - board.number(switch)}"


def main(root: str, words: list[str]) -> int:
    """Do what the command line says; return the exit status."""
    board = BoardFiles(root)
    file = words[1] if len(words) > 1 else os.path.expanduser("~/l4t_dfs.conf")
    try:
        if words[:1] == ["--show"]:
            show(board)
        elif words[:1] == ["--store"]:
            return store(board, file)
        elif words[:1] == ["--restore"]:
            return restore(board, file)
        elif words in ([], ["--fan"]):
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
