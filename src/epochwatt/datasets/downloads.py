"""Download files and check them against published checksums, or take files put there by hand.

A download goes to `NAME.part`, continues where an earlier one ended, and gets its name once it is
whole and its checksum right.
"""

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from epochwatt.errors import DataError

log = logging.getLogger(__name__)

TIMEOUT_S = 30.0  # without a byte
CHUNK = 1 << 20
PROGRESS_S = 10.0  # between two lines about the progress


class Wanted(NamedTuple):
    """A file that a data set is made from."""

    name: str
    md5: str  # as published; empty: none is
    urls: tuple[str, ...]  # tried in order
    size: str = ""  # for people, where it matters


class UnreachableError(Exception):
    """A file cannot be downloaded; the message says why."""


def obtain(wanted: list[Wanted], folder: Path, title: str) -> list[Path]:
    """Download the files that `folder` lacks, check the others; return the paths of all.

    Raises DataError: a file has another checksum, or cannot be downloaded (names, checksums and
    addresses are named, for a person to put files there); no room on the disk.

    `title`: of the data set, for messages
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in wanted:
        path = folder / file.name
        if not path.exists():
            try:
                download(file, path)
            except UnreachableError as error:
                raise missing(wanted, folder, title, str(error)) from error
        elif file.md5 and (md5 := md5_of(path)) != file.md5:
            raise DataError(
                f"cut short, or not a file of {title}",
                where=str(path),
                found=f"MD5 {md5}",
                allowed=f"MD5 {file.md5}",
                do="remove it and start again",
            )
    return [folder / file.name for file in wanted]


def missing(wanted: list[Wanted], folder: Path, title: str, reason: str) -> DataError:
    """Return the error that says which missing files to put into `folder`, and from where."""
    lines = [
        f"put these into {folder.resolve()} by hand and start again, or train on another "
        "source of this data set, such as dataset_source: synthetic"
    ]
    for file in wanted:
        if not (folder / file.name).exists():
            checksum = f"MD5 {file.md5}" if file.md5 else "no checksum is published"
            size = f", {file.size}" if file.size else ""
            origin = f"from {' or '.join(file.urls)}" if file.urls else "which you have to get"
            lines.append(f"{file.name}  ({checksum}{size})  {origin}")
    problem = "not all its files are here, and they cannot be downloaded"
    return DataError(problem, where=title, found=reason, do="\n    ".join(lines))


def download(file: Wanted, path: Path) -> None:
    """Download a file to `path` from the first address that gives it with the right checksum.

    Raises UnreachableError: none does; DataError: no room on the disk.
    """
    part = path.with_name(path.name + ".part")
    reasons = []
    for url in file.urls:
        try:
            resumed = _fetch(url, part)
            if resumed and file.md5 not in ("", md5_of(part)):
                log.warning("%s continued an earlier attempt and is wrong: from the start", path)
                part.unlink()
                _fetch(url, part)
            if file.md5 in ("", md5_of(part)):
                os.replace(part, path)
                return
            part.unlink()
            raise UnreachableError(f"what {url} gives has not the MD5 {file.md5}")
        except UnreachableError as error:
            reasons.append(str(error))
    raise UnreachableError("; ".join(reasons) or f"{file.name} may not be given to everybody")


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, as hex: it tells a damaged file, not a forged one."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, partial(hashlib.md5, usedforsecurity=False)).hexdigest()


def _fetch(url: str, part: Path) -> bool:
    """Download the rest of `part`; return whether it continued an earlier attempt.

    Raises UnreachableError: the network fails, or the file ends early; DataError: no room.
    """
    start = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    with _network(url):
        try:
            response = urlopen(request, timeout=TIMEOUT_S)
        except HTTPError as error:
            error.close()
            if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return True  # nothing is left to give: the file is whole, or wrong
            raise
    with response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            start = 0  # the server gives the whole file
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        free = shutil.disk_usage(part.parent).free
        if total is not None and total - start > free:
            raise DataError(
                f"no room to download {part.stem}",
                where=str(part.parent.resolve()),
                found=f"{free / 1e9:.1f} GB",
                allowed=f"{(total - start) / 1e9:.1f} GB or more",
                do="make room and start again",
            )
        log.info("downloading %s%s", url, f" from byte {start}" if start else "")
        logged_s, n_bytes = time.monotonic(), start
        with open(part, "ab" if start else "wb") as out:
            while True:
                with _network(url):
                    chunk = response.read(CHUNK)
                if not chunk:
                    break
                out.write(chunk)
                n_bytes += len(chunk)
                if time.monotonic() - logged_s > PROGRESS_S:
                    logged_s = time.monotonic()
                    total_mb = f" of {total / 1e6:.0f}" if total else ""
                    log.info("%s: %.0f%s MB", url, n_bytes / 1e6, total_mb)
            out.flush()
            os.fsync(out.fileno())
    if total is not None and (n_bytes := part.stat().st_size) != total:
        raise UnreachableError(f"{url}: the connection ended after {n_bytes} of {total} bytes")
    return start > 0


@contextmanager
def _network(url: str) -> Iterator[None]:
    """Turn errors of network and HTTP inside the block into UnreachableError."""
    try:
        yield
    except (OSError, HTTPException) as error:
        raise UnreachableError(f"{url}: {error}") from error
