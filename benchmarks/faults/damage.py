"""Faults of files: damaged, cut, zeroed, deleted; found by the next start."""

import functools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import template
from benchmarks.faults.place import Place
from benchmarks.fuzz.mutations import flip, truncate, zero

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
    return Injected(names=(path.name, path.parent.name), mend=lambda: _copied(good, path))


def _copied(good: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    shutil.copy2(good, path)


def data_unplugged(place: Place, rng: Random) -> Injected:
    """Take the medium with the data set away, and bring it back after a start."""
    data, away = place.folder / "data", place.folder / "results/away"
    data.rename(away)
    if place.n_done == template.EPOCHS:
        return Injected(mend=lambda: _back(away, data))
    return Injected(names=("data",), mend=lambda: _back(away, data))


def _back(away: Path, data: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    away.rename(data)


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
    (path,) = (place.epoch(number),)
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


def faults() -> Iterator[tuple[str, Callable[[Place, Random], Injected], float]]:
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
