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

import psutil

from benchmarks import template
from benchmarks.faults.calls import (
    CODES,
    KILLED,
    LASTING,
    ONCE,
    SHORT,
    Plan,
    install,
    sampler_failing,
)
from benchmarks.faults.place import Place, Start, descendants
from benchmarks.fuzz.mutations import flip, truncate, zero
from benchmarks.synthetic import sampler_with
from epochwatt.board.telemetry.client import Sampler

Random = random.Random
DAMAGE = {"flip": flip, "truncate": truncate, "zero": zero, "delete": None}


class Injected(NamedTuple):
    """What a fault did."""

    damaged: frozenset[int] = frozenset()  # finished epochs that it touched
    names: tuple[str, ...] = ()  # what somebody has to name; empty: nobody need say anything
    # puts right what no start can (a cable, a full disk); None: the next start recovers
    mend: Callable[[], None] | None = None


NOTHING = Injected()
Inject = Callable[[Place, Random], Injected]


class Fault(NamedTuple):
    """A fault, its row of the table, how often it is drawn, and after how many epochs it comes."""

    name: str
    row: str
    inject: Inject
    share: float
    done: tuple[int, ...]


def spoil(path: Path, operation: str, rng: Random) -> bool:
    """Damage a file; say whether it differs now."""
    good = path.read_bytes()
    path.unlink()  # it may be a hard link
    damage = DAMAGE[operation]
    if damage is None:
        return True
    path.write_bytes(damage(good, rng))
    return path.read_bytes() != good


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
    names = (path.name, "checkpoint")
    return Injected(names=names) if spoil(path, operation, rng) and is_read else NOTHING


def of_data(name: str, operation: str, place: Place, rng: Random) -> Injected:
    """Damage a file of the data set; whoever has nothing left to train does not read it."""
    path = next((place.folder / "data").glob(f"*/{name}"))
    if not spoil(path, operation, rng) or place.n_done == template.EPOCHS:
        return NOTHING
    good = place.source / path.relative_to(place.folder)
    return Injected(names=(path.name, path.parent.name), mend=lambda: shutil.copy2(good, path))


def data_unplugged(place: Place, rng: Random) -> Injected:
    """Take the medium with the data set away, and bring it back after a start."""
    data, away = place.folder / "data", place.folder / "results/away"
    data.rename(away)

    def mend() -> None:
        shutil.rmtree(data, ignore_errors=True)
        away.rename(data)

    return Injected(names=() if place.n_done == template.EPOCHS else ("data",), mend=mend)


def of_note(pattern: str, operation: str, place: Place, rng: Random) -> Injected:
    """Damage a receipt, which is made again, or the note of what was measured last."""
    shutil.copy2(place.folder / "receipt.json", place.folder / "results")
    for path in place.folder.glob(pattern):
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
    number, other = rng.sample(range(place.n_done), 2)
    path = place.epoch(number)
    shutil.rmtree(path)
    shutil.copytree(place.epoch(other), path)
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


def file_faults() -> Iterator[Fault]:
    """Give the faults that damage files."""
    done = (template.EPOCHS - 1, template.EPOCHS)
    digits = ("manifest.json", "train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    kinds: list[tuple[str, str, Callable[..., Injected], float]] = [
        *((name, name, functools.partial(of_epoch, name), 5.0) for name in (
            "record.json", "minibatches.npy", "samples-*.csv", "telemetry.json", "SHA256SUMS")),
        ("checkpoint", "checkpoint", of_checkpoint, 5),
        ("receipt", "receipt or note", functools.partial(of_note, "results/receipt.json"), 2),
        ("last-measurement", "receipt or note",
         functools.partial(of_note, "tmp/*/last-measurement.json"), 2),
        *((name, "data set", functools.partial(of_data, name), 2) for name in digits),
    ]  # fmt: skip
    for operation in DAMAGE:
        for name, row, inject, share in kinds:
            row = f"{row} flipped, cut, zeroed, deleted"
            inject = functools.partial(inject, operation)
            yield Fault(f"{operation} {name}", row, inject, share, done)
    for name, inject, share in (
        ("data unplugged", data_unplugged, 3),
        ("damaged attempt", attempt, 8),
        ("epoch deleted", epoch_deleted, 6),
        ("run deleted", run_deleted, 3),
        ("epoch of another", epoch_of_another, 3),
        ("unreadable file", unreadable, 5),
    ):
        yield Fault(name, name, inject, share, done)


# -- of a job under way ----------------------------------------------------------------------------

LONGEST_S = 1.6  # of an undisturbed job that trains three epochs, and a little more
NOBODY = 65534
CALLS = {"trainer": 80, "sampler": 17}  # about, of an epoch, that write its record
_MS_REMOUNT = 32


def sampled_by(program: list[str]) -> None:
    """Let each sampler of this process be another program."""
    begin = Sampler.start.func  # type: ignore[attr-defined]
    Sampler.start = functools.partial(begin, program=program)  # type: ignore[method-assign]


def under_way(place: Place, rng: Random, longest_s: float = LONGEST_S) -> Start:
    """Start the job; return it at any moment."""
    start = place.start()
    start.join(rng.uniform(0.0, longest_s))
    return start


def signalled(number: int, whom: str, place: Place, rng: Random) -> Injected:
    """Send a signal to the trainer, its group, a worker or the sampler at any moment."""
    if whom == "worker":
        place.run_factors["num_workers"] = rng.choice((1, 2))
    start = under_way(place, rng, LONGEST_S * (1.5 if whom == "worker" else 1.0))
    with suppress(ProcessLookupError, psutil.NoSuchProcess):
        if not start.is_alive():
            pass
        elif whom == "trainer":
            os.kill(start.pid, number)
        elif whom == "group":
            os.killpg(start.pid, number)
        else:
            for process in descendants(start.pid):
                is_sampler = "epochwatt.board.telemetry" in " ".join(process.cmdline())
                if is_sampler == (whom == "sampler"):
                    process.send_signal(number)
                    break
    start.wait()
    return NOTHING


def stopped(place: Place, rng: Random) -> Injected:
    """Stop the whole job for a while, then let it go on."""
    start = under_way(place, rng)
    start.send_all(signal.SIGSTOP)
    time.sleep(rng.uniform(0.05, 0.6))
    start.send_all(signal.SIGCONT)
    start.wait()
    return NOTHING


def power_cut(place: Place, rng: Random) -> Injected:
    """Kill everything, then lose of what was not flushed any part: cut, zeros, nothing at all."""
    start = under_way(place, rng)
    start.send_all(signal.SIGKILL)
    start.wait()
    for folder in Path(place.runs.path).glob("*.unfinished"):
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            whole, cut = content, content[: rng.randrange(len(content) + 1)]
            left = rng.choice((None, cut, bytes(len(content)), whole, whole))
            if left is None:
                path.unlink()
            else:
                path.write_bytes(left)
        if rng.random() < 0.2:
            shutil.rmtree(folder)
    shutil.rmtree(place.folder / "tmp")  # what lies in memory is gone
    (place.folder / "tmp").mkdir()
    return NOTHING


def full_disk(place: Place, rng: Random) -> Injected:
    """Let measured/ lie on a small tmpfs that fills up at some moment; then it grows."""
    measured = place.folder / "measured"
    held = place.folder / "results/held"
    measured.rename(held)
    measured.mkdir()
    used = sum(p.stat().st_size + 4096 for p in held.rglob("*"))
    _mount(measured, used + rng.randrange(4096, 900_000), 0)
    try:
        shutil.copytree(held, measured, dirs_exist_ok=True)
        place.start().wait()
        _mount(measured, 64 << 20, _MS_REMOUNT)
        place.start(collect=True).wait()
        shutil.rmtree(held)
        shutil.copytree(measured, held)
    finally:
        subprocess.run(["umount", "-l", str(measured)], check=True)
    measured.rmdir()
    held.rename(measured)
    return NOTHING


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


def limited(what: int, low: int, high: int, place: Place, rng: Random) -> Injected:
    """Let the job reach a limit: of file sizes, of descriptors, of memory."""
    limit = rng.randrange(low, high)
    if what == resource.RLIMIT_AS:
        limit += psutil.Process().memory_info().vms
    place.start(lambda: resource.setrlimit(what, (limit, limit))).wait()
    return NOTHING


def failing_call(how: tuple[str, ...], code: int, place: Place, rng: Random) -> Injected:
    """Let a call fail that writes a record, in the trainer or in the sampler: the nth of them."""
    whose = rng.choice(list(CALLS))
    nth = rng.randrange(1, CALLS[whose] * (template.EPOCHS - place.n_done))
    plan = Plan(nth, rng.choice(how), code)

    def prepare() -> None:
        if whose == "trainer":
            install(plan)
        else:
            sampled_by(sampler_failing(plan, template.POWER))

    place.start(prepare).wait()
    return NOTHING


def read_only(place: Place, rng: Random) -> Injected:
    """Let a user who may not write measured/, or the receipt, or tmp start the job."""
    closed = rng.choice(
        (Path(place.runs.path), place.folder / "measured", place.folder / "results")
    )
    for path in [place.folder, *place.folder.rglob("*")]:
        inside = path.relative_to(place.folder).parts
        if inside[:1] != ("data",) and (inside[:1] != ("tmp",) or len(inside) == 1):
            os.chmod(path, 0o777 if path.is_dir() else 0o666)
    os.chmod(closed, 0o555)
    place.start(lambda: os.setuid(NOBODY) if os.getuid() == 0 else None).wait()
    os.chmod(closed, 0o777)
    return NOTHING


def clock_set(place: Place, rng: Random) -> Injected:
    """Let the wall clock of trainer and sampler jump at any moment, either way."""
    jump_s = rng.choice((-1, 1)) * rng.choice((1.0, 3600.0, 1e8))
    at_s = rng.uniform(0.0, LONGEST_S)
    jumping = {"wall_jump_after": float(rng.randrange(1, 20)), "wall_jump_s": jump_s}

    def prepare() -> None:
        real, since_s = time.time, time.monotonic()
        time.time = lambda: real() + (jump_s if time.monotonic() - since_s > at_s else 0.0)
        sampled_by(sampler_with({**template.POWER, "faults": jumping}))

    place.start(prepare).wait()
    return NOTHING


def two_at_once(place: Place, rng: Random) -> Injected:
    """Start the same job twice, and kill the first at any moment."""
    first = under_way(place, rng, 0.3)
    second = place.start()
    first.join(rng.uniform(0.0, LONGEST_S))
    if rng.random() < 0.5:
        first.kill()
    first.wait()
    second.wait()
    return NOTHING


def process_faults(folder: Path) -> Iterator[Fault]:
    """Give the faults of a job under way; `folder` is where a tmpfs is tried."""
    done = tuple(range(template.EPOCHS))

    def fault(name: str, inject: Callable[..., Injected], share: float, row: str = "") -> Fault:
        return Fault(name, row or name, inject, share, done)

    for whom in ("group", "trainer", "worker", "sampler"):
        yield fault(f"kill -9 {whom}", functools.partial(signalled, signal.SIGKILL, whom), 10)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for whom in ("trainer", "group"):
            inject = functools.partial(signalled, number, whom)
            row = "SIGINT, SIGTERM, SIGHUP to trainer or group"
            yield fault(f"{number.name} {whom}", inject, 6, row)
    yield fault("stop and continue", stopped, 10)
    yield fault("power cut", power_cut, 15)
    yield fault("kill -9 while writing", functools.partial(failing_call, (KILLED,), 0), 15)
    if os.getuid() == 0 and may_mount(folder):
        yield fault("full disk", full_disk, 12)
    sizes = {"file size": (resource.RLIMIT_FSIZE, 1, 300_000)}
    sizes |= {"descriptors": (resource.RLIMIT_NOFILE, 4, 40)}
    sizes |= {"memory": (resource.RLIMIT_AS, 1 << 16, 1 << 26)}
    for name, bounds in sizes.items():
        yield fault(f"limit of {name}", functools.partial(limited, *bounds), 8)
    for code in CODES:
        inject = functools.partial(failing_call, (ONCE, SHORT, LASTING), code)
        row = "ENOSPC, EIO, EROFS, EDQUOT of a call"
        yield fault(f"{errno.errorcode[code]} of a call", inject, 5, row)
    yield fault("read-only folder", read_only, 8)
    yield fault("clock set", clock_set, 8)
    yield fault("two at once", two_at_once, 6)
