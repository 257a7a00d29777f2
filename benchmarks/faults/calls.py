"""Calls of the file system that fail, or kill the process, in the trainer or in the sampler.

As a program with a plan and sources this file is a sampler whose calls fail.
"""

import _pyio
import builtins
import errno
import functools
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CALLS = ("open", "write", "ftruncate", "fsync", "close", "rename", "unlink", "mkdir")
CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
ONCE, SHORT, LASTING, KILLED = "once", "short", "lasting", "killed"
OF_EPOCH = re.compile(r"/epoch-\d+(\.unfinished)?(/|$)")


class Plan(NamedTuple):
    """Which call fails and how."""

    nth: int  # of the calls of this process that concern an epoch's record
    how: str  # SHORT: a write that writes half, and the next call fails; LASTING: all from it on
    code: int = 0  # errno


def install(plan: Plan) -> None:
    """Let this process's calls fail by the plan; what `open` gives to write to uses them, too."""
    n_calls = 0
    fails_next = False

    def call(name: str, real: Callable[..., Any], first: Any, *rest: Any, **keys: Any) -> Any:
        nonlocal n_calls, fails_next
        if not _is_of_an_epoch(first):
            return real(first, *rest, **keys)
        n_calls += 1
        is_nth = n_calls == plan.nth
        fails = fails_next or is_nth or (plan.how == LASTING and n_calls > plan.nth)
        fails_next = is_nth and plan.how == SHORT and name == "write"
        if fails_next:
            return real(first, rest[0][: len(rest[0]) // 2])
        if not fails:
            return real(first, *rest, **keys)
        if plan.how == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "close":  # the descriptor is gone all the same
            real(first)
        raise OSError(plan.code, os.strerror(plan.code), first)

    for name in CALLS:
        setattr(os, name, functools.partial(call, name, getattr(os, name)))
    plain = builtins.open

    def opened(file: Any, mode: str = "r", *rest: Any, **keys: Any) -> Any:
        writes = _is_of_an_epoch(file) and set(mode) & set("wax+")
        return (_pyio.open if writes else plain)(file, mode, *rest, **keys)

    builtins.open = opened


def _is_of_an_epoch(target: Any) -> bool:
    """Say whether a path or descriptor is of the record of an epoch."""
    if isinstance(target, int):
        try:
            target = os.readlink(f"/proc/self/fd/{target}")
        except OSError:
            return False
    return OF_EPOCH.search(os.fsdecode(target)) is not None


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
