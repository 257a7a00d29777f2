"""Make a fake board from the archive of a bug report (`epochwatt bug-report`).

An archive comes from anywhere, so nothing in it is trusted: only ordinary files are read, no more
than any board has, and no name may lead out of the folder or through a link of the archive.
"""

import gzip
import io
import json
import os
import shlex
import stat
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from epochwatt.board.device.board_files import NVPMODEL_CONF, Mode, Param, conf_text
from epochwatt.errors import ConfigError, DataError
from tests.fakeboard.tree import IO_ERROR

TOP = "epochwatt-bundle"
SCHEMA_VERSION = 1
MAX_FILES, MAX_BYTES = 20000, 65536  # in an archive; of each file of the board
MAX_OTHER_BYTES = 10_000_000  # of each other file
MAX_UNPACKED_BYTES = 100_000_000  # of the whole archive; that of a board is below one million

_TEGRASTATS = """#!/bin/sh
# epochwatt stand-in: repeats the lines of the real one
while :; do
  while read -r line; do
    echo "$line"
    sleep 1
  done < {lines}
done
"""


def unpack(bundle: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Unpack an archive to the folder of a fake board, its `/`, and return the folder.

    Files have the values that they had on the board; those that could not be read cannot be read
    here either, not even by root. nvpmodel.conf is rebuilt from its facts, tegrastats repeats its
    lines; there is no nvpmodel, no jetson_clocks and no root helper.

    Raises ConfigError: the folder is not empty; DataError: the file is not such an archive, or a
    forged one.
    """
    root = Path(folder).resolve()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty", do="choose a new folder for the board")
    members = _members(Path(bundle))
    summary = _summary(members)
    try:
        _fill(root, members, summary)
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{bundle} is damaged: {error!r}") from error
    return root


class _Limited(io.RawIOBase):
    """A file that ends with an error after so many bytes: a few kB can unpack to any number."""

    def __init__(self, file: gzip.GzipFile, limit: int) -> None:
        self._file, self._left = file, limit

    def read(self, size: int = 0) -> bytes:
        content = self._file.read(min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise DataError(
                f"the archive is larger than any bug report: {MAX_UNPACKED_BYTES} bytes"
            )
        return content


def _fill(root: Path, members: dict[str, bytes], summary: dict[str, Any]) -> None:
    """Write files first and links last, so that nothing is written through a link."""
    for name, content in members.items():
        if name.startswith("files/"):
            _write(root, name.removeprefix("files/"), content)
    if summary["nvpmodel"] is not None:
        _write(root, NVPMODEL_CONF, _conf(summary["nvpmodel"]).encode())
    if "tegrastats.txt" in members:
        _write_tegrastats(root, members["tegrastats.txt"])
    for name, error in summary["errors"].items():  # it fails when it is opened, or read
        path = _place(root, name)
        _make_parents(root, path)
        if error.get("at") == "read":
            path.symlink_to(IO_ERROR)
        else:  # permissions do not stop root; a socket cannot be opened by anybody
            os.mknod(path, stat.S_IFSOCK | 0o600)
    for name, target in summary["links"].items():
        link, aim = _place(root, name), _place(root, target)
        _make_parents(root, link)
        link.symlink_to(os.path.relpath(aim, link.parent))


def _members(bundle: Path) -> dict[str, bytes]:
    """Return name -> content of the ordinary files of an archive."""
    members: dict[str, bytes] = {}
    try:
        with (
            gzip.open(bundle) as unpacked,
            tarfile.open(fileobj=_Limited(unpacked, MAX_UNPACKED_BYTES), mode="r|") as archive,
        ):
            for member in archive:
                name = member.name.removeprefix(TOP + "/")
                limit = MAX_BYTES if name.startswith("files/") else MAX_OTHER_BYTES
                if not member.isreg() or name == member.name:
                    raise DataError(f"{bundle}: {member.name} does not belong into a bug report")
                if member.size > limit or len(members) >= MAX_FILES:
                    raise DataError(f"{bundle} is larger than any bug report")
                file = archive.extractfile(member)
                members[name] = file.read() if file is not None else b""
    except (OSError, EOFError, zlib.error, ValueError, tarfile.TarError) as error:
        raise DataError(f"{bundle} was not made by `epochwatt bug-report`: {error}") from error
    return members


def _summary(members: dict[str, bytes]) -> dict[str, Any]:
    """Return bundle.json; DataError if it is not of this version."""
    try:
        summary = json.loads(members["bundle.json"])
        version = summary["schema_version"]
        n_named = len(summary["links"]) + len(summary["errors"])
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"no bundle.json that can be read: {error!r}") from error
    if version != SCHEMA_VERSION:
        raise DataError(f"the bug report has version {version}, not {SCHEMA_VERSION}")
    if n_named > MAX_FILES:
        raise DataError("the bug report has more links than any board")
    return dict(summary)


def _place(root: Path, name: str) -> Path:
    """Return the path of a file of the board; DataError if it leads out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise DataError(
            f"the bug report has a file {name!r}, which is outside of the board's folder"
        )
    return root.joinpath(*parts)


def _make_parents(root: Path, path: Path) -> None:
    """Make the folders above a file; DataError if one of them is a link.

    Names in an archive contain no links, so only a forged one leads through a link; and a link made
    behind a link would count its `..` from another folder, which can be outside.
    """
    for folder in reversed(path.relative_to(root).parents):
        here = root / folder
        if here.is_symlink():
            raise DataError(f"the bug report leads through a link: {folder}")
        here.mkdir(parents=True, exist_ok=True)


def _write(root: Path, name: str, content: bytes) -> None:
    path = _place(root, name)
    _make_parents(root, path)
    path.write_bytes(content)


def _conf(facts: dict[str, Any]) -> str:
    """Return the lines of an nvpmodel.conf; older reports have only what it was parsed to."""
    if "lines" in facts:
        return "\n".join(["# from a bundle (epochwatt stand-in)", *facts["lines"], ""])
    params = {name: Param(param["type"], param["paths"]) for name, param in facts["params"].items()}
    modes = [Mode(mode["id"], mode["name"], mode["settings"]) for mode in facts["modes"]]
    text = conf_text(params, modes, facts["default_id"])
    return "# from a bundle (epochwatt stand-in)\n" + text


def _write_tegrastats(root: Path, lines: bytes) -> None:
    _write(root, "usr/lib/epochwatt-stand-in/tegrastats.txt", lines)
    kept = root / "usr/lib/epochwatt-stand-in/tegrastats.txt"
    _write(root, "usr/bin/tegrastats", _TEGRASTATS.format(lines=shlex.quote(str(kept))).encode())
    (root / "usr/bin/tegrastats").chmod(0o755)
