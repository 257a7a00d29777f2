"""Explain what libraries and the kernel say when they fail (board side: Python 3.6).

One table for jobs, for `epochwatt doctor` and for the sampler, so that all of them say the same:
`remedies.csv` beside this module has a row for each message that people report from boards, of
which the first that fits counts; tests/data/failures.csv names where. In a pattern `<so>` is the
path of a library, `<missing lib...>` the message that one is not there, and `<shm>` what torch
keeps in /dev/shm; `@memory` and the like are functions here that look at the machine.
"""

import platform
import re
import signal
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from epochwatt.board.device import host
from epochwatt.board.records.files import csv_rows

SOFTWARE = "docs/how-to/jetson-torch.md"
_MEMORY = (
    "end other programs, turn off the desktop, add swap on a disk that is not measured, or take a "
    "smaller batch_size and fewer num_workers (epochwatt fit says what fits)"
)
MORE_SHARED_MEMORY = (
    "in a container: --shm-size=2g; else: sudo mount -o remount,size=2G /dev/shm; or num_workers: 0"
)
_WORDS = {  # that remedies have in common
    "software": SOFTWARE,
    "more_shared_memory": MORE_SHARED_MEMORY,
    "this_jetpack": f"install torch for this JetPack: {SOFTWARE}",
    "pair": f"install the torchvision of the same release as torch: {SOFTWARE}",
    "set_python": "name an interpreter that can under `python:` in config/devices/",
    "restart": "sudo systemctl restart jtop.service",
    "same_python": (
        "use one Python for both: sudo {python} -m pip install --force-reinstall jetson-stats "
        "(7.x: then sudo jtop --install-service), or train with the Python that jtop.service runs "
        "in (`python:` in config/devices/)"
    ),
}
_SO = r"(?P<lib>[\w./+~-]+\.so[\w.-]*)"
# in place of NAME: how the name of a library begins
_MISSING = (
    r"(?P<lib>NAME[\w+.-]*?\.so[\w.*\[\]-]*)"
    r"(: cannot open shared object file| not found in the system path)"
)
_IN_SHM = r"/dev/shm(/pym-|/torch_|/sem\.|'|$)"  # not the data sets that people keep there

_TOO_MANY_FILES = (
    "this process may not open as many files as the workers share",
    "ulimit -n 4096, then start again, or fewer num_workers",
)
ENOUGH_SHM = 512 * 2**20  # eight mini-batches of 64 pictures of 224x224, and as much again
_SIGNALS = {  # but for those of shared memory, which torch says itself
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Illegal instruction": signal.SIGILL,
    "Aborted": signal.SIGABRT,
}


class Remedy(NamedTuple):
    """Cause of a failure, and what to do."""

    cause: str
    do: str
    line: str  # of the message, by which it was known


def _explain_memory(match: Any) -> Tuple[str, str]:
    limits = host.memory_limits()
    if limits:
        return f"out of memory within its limit: {', '.join(limits)}", (
            "raise the limit (`ulimit -v unlimited`; --memory of the container; MemoryMax of the "
            "service)"
        )
    return f"out of memory: {host.memory_words()}", _MEMORY


def _explain_shared_memory(match: Any) -> Tuple[str, str]:
    """Explain an error of shared memory: too small, too many open files, or a damaged file."""
    sizes = host.shm_bytes()
    if sizes is None or sizes[1] < ENOUGH_SHM:
        return f"shared memory is too small or full: {host.shm_words()}", MORE_SHARED_MEMORY
    if "open shared memory object" in match.group(0) and "(" not in match.string[match.end() :]:
        return _TOO_MANY_FILES
    return (
        f"shared memory was too small or full ({host.shm_words()} now), or a file of the data set "
        "was cut short or cannot be read",
        f"{MORE_SHARED_MEMORY}; else look for errors of the disk (dmesg)",
    )


_EXPLAINERS: Dict[str, Callable[[Any], Tuple[str, str]]] = {
    "@memory": _explain_memory,
    "@shared memory": _explain_shared_memory,
}
_rows: List[Tuple[str, str, str]] = []


def _table() -> List[Tuple[str, str, str]]:
    """Return pattern, cause and remedy of each known message, read once."""
    if not _rows:
        for pattern, cause, do in csv_rows(__file__, "remedies.csv"):
            pattern = pattern.replace("<so>", _SO).replace("<shm>", _IN_SHM)
            missing = re.match("<missing (.*)>$", pattern)
            if missing:
                pattern = _MISSING.replace("NAME", missing.group(1))
            _rows.append((pattern, cause, do))
    return _rows


def remedy_of(
    text: str, python: str = "", version: str = "", oom_kills: Optional[int] = None
) -> Optional[Remedy]:
    """Find cause and remedy of an error message; None: it is not in the table.

    `python`, `version`: path and version of the interpreter that failed, empty: this one
    `oom_kills`: `host.oom_kills` before the failure, None: not known
    """
    worker_remedy = _worker_remedy(text, python, oom_kills)
    if worker_remedy is not None:
        return worker_remedy
    values = {
        "python": python or sys.executable,
        "version": version or platform.python_version(),
        "machine": platform.machine(),
    }
    values.update({key: words.format(**values) for key, words in _WORDS.items()})
    for pattern, cause, do in _table():
        match = re.search(pattern, text, re.IGNORECASE)
        if match is None:
            continue
        values.update((key, value) for key, value in match.groupdict().items() if value)
        if cause in _EXPLAINERS:
            cause, do = _EXPLAINERS[cause](match)
        else:
            cause, do = cause.format(**values), do.format(**values)
        start = text.rfind("\n", 0, match.start()) + 1
        line = text[start:].partition("\n")[0].strip()
        return Remedy(cause, do, line)
    return None


def _worker_remedy(text: str, python: str, oom_kills: Optional[int]) -> Optional[Remedy]:
    """Explain a message of torch that a loader worker ended, by a signal or unexpectedly.

    None: it is no such message, or the cause is not known.
    """
    killed = re.search(r"killed by signal: (\w+( \w+)?)", text)
    if killed and killed.group(1) in _SIGNALS:
        return of_signal(_SIGNALS[killed.group(1)], python, oom_kills)
    if "exited unexpectedly" not in text:
        return None
    sizes = host.shm_bytes()
    if sizes is None or sizes[0] < ENOUGH_SHM:  # what a dead worker had is free again
        return Remedy(*_explain_shared_memory(None), line=text)
    if oom_kills is not None and (host.oom_kills() or 0) > oom_kills:
        return of_signal(signal.SIGKILL, python, oom_kills)
    return None


def in_full(text: str) -> str:
    """Complete a message with its cause before and its remedy below it, where they are known."""
    remedy = remedy_of(text)
    return text if remedy is None else f"{remedy.cause} ({text})\n  do: {remedy.do}"


def of_signal(number: int, python: str = "", oom_kills: Optional[int] = None) -> Remedy:
    """Explain why a signal ended a process, and what to do (parameters as of `remedy_of`)."""
    if number == signal.SIGILL:
        cause = "it met an instruction that this CPU does not have"
        do = f"install builds for this CPU: {SOFTWARE}"
        if platform.machine() == "aarch64":
            cause += ", as numpy 1.19.5 does on boards"
            do = "export OPENBLAS_CORETYPE=ARMV8, then start again; else numpy 1.19.4: " + SOFTWARE
    elif number == signal.SIGKILL:
        cause, do = _explain_kill(oom_kills)
    elif number == signal.SIGBUS:
        cause = f"it met memory that is not there: {host.shm_words()}"
        do = f"{MORE_SHARED_MEMORY}; else look for errors of the disk (dmesg)"
    elif number == signal.SIGALRM:
        cause = "it took longer than it may"
        do = "try again, now that its files are in memory: a memory card is slow at first"
    else:
        cause = "a library crashed"
        do = (
            f"{python or sys.executable} -X faulthandler -c 'import torch, torchvision' shows "
            f"where; sudo apt-get install libopenblas-dev helps where BLAS is missing: {SOFTWARE}"
        )
    return Remedy(cause, do, _name(number))


def _explain_kill(oom_kills_before: Optional[int]) -> Tuple[str, str]:
    """Explain SIGKILL, cause and remedy: whether the kernel killed for want of memory."""
    oom_kills = host.oom_kills()
    if oom_kills is None:
        return "it was killed: often by the kernel for want of memory", (
            f"look for `Killed process` (dmesg); if it is there: {_MEMORY}"
        )
    n_kills = oom_kills - (oom_kills_before or 0)
    if n_kills > 0:
        since = "since the machine was started" if oom_kills_before is None else "meanwhile"
        cause = (
            "it was killed by the kernel's OOM killer, for want of memory "
            f"(which ended {n_kills} {since})"
        )
        details = host.memory_limits()
        kills = max((group.kills for group in host.memory_groups()), default=0)
        if kills:
            details.append(f"which has lost {kills} so")
        message = host.oom_message()
        if message:
            details.append(f"the kernel's log: {message}")
        return "; ".join([cause, *details]), _MEMORY
    return (
        "it was killed, but not by the kernel for want of memory, which would count it",
        "look for who did it (dmesg), then start again",
    )


def of_status(status: int, python: str = "") -> Optional[Remedy]:
    """Explain the exit status of a program that a signal ended, here (-9) or in a shell (137).

    None: it ended by itself, or by a signal that somebody sent to end it.
    """
    number = -status if status < 0 else status - 128
    if not _name(number) or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        return None
    return of_signal(number, python)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
