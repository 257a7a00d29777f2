#!/usr/bin/env python3
"""Stand-in for a board's jetson_clocks (any Python from 3.6).

epochwatt stand-in

It locks CPU, GPU and memory to the highest clock that the mode allows and switches idle states off;
`--store` and `--restore` keep `path:value` lines; `--fan` turns the fan up and stops its control.

Sources: docs/reference/sources.md.
"""

import glob
import os
import sys
from typing import Iterator, List

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../usr/lib/epochwatt-stand-in")
)
from board_files import CPU, NVFANCONTROL, BoardFiles, root_above  # type: ignore

USAGE = "jetson_clocks [--show] [--fan] [--store [file]] [--restore [file]]"


def idle_switches(board: BoardFiles) -> List[str]:
    """Return the files that switch the CPUs' idle states off."""
    paths = glob.glob(board.path(CPU + "cpu[0-9]*/cpuidle/state[0-9]/disable"))
    return sorted("/" + os.path.relpath(path, board.root) for path in paths)


def changed_files(board: BoardFiles) -> Iterator[str]:
    """Give every file that locking the clocks, or `--fan`, changes."""
    for cpu in board.cpus():
        yield "/{}cpu{}/online".format(CPU, cpu)
    for cpu in board.cpus():
        yield "/{}cpu{}/cpufreq/scaling_min_freq".format(CPU, cpu)
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
        print("File {} already exists. Can I overwrite it? Y/N:".format(path), flush=True)
        if sys.stdin is None or sys.stdin.readline().strip().lower() != "y":
            print("Error: file {} already exists!".format(path))
            return 1
    lines = ["{}:{}\n".format(name, board.text(name)) for name in changed_files(board)]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return 0


def restore(board: BoardFiles, path: str) -> int:
    """Put back what a file says."""
    if not os.path.exists(path):
        print("Error: {} file not found !".format(path))
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
        print("Fan: PWM={}".format(pwm))
    else:
        state = "active" if board.text(NVFANCONTROL) == "1" else "inactive"
        node = facts["fan"]["pwm"].split("/")[-2]
        print("FAN Dynamic Speed control={} {}_pwm1={}".format(state, node, pwm))


_CPU_FILES = ("governor", "min_freq", "max_freq", "cur_freq")
_CPU_LINE = "cpu{}: Online=1 Governor={} MinFreq={} MaxFreq={} CurrentFreq={} IdleStates: {idle}"


def _idle_states(board: BoardFiles, cpu: int) -> Iterator[str]:
    for number, name in enumerate(board.facts["idle_states"]):
        switch = "{}cpu{}/cpuidle/state{}/disable".format(CPU, cpu, number)
        yield "{}={}".format(name, 1 - board.number(switch))


def main(words: List[str]) -> int:
    """Do what the command line says; return the exit status."""
    board = BoardFiles(root_above(__file__, 2))
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
        print("Error: {}".format(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
