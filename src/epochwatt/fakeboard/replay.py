"""A board made of a bundle that somebody sent (`epochwatt bug-report`): its files, as they were.

A bundle comes from anywhere, so nothing in it is believed: only ordinary files are taken, no more
than any board has, and no name may lead out of the folder, nor through a link of the bundle's.
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

from epochwatt.device.board_files import NVPMODEL_CONF, Conf, Mode, Param, conf_text
from epochwatt.errors import ConfigError, DataError
from epochwatt.fakeboard.tree import IO_ERROR

TOP = "epochwatt-bundle"
SCHEMA_VERSION = 1
MAX_FILES, MAX_BYTES = 20000, 65536  # in a bundle; of each file of the board
MAX_CONTENTS_BYTES = 10_000_000
MAX_UNPACKED_BYTES = 100_000_000  # of the whole archive; a board's has less than one

_TEGRASTATS = """#!/bin/sh
# epochwatt stand-in: says again and again what the real one said
while :; do
  while read -r line; do
    echo "$line"
    sleep 1
  done < {lines}
done
"""


def unpack(bundle: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Make a board's folder of a bundle and return it; it stands for `/` of that board.

    Files hold the values they had; one that could not be read cannot be read here either, by root
    no more than by anybody. nvpmodel.conf is written anew from the facts in the bundle, tegrastats
    repeats its lines; there is no nvpmodel, no jetson_clocks and no root helper.

    Parameters
    ----------
    bundle : the file
    folder : missing or empty

    Raises
    ------
    ConfigError : there is something in the folder
    DataError : the file is no bundle, or one that nobody honest made
    """
    root = Path(folder).resolve()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty", do="unpack the board into a new folder")
    members = _members(Path(bundle))
    contents = _contents(members)
    try:
        _fill(root, members, contents)
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{bundle} is damaged: {error!r}") from error
    return root


class _Limited(io.RawIOBase):
    """Content of an archive up to a limit: a few kB can unpack to any number of bytes."""

    def __init__(self, file: gzip.GzipFile, limit: int) -> None:
        self._file, self._left = file, limit

    def read(self, size: int = 0) -> bytes:
        content = self._file.read(min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise DataError(f"the archive is larger than any bundle: {MAX_UNPACKED_BYTES} bytes")
        return content


def _fill(root: Path, members: dict[str, bytes], contents: dict[str, Any]) -> None:
    """Write files first and links last: nothing is written through a link of the bundle's."""
    for name, content in members.items():
        if name.startswith("files/"):
            _write(root, name.removeprefix("files/"), content)
    if contents["nvpmodel"] is not None:
        _write(root, NVPMODEL_CONF, _conf(contents["nvpmodel"]).encode())
    if "tegrastats.txt" in members:
        _write_tegrastats(root, members["tegrastats.txt"])
    for name, error in contents["errors"].items():
        _spoil(root, _place(root, name), error)
    for name, target in contents["links"].items():
        link, aim = _place(root, name), _place(root, target)
        _make_parents(root, link)
        link.symlink_to(os.path.relpath(aim, link.parent))


def _members(bundle: Path) -> dict[str, bytes]:
    """Return name -> content of the bundle's ordinary files."""
    files: dict[str, bytes] = {}
    try:
        with (
            gzip.open(bundle) as unpacked,
            tarfile.open(fileobj=_Limited(unpacked, MAX_UNPACKED_BYTES), mode="r|") as archive,
        ):
            for member in archive:
                name = member.name.removeprefix(TOP + "/")
                limit = MAX_BYTES if name.startswith("files/") else MAX_CONTENTS_BYTES
                if not member.isreg() or name == member.name:
                    raise DataError(f"{bundle}: {member.name} has no place in a bundle")
                if member.size > limit or len(files) >= MAX_FILES:
                    raise DataError(f"{bundle} is larger than any bundle")
                file = archive.extractfile(member)
                files[name] = file.read() if file is not None else b""
    except (OSError, EOFError, zlib.error, ValueError, tarfile.TarError) as error:
        raise DataError(f"{bundle} is no bundle of `epochwatt bug-report`: {error}") from error
    return files


def _contents(members: dict[str, bytes]) -> dict[str, Any]:
    """Return bundle.json; DataError where it is none of this version."""
    try:
        contents = json.loads(members["bundle.json"])
        version = contents["schema_version"]
        n_named = len(contents["links"]) + len(contents["errors"])
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"the bundle has no bundle.json that can be read: {error!r}") from error
    if version != SCHEMA_VERSION:
        raise DataError(f"the bundle is of version {version}, not {SCHEMA_VERSION}")
    if n_named > MAX_FILES:
        raise DataError("the bundle has more links than any board")
    return dict(contents)


def _place(root: Path, name: str) -> Path:
    """Return where a file of the board lies; DataError for a name that leads out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise DataError(f"the bundle names a file {name!r}, which is in no board's folder")
    return root.joinpath(*parts)


def _make_parents(root: Path, path: Path) -> None:
    """Make the folders above a file; DataError where one of them is a link.

    The writer gives every file its name without links, so only a forger leads through one; and a
    link made behind a link would count its `..` from another folder, which can be outside.
    """
    for folder in reversed(path.relative_to(root).parents):
        here = root / folder
        if here.is_symlink():
            raise DataError(f"the bundle leads through a link: {folder}")
        here.mkdir(parents=True, exist_ok=True)


def _write(root: Path, name: str, content: bytes) -> None:
    path = _place(root, name)
    _make_parents(root, path)
    path.write_bytes(content)


def _spoil(root: Path, path: Path, error: dict[str, Any]) -> None:
    """Make a file that fails as the board's did: when it is opened, or when it is read.

    A file mode would not keep root out; a socket cannot be opened by anybody.
    """
    _make_parents(root, path)
    if error.get("at") == "read":
        path.symlink_to(IO_ERROR)
    else:
        os.mknod(path, stat.S_IFSOCK | 0o600)


def _conf(facts: dict[str, Any]) -> str:
    """Return the facts of an nvpmodel.conf in its grammar."""
    params = {name: Param(param["type"], param["paths"]) for name, param in facts["params"].items()}
    modes = [Mode(mode["id"], mode["name"], mode["settings"]) for mode in facts["modes"]]
    text = conf_text(Conf(params, modes, facts["default_id"]))
    return "# from a bundle (epochwatt stand-in)\n" + text


def _write_tegrastats(root: Path, lines: bytes) -> None:
    _write(root, "usr/lib/epochwatt-stand-in/tegrastats.txt", lines)
    kept = root / "usr/lib/epochwatt-stand-in/tegrastats.txt"
    _write(root, "usr/bin/tegrastats", _TEGRASTATS.format(lines=shlex.quote(str(kept))).encode())
    (root / "usr/bin/tegrastats").chmod(0o755)
