"""Write files that are either whole or absent (board side: Python 3.6 grammar).

A file is written under a temporary name, flushed to the disk and renamed; a folder likewise.
"""

import csv
import errno
import hashlib
import json
import os
from contextlib import contextmanager
from typing import Any, Iterator, List

from epochwatt.board.records import shapes
from epochwatt.errors import DamagedError, RecordError, RecordWriteError

UNMEASURED = "nothing of it counts as measured"  # a `consequence` in `writing`

ADVICE = {  # errno -> what to do
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EFBIG: "a file size limit was reached (ulimit -f)",
    errno.EACCES: "this user may not write there; change the owner or the permissions",
    errno.EPERM: "this user may not write there; change the owner or the permissions",
    errno.EROFS: "the file system is read-only: mount it writable, or choose another disk",
    errno.EISDIR: "that is a folder; name a file",
    errno.ENOENT: "there is no such file or folder; check the path",
    errno.ENOTDIR: "a part of the path is no folder; check the path",
    errno.EMFILE: "too many files are open (ulimit -n)",
    errno.ENOMEM: "the memory is full; end other programs (ulimit -a)",
}


@contextmanager
def writing(title: str, path: str, consequence: str = "") -> Iterator[None]:
    """Turn any OSError inside the block into a `RecordWriteError` with advice by its errno.

    `title`: what is written, such as "the receipt"; `consequence`: what a failure costs, for the
    message; empty: nothing, it is written again.
    """
    try:
        yield
    except OSError as error:
        reason = f"cannot write {title}: {error.strerror or error}"
        if consequence:
            reason += f"; {consequence}"
        advice = ADVICE.get(error.errno or 0, "mend that")
        raise RecordWriteError(reason, where=path, do=f"{advice}, then start again") from error


def sync_file(path: str, drop_from_cache: bool = False) -> None:
    """Flush a file (or folder) to the disk; optionally drop its pages from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        if drop_from_cache:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def write_bytes(path: str, content: bytes, durable: bool = True) -> None:
    """Write a file atomically: under a temporary name beside it, fsync, rename.

    Not `durable`: written in place without fsync, for what can be made again and lies in a folder
    that is itself renamed once it is complete.
    """
    if not durable:
        with open(path, "wb") as handle:
            handle.write(content)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.rename(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def write_json(path: str, value: Any, durable: bool = True) -> None:
    """Write a value as readable JSON (sorted keys, NaN refused), as `write_bytes` does."""
    text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode("utf-8"), durable)


def read_bytes(path: str) -> bytes:
    """Read a file; raise DamagedError when it is missing, RecordError when it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except FileNotFoundError as error:
        raise DamagedError(f"cannot read {path}: {error}") from error
    except OSError as error:  # a permission, say: nothing speaks against the file itself
        raise RecordError(f"cannot read {path}: {error}") from error


def read_json(path: str, shape: Any = shapes.ANY) -> Any:
    """Read a JSON file and check its shape (`records.shapes`); return its value.

    Raises DamagedError: it is missing or no JSON; RecordError: it cannot be read or has another
    shape.
    """
    return parse_json(read_bytes(path), path, shape)


def parse_json(content: bytes, path: str, shape: Any = shapes.ANY) -> Any:
    """Parse the content of the JSON file at `path` and check its shape; return its value.

    Raises DamagedError: it is no JSON; RecordError: it has another shape, so it was written like
    that and is not damaged.
    """
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"cannot read {path}: {error}") from error
    wrong = shapes.problem(value, shape)
    if wrong is not None:
        raise RecordError(f"{path} cannot be read: {wrong}")
    return value


def csv_rows(module: str, name: str) -> List[List[str]]:
    """Read the rows of a CSV table beside a module (its `__file__`), without the header."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))[1:]


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file, as hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()
