"""Forecast the memory that the processes of a training take (board side: Python 3.6 grammar).

On a CPU, glibc keeps part of what is freed: `Heap` replays a step's allocations as its malloc
serves them. SOURCE: glibc 2.31 to 2.36, malloc/malloc.c (`sysmalloc`, `_int_free`, `systrim`,
`munmap_chunk`).
"""

from bisect import bisect_left, insort
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

MIB = 2**20
MOST_BATCH = 65536
PAGE = 4096
MMAP_THRESHOLD = 128 * 1024  # DEFAULT_MMAP_THRESHOLD; larger blocks are mappings of their own ...
MOST_THRESHOLD = 32 * 2**20  # ... and raise it once they are freed, up to this
TOP_PAD = 128 * 1024
LEAST_CHUNK = 32
ALIGNMENT = 64 + LEAST_CHUNK  # what posix_memalign(64), torch's allocator, asks for in addition
CONSOLIDATED = 64 * 1024  # FASTBIN_CONSOLIDATION_THRESHOLD: only larger frees give memory back


class _Chunk:
    __slots__ = ("address", "size", "is_free", "before", "after")

    def __init__(self, address: int, size: int, before: "Optional[_Chunk]") -> None:
        self.address, self.size, self.before = address, size, before
        self.is_free = False
        self.after = None  # type: Optional[_Chunk]


class Heap:
    """A process's memory as glibc's malloc manages it: one heap, and mappings of large blocks.

    `threshold`: MALLOC_MMAP_THRESHOLD_, bytes; None: glibc raises it by itself
    """

    def __init__(self, threshold: Optional[int] = None) -> None:
        self.is_fixed = threshold is not None
        self.threshold = threshold or MMAP_THRESHOLD
        self.trim_threshold = MMAP_THRESHOLD
        self.mapped = self.end = self.touched = self.peak = 0
        self._mappings = {}  # type: Dict[int, int]
        self._chunks = {}  # type: Dict[int, _Chunk]
        self._free = []  # type: List[Tuple[int, int]]
        self._at = {}  # type: Dict[int, _Chunk]  # free chunks by address
        self._last = None  # type: Optional[_Chunk]  # before the top
        self.top = 0  # address where the top begins; it reaches to `end`

    def replay(self, events: Iterable[Tuple[int, int]]) -> int:
        """Allocate and free in order (`Allocated.events`); return the most that was resident."""
        for key, n_bytes in events:
            if n_bytes > 0:
                self.allocate(key, n_bytes)
            elif n_bytes < 0:
                self.free(key)
        return self.peak

    def allocate(self, key: int, n_bytes: int) -> None:
        """Serve a request: by the free chunk that fits best, the top, a mapping, or more heap."""
        size = max(LEAST_CHUNK, (n_bytes + 8 + ALIGNMENT + 15) // 16 * 16)
        place = bisect_left(self._free, (size, 0))
        if place < len(self._free):
            _, address = self._free.pop(place)
            chunk = self._at.pop(address)
            chunk.is_free = False
            if chunk.size - size >= LEAST_CHUNK:
                rest = _Chunk(address + size, chunk.size - size, chunk)
                rest.after, chunk.after, chunk.size = chunk.after, rest, size
                if rest.after is None:
                    self._last = rest
                else:
                    rest.after.before = rest
                self._put(rest)
        elif self.end - self.top < size + LEAST_CHUNK and size >= self.threshold:
            self._mappings[key] = (size + 16 + PAGE - 1) // PAGE * PAGE
            self.mapped += self._mappings[key]
            self.peak = max(self.peak, self.touched + self.mapped)
            return
        else:
            if self.end - self.top < size + LEAST_CHUNK:
                more = size + TOP_PAD + LEAST_CHUNK - (self.end - self.top)
                self.end += (more + PAGE - 1) // PAGE * PAGE
            chunk = _Chunk(self.top, size, self._last)
            if self._last is not None:
                self._last.after = chunk
            self._last = chunk
            self.top += size
            self.touched = max(self.touched, self.top)
        self._chunks[key] = chunk
        self.peak = max(self.peak, self.touched + self.mapped)

    def free(self, key: int) -> None:
        """Take a block back: unmap it, or join it with its free neighbours and the top."""
        if key in self._mappings:
            size = self._mappings.pop(key)
            self.mapped -= size
            if not self.is_fixed and self.threshold < size <= MOST_THRESHOLD:
                self.threshold, self.trim_threshold = size, 2 * size
            return
        chunk = self._chunks.pop(key)
        before, after = chunk.before, chunk.after
        if before is not None and before.is_free:
            self._take(before)
            before.size += chunk.size
            before.after = after
            chunk = before
        if after is not None and after.is_free:
            self._take(after)
            chunk.size += after.size
            chunk.after = after.after
        if chunk.after is not None:
            chunk.after.before = chunk
            self._put(chunk)
            return
        self._last, self.top = chunk.before, chunk.address
        if self._last is not None:
            self._last.after = None
        if chunk.size >= CONSOLIDATED and self.end - self.top >= self.trim_threshold:
            given_back = (self.end - self.top - LEAST_CHUNK - 1 - TOP_PAD) // PAGE * PAGE
            self.end -= max(0, given_back)
            self.touched = min(self.touched, self.end)

    def _put(self, chunk: _Chunk) -> None:
        chunk.is_free = True
        insort(self._free, (chunk.size, chunk.address))
        self._at[chunk.address] = chunk

    def _take(self, chunk: _Chunk) -> None:
        chunk.is_free = False
        self._free.pop(bisect_left(self._free, (chunk.size, chunk.address)))
        del self._at[chunk.address]


class Constants(NamedTuple):
    """What training takes beside its tensors, MiB, and how sure a forecast is."""

    process: float  # Python, torch and this package, imported
    files: float  # of them pages of library files, which the kernel can take back
    engine: float  # on a CPU: code that oneDNN makes, threads; on a GPU: context, kernels, cuDNN
    workspace: float  # that cuDNN's and cuBLAS's algorithms may use
    kept: float  # of the tensors: what the GPU's caching allocator cannot use again
    worker: float  # of a loader worker: its own pages
    margin: float  # of the whole, kept free so that "fits" holds


CPU = Constants(process=360, files=230, engine=60, workspace=0, kept=0, worker=60, margin=0.12)
# ASSUME: no board has checked them. SOURCE: pytorch issue 107667 (above 1,000 MB before CUDA 11.7,
# some 300 MB since, when kernels are loaded as they are needed), onnxruntime issue 4259 (2 GB on a
# Nano with JetPack 4.4); torch's matrix products reserve 8 MiB a stream and cuDNN as it likes.
GPU = Constants(process=360, files=230, engine=800, workspace=128, kept=0.1, worker=60, margin=0.2)
OLD_GPU = GPU._replace(engine=2000)
OLD_CUDA = ("nano", "xavier_nx", "agx_xavier")  # ASSUME: JetPack 4 and 5, whose CUDA is older
SYSTEM_MIB = 1500  # ASSUME: Ubuntu with its desktop; without it 300 to 500


def constants_of(kind: str) -> Constants:
    """Return the constants of a kind of board; empty: of a machine that trains on its CPU."""
    if not kind:
        return CPU
    return OLD_GPU if kind in OLD_CUDA else GPU


class Need(NamedTuple):
    """What a training takes, bytes."""

    tensors: int  # allocated at the peak
    kept: int  # that the allocator keeps beside them
    process: int  # Python and libraries
    engine: int
    workers: int  # pages of loader workers
    in_flight: int  # mini-batches that they hold
    data: int  # set that is read into memory

    @property
    def total(self) -> int:
        """Return all of it."""
        return sum(self)


def need_of(
    allocated: Any,
    constants: Constants,
    num_workers: int = 0,
    prefetch_factor: int = 2,
    data_bytes: int = 0,
    threshold: Optional[int] = None,
) -> Need:
    """Return what a training takes whose tensors take `allocated` (`allocated.Allocated`).

    `threshold`: of malloc (`Heap`)
    """
    if constants.kept:
        kept = int(constants.kept * allocated.peak)
    else:
        kept = max(0, Heap(threshold).replay(allocated.events) - allocated.peak)
    # a worker fills one more than it has handed over; without workers the loop collates one
    batches = num_workers * prefetch_factor + 1
    return Need(
        allocated.peak,
        kept,
        int(constants.process * MIB),
        int((constants.engine + constants.workspace) * MIB),
        int(num_workers * constants.worker * MIB),
        batches * allocated.minibatch,
        data_bytes,
    )


def largest(need: Callable[[int], int], room: int, most: int = MOST_BATCH) -> int:
    """Return the largest mini-batch whose `need` of bytes is within `room`; 0: not even one sample.

    It is found by interpolation, to three per cent.
    """
    known = {}  # type: Dict[int, int]
    low, high, batch = 0, most + 1, 1
    while high - low > max(1, low // 32):
        known[batch] = need(batch)
        if known[batch] <= room:
            low = batch
        else:
            high = batch
        if len(known) == 1:
            batch = min(8, most)
            continue
        (first, n1), (second, n2) = sorted(known.items(), key=lambda item: abs(item[1] - room))[:2]
        slope = max(1.0, (n2 - n1) / (second - first))
        step = max(1, low // 32)
        batch = min(max(int(first + (room - n1) / slope), low + step), high - step)
    return low
