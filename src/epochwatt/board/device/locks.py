"""Lock files and name their holder (board side: Python 3.6 grammar).

An `flock` belongs to the open file, so the kernel releases it when the holder dies, in whatever
way. The content of the file only names the holder.
"""

import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from typing import Any, Callable, Optional

from epochwatt.board.device import notes
from epochwatt.board.records.shapes import Document
from epochwatt.errors import LockedError, RecordWriteError

HOLDER = "measuring.json"  # the note of who measures


def machine_lock() -> "MachineLock":
    """Return the lock that a process holds while it measures on this machine."""
    return MachineLock()


def _unusable(verb: str, path: str, error: OSError) -> RecordWriteError:
    return RecordWriteError(
        f"cannot {verb} {path}: {error.strerror}", do="make it writable for this user"
    )


class HolderLock:
    """An exclusive lock on a file, made when missing, that names its holder."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: Optional[int] = None

    def acquire(
        self, holder: Document, on_wait: Optional[Callable[[str], None]] = None
    ) -> "HolderLock":
        """Take the lock, waiting for it if there is `on_wait`, and write down its holder.

        `on_wait` is called with a description of the present holder before each wait.

        Raises LockedError: another process holds it, and there is no `on_wait`; RecordWriteError:
        this user cannot open or make the file.
        """
        note = dict(holder, pid=os.getpid(), since=time.strftime("%Y-%m-%d %H:%M:%S"))
        while self._fd is None:
            fd = self._open()
            try:
                self._wait(fd, on_wait)
                try:
                    is_there = os.path.samestat(os.fstat(fd), os.stat(self.path))
                except FileNotFoundError:
                    is_there = False
                if is_there:  # else it was removed meanwhile, and locks nothing
                    self._write_holder(fd, note)
                    self._fd = fd
            finally:
                if self._fd is None:
                    os.close(fd)
        return self

    def _wait(self, fd: int, on_wait: Optional[Callable[[str], None]]) -> None:
        """Lock a file; raises LockedError: another process holds it, and there is no `on_wait`."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if on_wait is None:
                raise LockedError(f"{self.path} is held by {self.describe()}") from None
            on_wait(self.describe())
            fcntl.flock(fd, fcntl.LOCK_EX)

    def _open(self) -> int:
        """Open the file, or make it writable for all users; raises RecordWriteError."""
        # First without O_CREAT: a sticky folder refuses it on another user's file.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return self._checked(os.open(self.path, flags))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unusable("open", self.path, error) from error
        try:
            fd = self._checked(os.open(self.path, flags | os.O_CREAT, 0o666))
        except OSError as error:
            raise _unusable("make", self.path, error) from error
        if os.fstat(fd).st_uid == os.getuid():
            os.fchmod(fd, stat.S_IMODE(0o666))
        return fd

    def _checked(self, fd: int) -> int:
        """Return `fd` if it is a file with one name; else close it and raise RecordWriteError."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(fd)
            raise RecordWriteError(f"{self.path} is a link or a device", do="remove it")
        return fd

    def _write_holder(self, fd: int, note: Document) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(note).encode("utf-8"), 0)

    def _read_holder(self) -> Any:
        with open(self.path, "rb") as handle:
            return json.loads(handle.read(4096).decode("utf-8"))

    def describe(self) -> str:
        """Return a description of the holder."""
        try:
            return ", ".join(f"{k} {v}" for k, v in sorted(self._read_holder().items()))
        except (OSError, ValueError, AttributeError, RecursionError):
            return "a process that left no description"

    def release(self) -> None:
        """Give the lock back, also for forked processes that still have the file open."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> "HolderLock":
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


class MachineLock(HolderLock):
    """The lock on the machine: an flock on the system's folder for temporary files itself.

    All users share that folder, and on an ordinary machine only root can remove it. So one lock
    serves all users, and nobody writes where another user could have placed a link. The holder is
    named in a note (`device.notes`).

    It is not shared between users or containers whose `TMPDIR` are different folders.
    """

    def __init__(self) -> None:
        super().__init__(tempfile.gettempdir())

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _unusable("open", self.path, error) from error

    def _write_holder(self, fd: int, note: Document) -> None:
        notes.write_note(HOLDER, note)

    def _read_holder(self) -> Any:
        note = notes.newest_note(HOLDER) or {}
        return {k: v for k, v in note.items() if k not in ("boot_id", "t_mono_s")} or None
