"""Who measures here, and what was measured last, for all users (board side: Python 3.6 grammar).

Each user writes only into a folder of the user's own,
`epochwatt-{uid}` in the system's folder for temporary files, and reads those of all. So nobody can
make another's program write anywhere else, and what somebody else says is data of a known size.
"""

import errno
import json
import os
import re
import stat
import tempfile
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional

from epochwatt.device import host
from epochwatt.errors import RecordWriteError

MAX_BYTES = 4096  # of a note; ours have some 200
_FOLDER = re.compile(r"epochwatt-([0-9]+)$")
_FOREIGN = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def _own_name() -> str:
    return "epochwatt-{}".format(os.geteuid())


def write_note(name: str, about: Dict[str, Any]) -> None:
    """Leave a note for all users; raises RecordWriteError.

    Parameters
    ----------
    name : of its file
    about : a few words each; when it was written is added
    """
    told = dict(about, boot_id=host.boot_id(), t_mono_s=time.monotonic())
    with _own_folder() as folder:
        path = os.path.join(tempfile.gettempdir(), _own_name(), name)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(name, flags, 0o644, dir_fd=folder)
            try:
                _check(fd, path, stat.S_ISREG)
                os.fchmod(fd, 0o644)  # whatever the umask is: others read it
                os.ftruncate(fd, 0)
                os.write(fd, json.dumps(told).encode("utf-8"))
            finally:
                os.close(fd)
        except OSError as error:
            raise _refused(path, error) from error


@contextmanager
def _own_folder() -> Iterator[int]:
    """Open this user's folder, made when missing; everything below it goes by the open folder."""
    path = os.path.join(tempfile.gettempdir(), _own_name())
    try:
        try:
            os.mkdir(path, 0o755)
        except FileExistsError:
            pass
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _refused(path, error) from error
    try:
        _check(fd, path, stat.S_ISDIR)
        os.fchmod(fd, 0o755)
        yield fd
    finally:
        os.close(fd)


def _check(fd: int, path: str, is_kind: Any) -> None:
    """Refuse what is not this user's alone; raises RecordWriteError."""
    about = os.fstat(fd)
    if not is_kind(about.st_mode) or about.st_uid != os.geteuid():
        raise _not_ours(path)
    if about.st_mode & 0o022 or (is_kind is stat.S_ISREG and about.st_nlink != 1):
        raise _not_ours(path)


def _not_ours(path: str) -> RecordWriteError:
    return RecordWriteError(
        "{} is not this user's alone: somebody may have put it there. Look at it and remove it, or "
        "set TMPDIR to another folder".format(path)
    )


def _refused(path: str, error: OSError) -> RecordWriteError:
    if error.errno in _FOREIGN:
        return _not_ours(path)
    return RecordWriteError(
        "cannot write {}: {}. This user has to be able to write there".format(path, error.strerror)
    )


def newest_note(name: str) -> Optional[Dict[str, Any]]:
    """Return the note of that name that any user wrote last since this boot; None: there is none.

    What another user wrote may be a lie, but it is a short one: texts are cut and hold no control
    characters.
    """
    now_s, boot_id = time.monotonic(), host.boot_id()
    told = [note for note in _notes(name) if note.get("boot_id") == boot_id]
    known = [note for note in told if _is_past(note.get("t_mono_s"), now_s)]
    if not known:
        return None
    newest = max(known, key=lambda note: note["t_mono_s"])
    return {_harmless(key): _harmless(value) for key, value in newest.items()}


def _is_past(t_s: Any, now_s: float) -> bool:
    return isinstance(t_s, (int, float)) and 0 <= t_s <= now_s


def _harmless(value: Any) -> Any:
    if isinstance(value, (int, float)) or value is None:
        return value
    return "".join(c if c.isprintable() else "?" for c in str(value)[:200])


def _notes(name: str) -> List[Dict[str, Any]]:
    found = []
    try:
        folders = sorted(os.listdir(tempfile.gettempdir()))
    except OSError:
        return []
    for folder in folders:
        match = _FOLDER.match(folder)
        path = os.path.join(tempfile.gettempdir(), folder)
        note = _read(path, name, int(match.group(1))) if match else None
        if note is not None:
            found.append(note)
    return found


def _read(path: str, name: str, uid: int) -> Optional[Dict[str, Any]]:
    """Return a user's note; None where that user did not write it or it is none."""
    opened: List[int] = []
    try:
        opened.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not make us wait
        opened.append(os.open(name, flags, dir_fd=opened[0]))
        about = [os.fstat(fd) for fd in opened]
        if any(each.st_uid != uid for each in about) or not stat.S_ISREG(about[1].st_mode):
            return None
        value = json.loads(os.read(opened[1], MAX_BYTES).decode("utf-8"))
        return value if isinstance(value, dict) else None
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        for fd in opened:
            os.close(fd)
