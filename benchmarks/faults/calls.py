"""Calls of the file system that fail in the trainer or in the sampler.

As a program with a plan and sources this file is a sampler whose calls fail.
"""

import _pyio
import builtins
import errno
import functools
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CALLS = ("open", "write", "ftruncate", "fsync", "close", "rename", "unlink", "mkdir")
CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
ONCE, SHORT, LASTING = "once", "short", "lasting"
_EPOCH = re.compile(r"/(epoch-\d+(?:\.unfinished)?)(?:/(.+?))?(?:\.\d+\.tmp)?$")


class Plan(NamedTuple):
    """Which call fails and how.

    Parameters
    ----------
    log : file to which each call that counts is written, and which of them failed
    nth : of the calls of this process that concern an epoch's record; 0: none fails
    code : errno
    how : ONCE; SHORT: a write that writes half, and the next call fails; LASTING: all from it on
    """

    log: str
    nth: int = 0
    code: int = errno.ENOSPC
    how: str = ONCE


def install(plan: Plan) -> None:
    """Let this process's calls fail by the plan; what `open` gives to write to uses them, too."""
    counted = [0]
    fails_next = [False]
    log = os.open(plan.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write = os.write

    def failing(name: str, real: Callable[..., Any], first: Any, *rest: Any, **keys: Any) -> Any:
        place = _place(first)
        if place is None:
            return real(first, *rest, **keys)
        counted[0] += 1
        is_nth = counted[0] == plan.nth
        fails = fails_next[0] or is_nth or (plan.how == LASTING and 0 < plan.nth < counted[0])
        fails_next[0] = False
        write(log, f"{'FAILED ' if fails else ''}{name} {place}\n".encode())
        if not fails:
            return real(first, *rest, **keys)
        if is_nth and plan.how == SHORT and name == "write":
            fails_next[0] = True
            return real(first, rest[0][: len(rest[0]) // 2])
        if name == "close":  # the descriptor is gone all the same
            real(first)
        raise OSError(plan.code, os.strerror(plan.code), first)

    for name in CALLS:
        setattr(os, name, functools.partial(failing, name, getattr(os, name)))
    plain = builtins.open

    def opened(file: Any, mode: str = "r", *rest: Any, **keys: Any) -> Any:
        writes = _place(file) is not None and set(mode) & set("wax+")
        return (_pyio.open if writes else plain)(file, mode, *rest, **keys)

    builtins.open = opened


def _place(target: Any) -> str | None:
    """Return the epoch and the file that a path or descriptor is of; None: of no record."""
    if isinstance(target, int):
        try:
            target = os.readlink(f"/proc/self/fd/{target}")
        except OSError:
            return None
    found = _EPOCH.search(os.fsdecode(target))
    return None if found is None else "/".join(filter(None, found.groups()))


def sampler_failing(plan: Plan, *sources: dict[str, Any]) -> list[str]:
    """Return the program of a sampler with synthetic sources whose calls fail by a plan."""
    return [os.path.abspath(__file__), json.dumps(plan), json.dumps(sources)]


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from benchmarks.synthetic import SyntheticSource
    from epochwatt.board.telemetry.__main__ import main

    made = [SyntheticSource(**arguments) for arguments in json.loads(sys.argv[2])]
    install(Plan(*json.loads(sys.argv[1])))
    sys.exit(main(sys.argv[3:], made))
