"""A child that reads damaged inputs one after the other, and a parent that watches it."""

import mmap
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from typing import NamedTuple

from benchmarks.fuzz.mutations import damaged
from benchmarks.fuzz.target import Target
from epochwatt.errors import EpochwattError

LIMIT_S = 20.0  # of one input: the machine may have other work
LIMIT_BYTES = 2 * 2**30  # of memory, beside what the parent has


class Failure(NamedTuple):
    """An input that was not read as it should be."""

    target: str
    n: int
    what: str
    where: str


def run_batch(target: Target, seed: int, begin: int, end: int) -> list[Failure]:
    """Read the inputs `begin`..`end` - 1; a child that dies or hangs is followed by another."""
    failures: list[Failure] = []
    while begin < end:
        found, died_at, how = _child(target, seed, begin, end)
        failures += found
        if died_at is None:
            return failures
        failures.append(Failure(target.name, died_at, how, "a child process"))
        begin = died_at + 1
    return failures


def _child(
    target: Target, seed: int, begin: int, end: int
) -> tuple[list[Failure], int | None, str]:
    """Return the failures, the input at which the child died (None: it did not) and how."""
    progress = mmap.mmap(-1, 8)
    progress[:] = begin.to_bytes(8, "little")
    with tempfile.TemporaryFile() as answers:
        pid = os.fork()
        if pid == 0:
            _read_all(target, seed, begin, end, progress, answers.fileno())
        died = _watched(pid, progress)
        answers.seek(0)
        failures = []
        while True:
            try:
                failures.append(Failure(*pickle.load(answers)))
            except EOFError:
                break
    at = int.from_bytes(progress[:], "little")
    return failures, (at if died else None), died


def _watched(pid: int, progress: mmap.mmap) -> str:
    """Wait for the child; return how it died, or nothing where it came to its end."""
    last, since_s = b"", time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return "" if status == 0 else f"died: status {os.waitstatus_to_exitcode(status)}"
        if progress[:] != last:
            last, since_s = progress[:], time.monotonic()
        elif time.monotonic() - since_s > LIMIT_S:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"hung: more than {LIMIT_S:.0f} s"
        time.sleep(0.002)


def _read_all(
    target: Target, seed: int, begin: int, end: int, progress: mmap.mmap, answers: int
) -> None:
    """Be the child: read all inputs, note failures, never return."""
    status = 3
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with open("/proc/self/statm", "rb") as handle:
            used = int(handle.read().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for n in range(begin, end):
            progress[:] = n.to_bytes(8, "little")
            failure = examined(target, seed, n)
            if failure is not None:
                os.write(answers, pickle.dumps(tuple(failure)))
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def content_of(target: Target, seed: int, n: int) -> bytes:
    """Return the input of that number."""
    rng = random.Random(f"{seed}/{target.name}/{n}")
    return damaged(rng.choice(target.goods), target.kind, rng)


def examined(target: Target, seed: int, n: int) -> Failure | None:
    """Read one input; return what was wrong with it, or None."""
    content = content_of(target, seed, n)
    try:
        target.read(content)
    except EpochwattError as error:
        if target.place not in str(error):
            return Failure(target.name, n, f"names no place: {error!s:.300}", _place(error))
    except target.allowed:
        pass
    except BaseException as error:  # noqa: BLE001  that is what is looked for
        what = f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace").decode("utf-8")
        return Failure(target.name, n, what, _place(error))
    return None


def _place(error: BaseException) -> str:
    """Return the last line of ours that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/src/epochwatt/" in frame.filename]
    if not ours:
        return "outside the package"
    return f"{ours[-1].filename.rpartition('/src/epochwatt/')[2]}:{ours[-1].lineno}"
