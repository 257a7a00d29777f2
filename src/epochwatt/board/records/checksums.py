"""Write and check `SHA256SUMS`, the checksums of a measurement (board side: Python 3.6).

The form is that of `sha256sum`, so `sha256sum -c SHA256SUMS` in the folder checks it, too. Whoever
reads a file of a measurement has it compared first: a flipped bit is damage, never a number.
Measurements from before there were checksums have no such file, and are read as they are.
"""

import hashlib
import os
import re
from typing import Dict, Optional

from epochwatt.board.records import files
from epochwatt.errors import DamagedError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\0\n]+)$")


def write_sums(folder: str, durable: bool = True) -> None:
    """Write `SHA256SUMS` over all files of a folder; raises OSError."""
    names = (name for name in os.listdir(folder) if name != SUMS)
    _write(folder, {name: files.sha256_of(os.path.join(folder, name)) for name in names}, durable)


def forget(folder: str, name: str) -> None:
    """Remove a deleted file's line from `SHA256SUMS`; raises OSError, or as `read_sums`."""
    sums = read_sums(folder)
    if sums is not None and name in sums:
        del sums[name]
        _write(folder, sums)


def _write(folder: str, sums: Dict[str, str], durable: bool = True) -> None:
    lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
    files.write_bytes(os.path.join(folder, SUMS), "".join(lines).encode("utf-8"), durable)


def read_sums(folder: str) -> Optional[Dict[str, str]]:
    """Read a folder's `SHA256SUMS`: file name -> hex digest; None: there is no such file.

    Raises DamagedError: a line of it is not a checksum.
    """
    path = os.path.join(folder, SUMS)
    if not os.path.exists(path):
        return None
    lines = files.read_bytes(path).decode("utf-8", "replace").splitlines()
    matches = [_LINE.match(line) for line in lines]
    if not all(matches):
        raise DamagedError(f"{path} was altered: it is not a list of checksums")
    return {match.group(2): match.group(1) for match in matches if match}


def fault(path: str, sums: Optional[Dict[str, str]], content: Optional[bytes] = None) -> str:
    """Compare a file with its folder's checksums; return the damage in words, "" for none.

    `sums` None: the folder has none, so nothing is compared; `content` None: the file is hashed
    piece by piece.
    """
    if sums is None:
        return ""
    expected = sums.get(os.path.basename(path))
    if expected is None:
        return f"{path} was altered: {SUMS} does not list it"
    actual = files.sha256_of(path) if content is None else hashlib.sha256(content).hexdigest()
    return "" if actual == expected else f"{path} was altered: its SHA-256 differs"


def read_checked(path: str, sums: Optional[Dict[str, str]]) -> bytes:
    """Read a file and compare it with `sums`; raises DamagedError where it was altered."""
    content = files.read_bytes(path)
    damage = fault(path, sums, content)
    if damage:
        raise DamagedError(damage)
    return content
