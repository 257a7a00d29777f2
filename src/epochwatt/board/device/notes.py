"""Write notes that all users of a machine can read (board side: Python 3.6 grammar).

They name who measures and what was measured last; in one of them a user keeps what is to be put
back. An epoch normally follows the previous one of its run directly. If something else was measured
in between, caches and temperature have changed, so it is flagged `resumed` with reason and gap.

Each user writes only below `epochwatt-{uid}` in the system's folder for temporary files, and
reads the notes of all. So no user can make another's program write elsewhere, and a note by another
user is data of limited size.
"""

import errno
import json
import os
import re
import stat
import tempfile
import time
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional

from epochwatt.board.device import host
from epochwatt.board.records import shapes
from epochwatt.board.records.shapes import Document
from epochwatt.errors import RecordWriteError

LAST = "last-measurement.json"
MAX_BYTES = 16384  # of a note; ours have some 200, with the clocks of 500 CPUs 3000
_FOLDER = re.compile(r"epochwatt-([0-9]+)$")
_FOREIGN = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def _own_name() -> str:
    return f"epochwatt-{os.geteuid()}"


def write_note(name: str, content: Document) -> None:
    """Write this user's note, readable for all users, with boot and time; RecordWriteError."""
    note = dict(content, boot_id=host.boot_id(), t_mono_s=time.monotonic())
    with _own_folder() as folder:
        path = os.path.join(tempfile.gettempdir(), _own_name(), name)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(name, flags, 0o644, dir_fd=folder)
            try:
                _check(fd, path, stat.S_ISREG)
                os.fchmod(fd, 0o644)  # whatever the umask is: others read it
                os.ftruncate(fd, 0)
                os.write(fd, json.dumps(note).encode("utf-8"))
            finally:
                os.close(fd)
        except OSError as error:
            raise _write_error(path, error) from error


@contextmanager
def _own_folder() -> Iterator[int]:
    """Yield the descriptor of this user's folder, made if missing; raises RecordWriteError."""
    path = os.path.join(tempfile.gettempdir(), _own_name())
    try:
        try:
            os.mkdir(path, 0o755)
        except FileExistsError:
            pass
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _write_error(path, error) from error
    try:
        _check(fd, path, stat.S_ISDIR)
        os.fchmod(fd, 0o755)
        yield fd
    finally:
        os.close(fd)


def _check(fd: int, path: str, is_kind: Any) -> None:
    """Raise RecordWriteError for a file or folder that other users may change."""
    status = os.fstat(fd)
    if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
        raise _foreign_file_error(path)
    if status.st_mode & 0o022 or (is_kind is stat.S_ISREG and status.st_nlink != 1):
        raise _foreign_file_error(path)


def _foreign_file_error(path: str) -> RecordWriteError:
    return RecordWriteError(
        f"{path} is not this user's alone; another user may have placed it",
        do="look at it and remove it, or set TMPDIR to another folder",
    )


def _write_error(path: str, error: OSError) -> RecordWriteError:
    if error.errno in _FOREIGN:
        return _foreign_file_error(path)
    return RecordWriteError(
        f"cannot write {path}: {error.strerror}", do="make it writable for this user"
    )


def remove_note(name: str) -> None:
    """Remove this user's note, if there is one; raises RecordWriteError."""
    with _own_folder() as folder:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            path = os.path.join(tempfile.gettempdir(), _own_name(), name)
            raise _write_error(path, error) from error


def own_note(name: str) -> Optional[Document]:
    """Return the note of that name that this user wrote since this boot, whole; None: none."""
    path = os.path.join(tempfile.gettempdir(), _own_name())
    note = _read(path, name, os.geteuid())
    if note is None or note.get("boot_id") != host.boot_id():
        return None
    return note


def newest_note(name: str) -> Optional[Document]:
    """Return the note of that name that any user wrote last since this boot; None: there is none.

    A note by another user may be wrong, but its texts are cut and hold no control characters.
    """
    now_s, boot_id = time.monotonic(), host.boot_id()
    notes = [note for note in _notes(name) if note.get("boot_id") == boot_id]
    notes = [note for note in notes if shapes.is_number(note.get("t_mono_s"))]
    notes = [note for note in notes if 0 <= note["t_mono_s"] <= now_s]
    if not notes:
        return None
    newest = max(notes, key=lambda note: note["t_mono_s"])
    return {_printable(key): _printable(value) for key, value in newest.items()}


def _printable(value: Any) -> Any:
    if isinstance(value, (int, float)) or value is None:
        return value
    return "".join(c if c.isprintable() else "?" for c in str(value)[:200])


def _notes(name: str) -> List[Document]:
    """Read the notes of this name that all users of the machine left."""
    notes = []
    try:
        folders = sorted(os.listdir(tempfile.gettempdir()))
    except OSError:
        return []
    for folder in folders:
        match = _FOLDER.match(folder)
        path = os.path.join(tempfile.gettempdir(), folder)
        note = _read(path, name, int(match.group(1))) if match else None
        if note is not None:
            notes.append(note)
    return notes


def _read(path: str, name: str, uid: int) -> Optional[Document]:
    """Return a user's note; None if that user did not write it or it is not a note."""
    descriptors: List[int] = []
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        descriptors.append(folder)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not make us wait
        file = os.open(name, flags, dir_fd=folder)
        descriptors.append(file)
        if not os.fstat(folder).st_uid == os.fstat(file).st_uid == uid:
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        value = json.loads(os.read(file, MAX_BYTES).decode("utf-8"))
        return value if isinstance(value, dict) else None
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def remember(measurement_id: str, name: str, number: int) -> None:
    """Note that this measurement is the latest; call it while holding the machine lock."""
    write_note(LAST, {"measurement_id": measurement_id, "run": name, "epoch": number})


def interruption(previous: Document) -> Optional[Document]:
    """Find out why an epoch does not directly follow `previous`, a record's meta; None: it does.

    The answer has `reason` (str) and `gap_s` (float, seconds since the end of `previous`).
    """
    gap_s = max(0.0, time.time() - previous["t_end_unix_s"])
    if previous["boot_id"] != host.boot_id():
        return {"reason": "the machine was restarted, or it is another one", "gap_s": gap_s}
    last = newest_note(LAST)
    if last is None:
        return {"reason": "what was measured in between is not known", "gap_s": gap_s}
    if last.get("measurement_id") == previous["measurement_id"]:
        return None
    reason = "epoch {} of {} was measured in between".format(last.get("epoch"), last.get("run"))
    return {"reason": reason, "gap_s": gap_s}
