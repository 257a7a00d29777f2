"""Faults: files damaged before a start, and what meets a job under way; then the next plain start.

Files are damaged, cut, zeroed, deleted. A job meets signals, limits, full disks, clocks.
"""

import ctypes
import errno
import functools
import json
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
from typing import NamedTuple

from benchmarks import template
from benchmarks.faults.calls import CODES, LASTING, ONCE, SHORT, Plan, install, sampler_failing
from benchmarks.faults.place import Place, Start, command_of, descendants
from benchmarks.fuzz.mutations import flip, truncate, zero
from benchmarks.synthetic import sampler_with
from epochwatt.board.records import files
from epochwatt.board.telemetry.client import Sampler

Random = random.Random
OPERATIONS = ("flip", "truncate", "zero", "delete")


class Injected(NamedTuple):
    """What a fault did."""

    damaged: frozenset[int] = frozenset()  # finished epochs that it touched
    names: tuple[str, ...] = ()  # what somebody has to name; empty: nobody need say anything
    # puts right what no start can (a cable, a full disk); None: the next start recovers
    mend: Callable[[], None] | None = None


NOTHING = Injected()


def spoil(path: Path, operation: str, rng: Random) -> bool:
    """Damage a file; say whether it differs now."""
    good = path.read_bytes()
    path.unlink()
    if operation == "delete":
        return True
    bad = {"flip": flip, "truncate": truncate, "zero": zero}[operation](good, rng)
    path.write_bytes(bad)
    return bad != good


def of_epoch(pattern: str, operation: str, place: Place, rng: Random) -> Injected:
    """Damage a file of a finished epoch."""
    number = rng.randrange(place.n_done)
    paths = sorted(place.epoch(number).glob(pattern))
    if not paths:
        return NOTHING
    path = rng.choice(paths)
    good = path.read_bytes()
    if not spoil(path, operation, rng):
        return NOTHING
    if path.exists() and _told(good) == _told(path.read_bytes()) != []:
        return Injected(frozenset({number}))  # what it says of a checkpoint that nobody reads
    # a list of checksums may now name a file that was never there: then its place is named
    return Injected(frozenset({number}), (path.name, "SHA256SUMS", f"/{path.parent.name}/"))


def _told(content: bytes) -> list[bytes]:
    """Return the lines of a list of checksums but for the checkpoint's; nothing of other files."""
    lines = content.split(b"\n")
    is_list = any(line.endswith(b"  record.json") for line in lines)
    return [line for line in lines if not line.endswith(b"  checkpoint.npz")] if is_list else []


def of_checkpoint(operation: str, place: Place, rng: Random) -> Injected:
    """Damage the latest checkpoint: costs weights where another epoch is to come."""
    path = next(place.epoch(place.n_done - 1).glob("checkpoint.*"))
    is_read = place.n_done < template.EPOCHS
    if not spoil(path, operation, rng) or not is_read:
        return NOTHING
    return Injected(names=(path.name, "checkpoint"))


def of_data(name: str, operation: str, place: Place, rng: Random) -> Injected:
    """Damage a file of the data set; whoever has nothing left to train does not read it."""
    path = place.own(next((place.folder / "data").glob(f"*/{name}")))
    if not spoil(path, operation, rng) or place.n_done == template.EPOCHS:
        return NOTHING
    good = place.source / path.relative_to(place.folder)

    def mend() -> None:
        path.unlink(missing_ok=True)
        shutil.copy2(good, path)

    return Injected(names=(path.name, path.parent.name), mend=mend)


def data_unplugged(place: Place, rng: Random) -> Injected:
    """Take the medium with the data set away, and bring it back after a start."""
    data, away = place.folder / "data", place.folder / "results/away"
    data.rename(away)

    def mend() -> None:
        shutil.rmtree(data, ignore_errors=True)
        away.rename(data)

    return Injected(names=() if place.n_done == template.EPOCHS else ("data",), mend=mend)


def receipt(operation: str, place: Place, rng: Random) -> Injected:
    """Damage the receipt: it is made again from the records."""
    path = place.folder / "results/receipt.json"
    shutil.copy2(place.folder / "receipt.json", path)
    spoil(path, operation, rng)
    return NOTHING


def history(operation: str, place: Place, rng: Random) -> Injected:
    """Damage the note of what was measured last."""
    for path in (place.folder / "tmp").glob("*/last-measurement.json"):
        spoil(path, operation, rng)
    return NOTHING


def attempt(place: Place, rng: Random) -> Injected:
    """Leave a damaged attempt behind, with files that are half written."""
    if place.n_done == template.EPOCHS:  # no epoch is to come
        shutil.rmtree(place.epoch(place.n_done - 1))
    folder = Path(place.runs.attempt_path(min(place.n_done, template.EPOCHS - 1)))
    folder.mkdir()
    good = json.dumps({"started_unix_s": 1.7e9, "pid": 1}).encode()
    content = rng.choice((flip, truncate, zero))(good, rng)
    content = rng.choice((content, b"[]", b'{"started_unix_s": "x"}', b"1", b"null"))
    (folder / "attempt.json").write_bytes(content)
    for name in ("record.json.4711.tmp", "samples-host.csv", "checkpoint.npz"):
        if rng.random() < 0.5:
            (folder / name).write_bytes(rng.randbytes(rng.randrange(200)))
    return Injected(frozenset({template.EPOCHS - 1}))


def epoch_deleted(place: Place, rng: Random) -> Injected:
    """Remove a finished epoch by hand."""
    number = rng.randrange(place.n_done)
    shutil.rmtree(place.epoch(number))
    return Injected(frozenset({number}))


def run_deleted(place: Place, rng: Random) -> Injected:
    """Remove all of measured/."""
    shutil.rmtree(place.folder / "measured")
    return Injected(frozenset(range(place.n_done)))


def epoch_of_another(place: Place, rng: Random) -> Injected:
    """Put one epoch's folder in the place of another."""
    if place.n_done < 2:
        return NOTHING
    number = rng.randrange(place.n_done)
    other = rng.choice([n for n in range(place.n_done) if n != number])
    shutil.rmtree(place.epoch(number))
    shutil.copytree(place.epoch(other), place.epoch(number))
    path = place.epoch(number)
    # what was written like that is not damaged: a person has to decide
    return Injected(frozenset({number}), (path.name,), lambda: shutil.rmtree(path))


def unreadable(place: Place, rng: Random) -> Injected:
    """Put a folder where a file of an epoch has to be: reading fails, whoever asks."""
    number = rng.randrange(place.n_done)
    path = rng.choice(sorted(p for p in place.epoch(number).iterdir() if p.suffix != ".npz"))
    good = path.read_bytes()
    path.unlink()
    path.mkdir()

    def mend() -> None:
        if path.is_dir():
            path.rmdir()
            path.write_bytes(good)

    return Injected(frozenset({number}), (path.name,), mend)


def file_faults() -> Iterator[tuple[str, Callable[[Place, Random], Injected], float]]:
    """Give name, fault and share of each."""
    files = ("record.json", "minibatches.npy", "samples-*.csv", "telemetry.json", "SHA256SUMS")
    for operation in OPERATIONS:
        for pattern in files:
            name = f"{operation} {pattern}"
            yield name, functools.partial(of_epoch, pattern, operation), 5
        yield f"{operation} checkpoint", functools.partial(of_checkpoint, operation), 5
        yield f"{operation} receipt", functools.partial(receipt, operation), 2
        yield f"{operation} last-measurement", functools.partial(history, operation), 2
        for name in ("manifest.json", "train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
            yield f"{operation} {name}", functools.partial(of_data, name, operation), 2
    yield "data unplugged", data_unplugged, 3
    yield "damaged attempt", attempt, 8
    yield "epoch deleted", epoch_deleted, 6
    yield "run deleted", run_deleted, 3
    yield "epoch of another", epoch_of_another, 3
    yield "unreadable file", unreadable, 5


# -- of a job under way ----------------------------------------------------------------------------

LONGEST_S = 1.6  # of an undisturbed job that trains three epochs, and a little more
NOBODY = 65534
CALLS = {"trainer": 80, "sampler": 17}  # about, of an epoch, that write its record
_MS_REMOUNT = 32


def ended(place: Place, prepare: Callable[[], None]) -> Start:
    """Start the job, prepared in the child, and wait for its end."""
    start = place.start(prepare, collect=False)
    start.wait()
    return start


def sampled_by(program: list[str]) -> None:
    """Let each sampler of this process be another program."""
    begin = Sampler.start.func  # type: ignore[attr-defined]
    Sampler.start = functools.partial(begin, program=program)  # type: ignore[method-assign]


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
    return NOTHING, [ended(place, lambda: resource.setrlimit(what, (limit, limit)))]


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
            sampled_by(sampler_failing(plan, template.POWER))

    return ended(place, prepare)


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

    start = ended(place, prepare)
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
        sampled_by(sampler_with({**template.POWER, "faults": jumping}))

    return NOTHING, [ended(place, prepare)]


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

    return NOTHING, [ended(place, prepare)]


Running = Callable[[Place, Random], tuple[Injected, list[Start]]]


def process_faults(folder: Path) -> Iterator[tuple[str, Running, float]]:
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
