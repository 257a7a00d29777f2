"""Drop the page cache, and measure how much of a data set it holds (board side: Python 3.6).

Source: proc(5), `/proc/sys/vm/drop_caches` (3 frees page cache, dentries and inodes); mincore(2)
and posix_fadvise(2).
"""

import ctypes
import mmap
import os
from typing import Iterable, Optional, Tuple

import numpy as np

from epochwatt.board.device import host

CACHED_SHARE = 0.5  # of the memory that is free, for a data set: training needs the rest
READ_BYTES = 1 << 20
DROPPED, ADVISED = "dropped", "advised"

_PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value


def drop(paths: Iterable[str], drop_caches: str = "/proc/sys/vm/drop_caches") -> str:
    """Empty the page cache; where that is not permitted, release only the pages of these files.

    Returns `dropped` (everything) or `advised` (the kernel was asked to forget these files; it
    keeps pages that somebody else has mapped). `drop_caches` is the kernel's switch.
    """
    os.sync()
    try:
        with open(drop_caches, "w") as handle:
            handle.write("3\n")
        return DROPPED
    except OSError:
        pass
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
    return ADVISED


def resident_pct(paths: Iterable[str]) -> Optional[float]:
    """Return the share of the files' pages that are in the page cache, in %; nothing is read in.

    None if a file cannot be examined, or if there is no page at all. The kernel answers truly only
    to a file's owner and those who may write it; for all others the result is None.

    Source: mincore(2); Linux 5.2, mm/mincore.c, can_do_mincore.
    """
    n_resident, n_pages = 0, 0
    for path in paths:
        pages = _pages(path)
        if pages is None:
            return None
        n_resident += pages[0]
        n_pages += pages[1]
    return 100.0 * n_resident / n_pages if n_pages else None


def _pages(path: str) -> Optional[Tuple[int, int]]:
    """Return how many pages of a file are resident, and how many it has; None: not known."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        size = status.st_size
        if size == 0:
            return 0, 0
        if status.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
            return None
        address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    finally:
        os.close(fd)
    if address == _FAILED:
        return None
    states = ctypes.create_string_buffer((size + _PAGE - 1) // _PAGE)
    try:
        if _LIBC.mincore(address, size, states) != 0:
            return None
    finally:
        _LIBC.munmap(address, size)
    return int(np.count_nonzero(np.frombuffer(states.raw, np.uint8) & 1)), len(states.raw)


def fill(paths: Iterable[str]) -> bool:
    """Read files into the page cache; False: not, they take over half of the free memory."""
    paths = list(paths)
    free_kib = host.meminfo_kib("/", "MemAvailable") or 0
    if sum(os.path.getsize(path) for path in paths) > free_kib * 1024 * CACHED_SHARE:
        return False
    for path in paths:
        with open(path, "rb", buffering=0) as handle:
            while handle.read(READ_BYTES):
                pass
    return True
