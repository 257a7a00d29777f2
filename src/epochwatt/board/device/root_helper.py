"""Set a board's clocks by fixed verbs, as root (board side: Python 3.6 grammar).

`make setup-jetson` packs this module, `board_files.py`, `kinds.py` and its table into one file that
root owns, /usr/local/sbin/epochwatt-helper (`helper_file.py`); nothing else of epochwatt runs as
root. It takes no path from its caller (its root is where it is installed, so a fake board holds a
separate one) and checks each number against the board's own tables. It prints one line of JSON.
Exit status: 0 done, 2 refused and nothing changed, 3 failed, 4 the board has to be restarted first.
For what each verb may do and why see docs/explanation/root-helper.md.
"""

import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Tuple

from epochwatt.board.device import board_files
from epochwatt.board.device.board_files import NVPMODEL_CONF, Mode

VERSION = "4"  # of what it holds: raise it when the tables or verbs in it change
INSTALLED = "usr/local/sbin/epochwatt-helper"
NVPMODEL, JETSON_CLOCKS = "usr/sbin/nvpmodel", "usr/bin/jetson_clocks"
FOLDER = "var/lib/epochwatt"  # what was set before: the state, the clocks, and the mode of our own
STATE, PINS, CONF = "state.json", "l4t_dfs.conf", "nvpmodel.conf"
REFUSED, FAILED, REBOOT = 2, 3, 4
PATIENCE_S = 60  # for one tool, and for another helper to end

Answer = Dict[str, Any]  # what a verb prints, or what was set before, as JSON
_STATE = {"boot_id": str, "mode": int, "pinned": bool}
_STATE.update({"fan": dict, "fan_service": bool, "fan_is_max": bool})
_USAGE = (
    "status | named-mode ID | custom-mode CORES CPU_KHZ GPU_HZ EMC_HZ | pin-clocks | fan-max | "
    "restore | drop-caches | read-clocks"
)
_REBOOT = "{}. By hand: `sudo nvpmodel -m {}`, and its question answered with yes"


# -- the helper's own folder -----------------------------------------------------------------------
class HelperError(Exception):
    """Why a verb ends early: an exit status and a message."""


def enter(root: str) -> None:
    """Make the helper's folder the working directory and lock it.

    Raises HelperError: others may write it, or another helper has held the lock for a minute.
    """
    path = os.path.join(root, FOLDER)
    os.makedirs(path, 0o711, exist_ok=True)  # nobody else can open it, and so hold its lock
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise HelperError(REFUSED, "{} is not ours alone: look into it and remove it".format(path))
    os.fchdir(folder)
    os.set_inheritable(folder, True)  # a tool that outlives us goes on holding the lock
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise HelperError(REFUSED, "another helper has been at work for a minute") from None
            time.sleep(0.05)


def keep(name: str, content: str) -> None:
    """Write a file of the folder, whole or not at all."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    new = os.open(name + ".new", flags, 0o600)
    with os.fdopen(new, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    os.rename(name + ".new", name)


def stored() -> Answer:
    """Read what was set before; empty: nothing is to be put back.

    Raises HelperError: the file is damaged.
    """
    try:
        with os.fdopen(os.open(STATE, os.O_RDONLY | os.O_NOFOLLOW)) as handle:
            state = json.loads(handle.read(65536))
        if type(state) is not dict or {key: type(state[key]) for key in state} != _STATE:
            raise ValueError("keys or types")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        why = "{}/{} is not as this helper writes it ({}): set the mode by hand and remove it"
        raise HelperError(REFUSED, why.format(FOLDER, STATE, error)) from error
    return dict(state)


def store(state: Answer, **changes: bool) -> Answer:
    """Keep what was set before, with changes; return it."""
    state = dict(state, **changes)
    keep(STATE, json.dumps(state))
    return state


def forget() -> None:
    """Remove what was set before: it is put back."""
    for name in (STATE, PINS, CONF):
        if os.path.lexists(name):
            os.unlink(name)


def remember(root: str) -> Tuple[Answer, bool]:
    """Return what was set before the first change, and whether it was stored just now.

    The first time mode, clocks and fan are stored. Raises HelperError: what is stored is of an
    earlier boot, or it cannot be stored.
    """
    state = stored()
    if state:
        if state["boot_id"] != board_files.boot_id(root):
            raise HelperError(REFUSED, "settings of before the board's start wait for `restore`")
        return state, False
    mode = nvpmodel(root)["id"]
    if mode not in [known.id for known in board_files.board_conf(root).modes]:
        raise HelperError(REFUSED, "nvpmodel -q names no mode; set one: sudo nvpmodel -m ID")
    forget()  # jetson_clocks asks a question before it overwrites a file
    output = run(root, JETSON_CLOCKS, "--store", os.path.join(root, FOLDER, PINS))
    if not os.path.exists(PINS) or not os.path.getsize(PINS):
        raise HelperError(FAILED, "jetson_clocks --store wrote no file: " + one_line(output))
    state = {
        "boot_id": board_files.boot_id(root),
        "mode": mode,
        "pinned": False,
        "fan_is_max": False,
    }
    state["fan"] = {
        name: board_files.text(folder, name) for folder, name, _ in board_files.fan_files(root)
    }
    state["fan_service"] = fan_service(root, "is-active").strip() == "active"
    return store(state), True


# -- changing --------------------------------------------------------------------------------------
def run(root: str, tool: str, *words: str) -> str:
    """Run a tool of the board and return its output; its exit status proves nothing."""
    command = [os.path.join(root, tool)] + list(words)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,  # so that each question is answered with nothing
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # no terminal either
        close_fds=False,
    )
    try:
        output = process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0] + b" (ended: it took too long)"
    return output.decode("utf-8", "replace")


def write(path: str, value: str) -> bool:
    """Write into an existing file; return whether that worked."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "w") as handle:
            handle.write(value + "\n")
        return True
    except OSError:
        return False


def nvpmodel(root: str) -> Answer:
    """Return `id` and `name` of the power mode; None where nvpmodel prints none."""
    match = re.search(r"NV Power Mode: *(\S+)\s+([0-9]+)", run(root, NVPMODEL, "-q"))
    return {"id": int(match.group(2)) if match else None, "name": match.group(1) if match else None}


def fan_service(root: str, what: str) -> str:
    """Run `systemctl` on the fan service of JetPack 5 and later, where there is one."""
    has_it = os.path.exists(os.path.join(root, "bin/systemctl"))
    return run(root, "bin/systemctl", what, "nvfancontrol") if has_it else ""


def loosen(root: str, state: Answer) -> Answer:
    """Unpin the clocks, bring all cores online and open all ranges; return the new state.

    A mode that is set under pinned clocks leaves stale minima, and the kernel rejects a minimum
    above the maximum: from here on nvpmodel and jetson_clocks may write in any order.
    """
    if state["pinned"]:
        run(root, JETSON_CLOCKS, "--restore", os.path.join(root, FOLDER, PINS))
        state = store(state, pinned=False)
    for cpu in board_files.cpus(root):
        write(board_files.cpu_folder(root, cpu) + "/online", "1")
    ranges = [
        (board_files.cpu_folder(root, cpu) + "/cpufreq/scaling_", board_files.cpu_khz(root))
        for cpu in board_files.cpus(root)
    ]
    for beginning, steps in ranges + [
        ((board_files.find_gpu(root) or "") + "/", board_files.gpu_hz(root))
    ]:
        if steps:
            write(beginning + "max_freq", str(steps[-1]))
            write(beginning + "min_freq", str(steps[0]))
    return state


def set_mode(root: str, mode: Mode, own_conf: str = "") -> str:
    """Let nvpmodel set a mode of the board's configuration, or of ours; return its output.

    HelperError with REBOOT when it asks for a restart of the board (the question is never answered)
    or cannot write a mask of the GPU's parts, which only a restart changes.
    """
    conf = NVPMODEL_CONF
    if own_conf:
        keep(CONF, own_conf)
        conf = os.path.join(FOLDER, CONF)
    output = run(root, NVPMODEL, "-f", os.path.join(root, conf), "-m", str(mode.id))
    asks = re.search(r"reboot", output, re.IGNORECASE)
    if asks or re.search(r"Error writing \S+ to \S*mask:", output):
        why = "nvpmodel {}: {}".format("asks for it" if asks else "says", one_line(output))
        raise HelperError(REBOOT, _REBOOT.format(why, mode.id))
    return output


def one_line(output: str) -> str:
    """Return the words of a tool in one line."""
    return " / ".join(line.strip() for line in output.splitlines() if line.strip())[-1500:]


def check_mask(root: str, mode: Mode) -> None:
    """Check that the GPU runs with the mode's masks; HelperError: only a restart changes them."""
    why = board_files.other_mask(root, mode)
    if why:
        raise HelperError(REBOOT, _REBOOT.format(why, mode.id))


def switch(root: str, mode: Mode, own_conf: str = "") -> Answer:
    """Set a mode; the settings before it are stored first. The caller reads back the result."""
    check_mask(root, mode)
    state, is_first = remember(root)
    state = loosen(root, state)
    try:
        output = set_mode(root, mode, own_conf)
    except HelperError:
        if is_first:  # nothing must wait for `restore` after the board's start
            restore(root)
        raise
    if state["fan_is_max"]:
        turn_fan_up(root)  # jetson_clocks --restore knows of the fan, too
    return {"output": one_line(output), "nvpmodel": nvpmodel(root)}


def turn_fan_up(root: str) -> List[str]:
    """Turn the fan up and end its control; return the files that could not be written."""
    fan_service(root, "stop")
    return [
        name
        for folder, name, value in board_files.fan_files(root)
        if not write(folder + "/" + name, value)
    ]


# -- the verbs -------------------------------------------------------------------------------------
def status(root: str) -> Answer:
    """Return kind of board, power mode, and whether settings wait for `restore`."""
    waits = os.path.lexists(os.path.join(root, FOLDER, STATE))
    kind = board_files.board_kind(root)
    return {"version": VERSION, "stored": waits, "kind": kind, "nvpmodel": nvpmodel(root)}


def named_mode(root: str, mode_id: int) -> Answer:
    """Set a mode of the board's own nvpmodel.conf."""
    for mode in board_files.board_conf(root).modes:
        if mode.id == mode_id:
            return switch(root, mode)
    raise HelperError(REFUSED, "{} has no mode {}".format(NVPMODEL_CONF, mode_id))


def custom_mode(root: str, *numbers: int) -> Answer:
    """Set cores, CPU kHz, GPU Hz and EMC Hz, each one that the board has."""
    conf = board_files.board_conf(root)
    try:
        cores, cpu, gpu, emc = numbers
        own_conf = board_files.custom_conf(conf, cores, cpu, gpu, emc, board_files.tables(root))
    except ValueError as error:
        raise HelperError(REFUSED, str(error)) from error
    return switch(root, board_files.parse_conf(own_conf).modes[0], own_conf)


def pin_clocks(root: str) -> Answer:
    """Pin the clocks at the mode's limits."""
    store(remember(root)[0], pinned=True)
    return {"output": one_line(run(root, JETSON_CLOCKS))}


def fan_max(root: str) -> Answer:
    """Turn the fan up."""
    if not board_files.fan_files(root):
        raise HelperError(REFUSED, "no fan is known on this board")
    store(remember(root)[0], fan_is_max=True)
    failed = turn_fan_up(root)
    if failed:
        raise HelperError(FAILED, "these files of the fan cannot be written: " + ", ".join(failed))
    return {}


def restore(root: str) -> Answer:
    """Put back mode, clocks and fan as stored, and forget them; after a reboot only the mode.

    Raises HelperError: something was not put back; then they stay stored.
    """
    state = stored()
    if not state:
        return {"restored": False}
    mode = next(
        (mode for mode in board_files.board_conf(root).modes if mode.id == state["mode"]), None
    )
    if mode is None:
        raise HelperError(FAILED, "{} has no mode {} any more".format(NVPMODEL_CONF, state["mode"]))
    same_start = state["boot_id"] == board_files.boot_id(root)
    try:
        check_mask(root, mode)
        if same_start:
            loosen(root, state)
        output = set_mode(root, mode)
    except HelperError as stop:
        if stop.args[0] != REBOOT or same_start:
            raise
        forget()  # somebody has started the board in a mode of another mask: that one stays
        return {"restored": False, "output": stop.args[1]}
    if nvpmodel(root)["id"] != mode.id:
        raise HelperError(
            FAILED, "nvpmodel did not take mode {}: {}".format(mode.id, one_line(output))
        )
    if same_start:
        run(root, JETSON_CLOCKS, "--restore", os.path.join(root, FOLDER, PINS))
        changed = ", ".join(board_files.not_put_back(root, PINS)[:3])
        if changed:
            raise HelperError(FAILED, "not as before: {}; start the board again".format(changed))
    if same_start and state["fan_is_max"]:
        for folder, name, _ in reversed(board_files.fan_files(root)):
            if re.match(r"[0-9]{1,3}$", str(state["fan"].get(name))):
                write(os.path.join(folder, name), state["fan"][name])
        if state["fan_service"]:
            fan_service(root, "start")
    forget()
    return {"restored": True, "output": one_line(output)}


def drop_caches(root: str) -> Answer:
    """Empty the page cache (proc(5): 3 = pages, dentries and inodes)."""
    os.sync()
    if not write(os.path.join(root, "proc/sys/vm/drop_caches"), "3"):
        raise HelperError(FAILED, "proc/sys/vm/drop_caches cannot be written")
    return {}


# verbs that only read, and those that change something (one at a time); how many numbers each takes
_Verbs = Dict[str, Tuple[int, Callable[..., Answer]]]
_LOOKS: _Verbs = {"status": (0, status), "read-clocks": (0, board_files.read_clocks)}
_CHANGES: _Verbs = {
    "named-mode": (1, named_mode),
    "custom-mode": (4, custom_mode),
    "pin-clocks": (0, pin_clocks),
    "fan-max": (0, fan_max),
    "restore": (0, restore),
    "drop-caches": (0, drop_caches),
}


def lift_limits() -> None:
    """Lift the caller's limits: they would cut a file short, or end a tool half-way."""
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        try:
            resource.setrlimit(limit, (resource.RLIM_INFINITY,) * 2)
        except ValueError as error:  # root without CAP_SYS_RESOURCE, as in a container
            if resource.getrlimit(limit)[0] != resource.RLIM_INFINITY:
                raise HelperError(REFUSED, "files or CPU time are limited: see ulimit") from error


def act(words: List[str]) -> Answer:
    """Check a verb, its numbers and the helper's own place, then run it; return its answer.

    Raises HelperError, OSError and ValueError.
    """
    verb, numbers = "".join(words[:1]), words[1:]
    n_numbers, function = dict(_LOOKS, **_CHANGES).get(verb, (-1, None))
    if function is None or len(numbers) != n_numbers:
        raise HelperError(REFUSED, "a verb and its numbers: " + _USAGE)
    if not all(re.match(r"(0|[1-9][0-9]{0,11})\Z", number) for number in numbers):
        raise HelperError(REFUSED, "whole numbers in ASCII digits: " + _USAGE)
    path = os.path.realpath(__file__[: -len("/epochwatt/board/device/root_helper.py")])
    root = path[: -len(INSTALLED) - 1] or "/"
    if path != os.path.join(root, INSTALLED):
        raise HelperError(REFUSED, "this works only as /{} (make setup-jetson)".format(INSTALLED))
    if root == "/" and os.geteuid() != 0:
        raise HelperError(REFUSED, "this works only as root: sudo -n {} ...".format(path))
    unsafe = board_files.first_not_root_only(path) if root == "/" else ""
    if unsafe:
        raise HelperError(REFUSED, "{} is not root's alone: make setup-jetson".format(unsafe))
    if verb in _CHANGES:
        lift_limits()
        enter(root)
    return function(root, *[int(number) for number in numbers])


def main(words: List[str]) -> int:
    """Print one line of JSON; return the exit status."""
    os.umask(0o022)
    os.environ.clear()
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C")
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGTSTP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # a verb is done whole
    answer, code = {"ok": True}, 0  # type: Answer, int
    try:
        answer.update(act(words))
    except HelperError as stop:
        code, answer = stop.args[0], {"ok": False, "error": stop.args[1]}
    except (OSError, ValueError) as error:
        code, answer = FAILED, {"ok": False, "error": "{}: {}".format(type(error).__name__, error)}
    print(json.dumps(answer))
    return code
