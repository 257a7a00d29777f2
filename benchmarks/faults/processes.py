"""Faults of a job under way: signals, limits, full disks, clocks; then the next plain start."""

import ctypes
import errno
import functools
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks import template
from benchmarks.faults.calls import CODES, LASTING, ONCE, SHORT, Plan, install, sampler_failing
from benchmarks.faults.damage import NOTHING, Injected
from benchmarks.faults.place import Place, Start, command_of, descendants
from benchmarks.synthetic import sampler_with
from epochwatt.board.records import files
from epochwatt.board.telemetry.client import Sampler

Random = random.Random
LONGEST_S = 1.6  # of an undisturbed job that trains three epochs, and a little more
NOBODY = 65534
CALLS = {"trainer": 80, "sampler": 17}  # about, of an epoch, that write its record
_MS_REMOUNT = 32


def _after(start: Start, seconds: float) -> None:
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s and not start.ended():
        time.sleep(0.002)


def signalled(number: int, whom: str, place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Send a signal to the trainer, its group, a worker or the sampler at any moment."""
    if whom == "worker":
        place.run_factors["num_workers"] = rng.choice((1, 2))
    start = place.start(collect=False)
    _after(start, rng.uniform(0.0, LONGEST_S * (1.5 if whom == "worker" else 1.0)))
    if whom == "trainer":
        start.send(number)
    elif whom == "group":
        start.send_group(number)
    else:
        for pid in descendants(start.pid):
            is_sampler = "epochwatt.board.telemetry" in command_of(pid)
            if is_sampler == (whom == "sampler"):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                break
    start.wait()
    return NOTHING, [start]


def stopped(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Stop the whole job for a while, then let it go on."""
    start = place.start(collect=False)
    _after(start, rng.uniform(0.0, LONGEST_S))
    pids = [start.pid, *descendants(start.pid)]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(rng.uniform(0.05, 0.6) if number == signal.SIGSTOP else 0)
    start.wait()
    return NOTHING, [start]


def power_cut(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Kill everything, then lose of what was not flushed any part: cut, zeros, nothing at all."""
    start = place.start(collect=False)
    _after(start, rng.uniform(0.0, LONGEST_S))
    start.kill_all()
    start.wait()
    for folder in Path(place.runs.path).glob("*.unfinished"):
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            choice = rng.randrange(5)
            if choice == 0:
                path.unlink()
            elif choice == 1:
                path.write_bytes(content[: rng.randrange(len(content) + 1)])
            elif choice == 2:
                path.write_bytes(bytes(len(content)))
        if rng.random() < 0.2:
            shutil.rmtree(folder)
    shutil.rmtree(place.folder / "tmp")  # what lies in memory is gone
    (place.folder / "tmp").mkdir()
    return NOTHING, [start]


def full_disk(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Let measured/ lie on a small tmpfs that fills up at some moment; then it grows."""
    measured = place.folder / "measured"
    held = place.folder / "results/held"
    measured.rename(held)
    measured.mkdir()
    used = sum(p.stat().st_size + 4096 for p in held.rglob("*"))
    size = used + rng.randrange(4096, 900_000)
    _mount(measured, size, 0)
    try:
        shutil.copytree(held, measured, dirs_exist_ok=True)
        start = place.start(collect=False)
        start.wait()
        _mount(measured, 64 << 20, _MS_REMOUNT)
        second = place.start()
        second.wait()
        shutil.rmtree(held)
        shutil.copytree(measured, held)
    finally:
        subprocess.run(["umount", "-l", str(measured)], check=True)
    measured.rmdir()
    held.rename(measured)
    return NOTHING, [start, second]


def _mount(where: Path, size: int, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={size}".encode()
    if libc.mount(b"tmpfs", os.fsencode(where), b"tmpfs", flags, options):
        raise OSError(ctypes.get_errno(), f"cannot mount a tmpfs at {where}")


def may_mount(folder: Path) -> bool:
    """Say whether this process may mount a tmpfs."""
    place = folder / "mount-tried"
    place.mkdir(exist_ok=True)
    try:
        _mount(place, 65536, 0)
    except OSError:
        return False
    subprocess.run(["umount", str(place)], check=True)
    return True


def limited(
    what: int, low: int, high: int, place: Place, rng: Random
) -> tuple[Injected, list[Start]]:
    """Let the job reach a limit: of file sizes, of descriptors, of memory."""
    limit = rng.randrange(low, high)
    if what == resource.RLIMIT_AS:
        with open("/proc/self/statm", "rb") as handle:
            limit += int(handle.read().split()[0]) * resource.getpagesize()
    start = place.start(lambda: resource.setrlimit(what, (limit, limit)), collect=False)
    start.wait()
    return NOTHING, [start]


def failing_call(code: int, place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Let a call fail that writes a record, in the trainer or in the sampler: the nth of them."""
    whose = rng.choice(list(CALLS))
    nth = rng.randrange(1, CALLS[whose] * (template.EPOCHS - place.n_done))
    plan = Plan(str(place.folder / "screen-calls"), nth, code, rng.choice((ONCE, SHORT, LASTING)))
    return NOTHING, [started_with(plan, whose, place)]


def started_with(plan: Plan, whose: str, place: Place) -> Start:
    """Start the job, its trainer's or its sampler's calls failing by a plan; wait for its end."""

    def prepare() -> None:
        if whose == "trainer":
            install(plan)
        else:
            begin = Sampler.start.func  # type: ignore[attr-defined]
            program = sampler_failing(plan, template.POWER)
            Sampler.start = functools.partial(begin, program=program)  # type: ignore[method-assign]

    start = place.start(prepare, collect=False)
    start.wait()
    return start


def read_only(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Let a user who may not write measured/, or the receipt, or tmp start the job."""
    closed = rng.choice(
        (Path(place.runs.path), place.folder / "measured", place.folder / "results")
    )
    for path in [place.folder, *place.folder.rglob("*")]:
        inside = path.relative_to(place.folder).parts
        if inside[:1] != ("data",) and (inside[:1] != ("tmp",) or len(inside) == 1):
            os.chmod(path, 0o777 if path.is_dir() else 0o666)
    os.chmod(closed, 0o555)

    def prepare() -> None:
        if os.getuid() == 0:
            os.setuid(NOBODY)

    start = place.start(prepare, collect=False)
    start.wait()
    os.chmod(closed, 0o777)
    return NOTHING, [start]


def clock_set(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Let the wall clock of trainer and sampler jump at any moment, either way."""
    jump_s = rng.choice((-1, 1)) * rng.choice((1.0, 3600.0, 1e8))
    at_s = rng.uniform(0.0, LONGEST_S)
    jumping = {"wall_jump_after": float(rng.randrange(1, 20)), "wall_jump_s": jump_s}

    def prepare() -> None:
        real, since_s = time.time, time.monotonic()
        time.time = lambda: real() + (jump_s if time.monotonic() - since_s > at_s else 0.0)
        power = {**template.POWER, "faults": jumping}
        begin = Sampler.start.func  # type: ignore[attr-defined]
        Sampler.start = functools.partial(begin, program=sampler_with(power))  # type: ignore[method-assign]

    start = place.start(prepare, collect=False)
    start.wait()
    return NOTHING, [start]


def two_at_once(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Start the same job twice, and kill the first at any moment."""
    first = place.start(collect=False)
    _after(first, rng.uniform(0.0, 0.3))
    second = place.start(collect=False)
    _after(first, rng.uniform(0.0, LONGEST_S))
    if rng.random() < 0.5:
        first.send(signal.SIGKILL)
    first.wait()
    second.wait()
    return NOTHING, [first, second]


def killed_while_writing(place: Place, rng: Random) -> tuple[Injected, list[Start]]:
    """Kill the trainer right at one of the calls that bring a record to the disk."""
    nth = rng.randrange(1, 40)

    def prepare() -> None:
        left = [nth]
        real = {name: getattr(os, name) for name in ("fsync", "rename", "unlink", "open")}

        def call(name: str, *arguments: object, **keys: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real[name](*arguments, **keys)

        for name in real:
            setattr(files.os, name, functools.partial(call, name))

    start = place.start(prepare, collect=False)
    start.wait()
    return NOTHING, [start]


Running = Callable[[Place, Random], tuple[Injected, list[Start]]]


def faults(folder: Path) -> Iterator[tuple[str, Running, float]]:
    """Give name, fault and share of each; `folder` is where a tmpfs is tried."""
    for whom in ("group", "trainer", "worker", "sampler"):
        yield f"kill -9 {whom}", functools.partial(signalled, signal.SIGKILL, whom), 10
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for whom in ("trainer", "group"):
            yield f"{number.name} {whom}", functools.partial(signalled, number, whom), 6
    yield "stop and continue", stopped, 10
    yield "power cut", power_cut, 15
    yield "kill -9 while writing", killed_while_writing, 15
    if os.getuid() == 0 and may_mount(folder):
        yield "full disk", full_disk, 12
    sizes = {"file size": (resource.RLIMIT_FSIZE, 1, 300_000)}
    sizes |= {"descriptors": (resource.RLIMIT_NOFILE, 4, 40)}
    sizes |= {"memory": (resource.RLIMIT_AS, 1 << 16, 1 << 26)}
    for name, bounds in sizes.items():
        yield f"limit of {name}", functools.partial(limited, *bounds), 8
    for code in CODES:
        yield f"{errno.errorcode[code]} of a call", functools.partial(failing_call, code), 5
    yield "read-only folder", read_only, 8
    yield "clock set", clock_set, 8
    yield "two at once", two_at_once, 6
