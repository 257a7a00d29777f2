"""Locks that name their holder (board side: Python 3.6 grammar).

An `flock` belongs to the open file, so the kernel gives it back when the holder dies, however it
dies; what is written in the file is only there to say who holds it.
"""

import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Type

from epochwatt.errors import LockedError, RecordWriteError


def machine_folder() -> str:
    """Return the folder of this machine's lock and last measurement, shared by all users.

    It lies in the system's folder for temporary files (`TMPDIR`), which a restart may empty: the
    next epoch is then flagged `resumed`, never silently chained.
    """
    path = os.path.join(tempfile.gettempdir(), "epochwatt")
    try:
        os.mkdir(path)
        os.chmod(path, 0o777)
    except FileExistsError:
        pass
    except OSError as error:
        raise RecordWriteError("cannot make {}: {}".format(path, error.strerror)) from error
    return path


def machine_lock() -> "HolderLock":
    """Return the lock that a process holds while it measures on this machine."""
    return HolderLock(os.path.join(machine_folder(), "measuring.lock"))


def _unusable(verb: str, path: str, error: OSError) -> RecordWriteError:
    return RecordWriteError(
        "cannot {} {}: {}. This user has to be able to write it".format(verb, path, error.strerror)
    )


class HolderLock:
    """An exclusive lock on a file that says who holds it.

    Parameters
    ----------
    path : the lock file; made when missing
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: Optional[int] = None

    def acquire(
        self, holder: Dict[str, Any], on_wait: Optional[Callable[[str], None]] = None
    ) -> "HolderLock":
        """Take the lock and write down its holder.

        Parameters
        ----------
        holder : what to say of us, a few words each
        on_wait : called once with a description of the present holder, after which we wait;
            without it a held lock raises LockedError.

        Raises
        ------
        LockedError : somebody else holds it, and waiting was not asked for
        RecordWriteError : the file cannot be opened or made by this user
        """
        fd = self._open()
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                if on_wait is None:
                    raise LockedError(
                        "{} is held by {}".format(self.path, self.describe())
                    ) from None
                on_wait(self.describe())
                fcntl.flock(fd, fcntl.LOCK_EX)
            about = dict(holder, pid=os.getpid(), since=time.strftime("%Y-%m-%d %H:%M:%S"))
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(about).encode("utf-8"), 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def _open(self) -> int:
        # First without O_CREAT: a sticky folder refuses it on another user's file.
        try:
            return os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unusable("open", self.path, error) from error
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unusable("make", self.path, error) from error
        if os.fstat(fd).st_uid == os.getuid():
            os.fchmod(fd, stat.S_IMODE(0o666))
        return fd

    def describe(self) -> str:
        """Return what the holder wrote of itself, in words."""
        try:
            with open(self.path, encoding="utf-8") as handle:
                about = json.load(handle)
            return ", ".join("{} {}".format(k, v) for k, v in sorted(about.items()))
        except (OSError, ValueError, AttributeError):
            return "a process that did not say who it is"

    def release(self) -> None:
        """Give the lock back, also for forked processes that still have the file open."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> "HolderLock":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.release()
