"""Forecast the memory that the processes of a training take (board side: Python 3.6 grammar).

On a CPU, glibc keeps part of what is freed: `Heap` serves a step's allocations as its malloc does.
SOURCE: glibc 2.31 to 2.36, malloc/malloc.c (`sysmalloc`, `_int_free`, `systrim`,
`munmap_chunk`).
"""

import random
from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

MIB = 2**20
Event = Tuple[int, int]
MOST_BATCH = 65536
PAGE = 4096
MMAP_THRESHOLD = 128 * 1024  # DEFAULT_MMAP_THRESHOLD; larger blocks are mappings of their own ...
MOST_THRESHOLD = 32 * 2**20  # ... and raise it once they are freed, up to this
TOP_PAD = 128 * 1024
LEAST_CHUNK = 32
CONSOLIDATED = 64 * 1024  # FASTBIN_CONSOLIDATION_THRESHOLD: only larger frees give memory back


FRAGMENT = 96  # left over of a block: posix_memalign asks for that much more than it gives
HEAP_STEPS = 8  # after them the heap hardly grows any more


class _Chunk:
    __slots__ = ("address", "after", "before", "is_free", "size")

    def __init__(self, address: int, size: int, before: "Optional[_Chunk]") -> None:
        self.address, self.size, self.before = address, size, before
        self.is_free = False
        self.after: Optional[_Chunk] = None


class Heap:
    """A process's memory as glibc's malloc manages it: one heap, and mappings of large blocks.

    A block goes back to the heap without its fragment. While a small object lives in that, the same
    request does not fit into the same place again, and the heap grows. ASSUME: small objects, such
    as the nodes of autograd's graph, live as long as one of the tensors (benchmarks/memory.py).

    `threshold`: MALLOC_MMAP_THRESHOLD_, bytes; None: glibc raises it by itself
    `lifetimes`: allocations during which tensors live; small objects have one of them
    """

    def __init__(self, threshold: Optional[int] = None, lifetimes: Sequence[int] = (0,)) -> None:
        self.is_fixed = threshold is not None
        self.threshold = threshold or MMAP_THRESHOLD
        self.trim_threshold = MMAP_THRESHOLD
        self.mapped = self.end = self.touched = self.peak = 0
        self.top = 0  # address where the top begins; it reaches to `end`
        self._mappings: Dict[Any, int] = {}
        self._chunks: Dict[Any, _Chunk] = {}
        self._free: List[Tuple[int, int]] = []  # size, address
        self._at: Dict[int, _Chunk] = {}  # free chunks by address
        self._last: Optional[_Chunk] = None  # before the top
        self._lifetimes, self._random = lifetimes, random.Random(0)
        self._fragments: List[Tuple[float, int, _Chunk]] = []  # a heap, by their end
        self._n = 0  # allocations so far

    def allocate(self, key: Any, n_bytes: int) -> None:
        """Serve a request: by the free chunk that fits best, the top, a mapping, or more heap."""
        size = max(LEAST_CHUNK, (n_bytes + 8 + 15) // 16 * 16)
        whole = size + FRAGMENT
        place = bisect_left(self._free, (whole, 0))
        if place < len(self._free):
            _, address = self._free.pop(place)
            chunk = self._at.pop(address)
            chunk.is_free = False
            if chunk.size - whole >= LEAST_CHUNK:
                self._put(self._cut(chunk, whole))
        elif self.end - self.top < whole + LEAST_CHUNK and whole >= self.threshold:
            self._mappings[key] = (whole + 16 + PAGE - 1) // PAGE * PAGE
            self.mapped += self._mappings[key]
            self.peak = max(self.peak, self.touched + self.mapped)
            return
        else:
            if self.end - self.top < whole + LEAST_CHUNK:
                more = whole + TOP_PAD + LEAST_CHUNK - (self.end - self.top)
                self.end += (more + PAGE - 1) // PAGE * PAGE
            chunk = _Chunk(self.top, whole, self._last)
            if self._last is not None:
                self._last.after = chunk
            self._last = chunk
            self.top += whole
            self.touched = max(self.touched, self.top)
        self._chunks[key] = chunk
        self.peak = max(self.peak, self.touched + self.mapped)
        fragment = self._cut(chunk, size)
        self._n += 1
        ends = self._n + self._random.choice(self._lifetimes)
        heappush(self._fragments, (ends, self._n, fragment))
        while self._fragments and self._fragments[0][0] < self._n:
            self._give_back(heappop(self._fragments)[2])

    def _cut(self, chunk: _Chunk, size: int) -> _Chunk:
        """Shorten a chunk to a size; return the rest of it, which is not free."""
        rest = _Chunk(chunk.address + size, chunk.size - size, chunk)
        rest.after, chunk.after, chunk.size = chunk.after, rest, size
        if rest.after is None:
            self._last = rest
        else:
            rest.after.before = rest
        return rest

    def free(self, key: Any) -> None:
        """Take a block back; a mapping goes, and raises the threshold."""
        if key not in self._mappings:
            self._give_back(self._chunks.pop(key))
            return
        size = self._mappings.pop(key)
        self.mapped -= size
        if not self.is_fixed and self.threshold < size <= MOST_THRESHOLD:
            self.threshold, self.trim_threshold = size, 2 * size

    def _give_back(self, chunk: _Chunk) -> None:
        """Join a chunk with its free neighbours and the top, which shrinks when it is large."""
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


def resident_bytes(
    first: Sequence[Event], step: Sequence[Event], threshold: Optional[int] = None
) -> int:
    """Return the most that is resident of what a first step allocates, and those that follow it.

    `first`, `step`: (storage, bytes) as it is allocated, (storage, -bytes) as it is freed, in order
    """
    heap = Heap(threshold, _lifetimes(step))
    left: Dict[int, List[Tuple[int, int]]] = {}  # by size, what a step leaves for the next
    for number in range(HEAP_STEPS):
        for key, n_bytes in step if number else first:
            if n_bytes > 0:
                heap.allocate((number, key), n_bytes)
                left.setdefault(n_bytes, []).append((number, key))
            elif n_bytes < 0:
                blocks = left[-n_bytes]
                block = (number, key)
                if block not in blocks:  # of an earlier step: one of its size
                    block = blocks[0] if number > 1 else (0, key)
                blocks.remove(block)
                heap.free(block)
    return heap.peak


def _lifetimes(step: Sequence[Event]) -> List[int]:
    """Return for how many allocations each storage of a step lives; all of them if beyond it."""
    born: Dict[int, int] = {}
    lifetimes, n = [], 0
    for key, n_bytes in step:
        if n_bytes > 0:
            n += 1
            born[key] = n
        elif key in born:
            lifetimes.append(n - born.pop(key))
    return lifetimes + [n] * len(born) or [0]


class Constants(NamedTuple):
    """Memory that training takes beside its tensors, MiB, and how sure a forecast is."""

    process: float  # Python, torch and this package, imported
    libraries: float  # that torchvision or the optimisers of torch import
    transformers: float  # that it imports, with those
    files: float  # of both, pages of library files, which the kernel can take back
    engine: float  # on a CPU: code that oneDNN makes, threads; on a GPU: context, kernels, cuDNN
    blas: float  # workspace of cuBLAS for each thread that multiplies matrices
    workspace: float  # that cuDNN's algorithms and reductions may use
    kept: float  # of the tensors: what the GPU's caching allocator cannot use again
    worker: float  # of a loader worker: its own pages
    margin: float  # of the whole, kept free so that "fits" holds


# As measured with torch 2.9 (x86, built with CUDA). The margin is above the largest of 21 errors
# (benchmarks/memory.py: 13 %)
CPU = Constants(500, 125, 225, 240, engine=20, blas=0, workspace=0, kept=0, worker=60, margin=0.2)
# ASSUME: no board has checked them. SOURCE: pytorch issue 107667 (above 1,000 MB before CUDA 11.7,
# some 300 MB since, when kernels are loaded as they are needed), onnxruntime issue 4259 (2 GB on a
# Nano with JetPack 4.4). An H100 took 770 MiB for the context, cuDNN and reductions 48 MiB at most,
# and its allocator held 3 to 26 % more than the tensors, some of which it can use again
# (docs/reference/benchmarks/memory.md, fine-tuning.md).
GPU = CPU._replace(engine=800, blas=8.125, workspace=112, kept=0.1)
OLD_GPU = GPU._replace(engine=1400)  # 2 GB with Python and its libraries
OLD_CUDA = ("nano", "xavier_nx", "agx_xavier")  # ASSUME: JetPack 4 and 5, whose CUDA is older
SYSTEM_MIB = 1500  # ASSUME: Ubuntu with its desktop; without it 300 to 500
# SOURCE: NVIDIA, "Fine-tune LLMs on Jetson" (adsahu-nv/jetson-ai-lab@fa89e9524140): system, desktop
# and what runs in the background take 4 to 6 GB of an AGX Thor
THOR_SYSTEM_MIB = 6000


def blas_mib(capability: int) -> float:
    """Return the workspace of cuBLAS for a thread, MiB, by the GPU's compute capability (major).

    SOURCE: torch, aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize
    """
    return 32.0 if capability in (9, 10, 12) else GPU.blas


def constants_of(kind: str) -> Constants:
    """Return the constants of a kind of board; empty: of a machine that trains on its CPU."""
    if not kind:
        return CPU
    return OLD_GPU if kind in OLD_CUDA else GPU


class Need(NamedTuple):
    """Memory that a training takes, bytes."""

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
    libraries: Optional[float] = None,
) -> Need:
    """Return what a training takes whose tensors take `allocated` (`allocated.Allocated`).

    `threshold`: of malloc (`Heap`); `libraries`: that it imports, MiB; None: the usual
    """
    if libraries is None:
        libraries = constants.libraries
    if constants.kept:
        kept = int(constants.kept * allocated.peak)
    else:
        held = resident_bytes(allocated.first, allocated.step, threshold)
        kept = max(0, held - allocated.peak)
    blas = allocated.blas_threads * constants.blas
    # a worker fills one more than it has handed over; without workers the loop collates one
    batches = num_workers * prefetch_factor + 1
    return Need(
        allocated.peak,
        kept,
        int((constants.process + libraries) * MIB),
        int((constants.engine + constants.workspace + blas) * MIB),
        int(num_workers * constants.worker * MIB),
        batches * allocated.minibatch,
        data_bytes,
    )


def largest(need: Callable[[int], int], room: int, first: int = 8, most: int = MOST_BATCH) -> int:
    """Return the largest mini-batch whose `need` of bytes is within `room`; 0: not even one sample.

    It is found by interpolation, to three per cent, with `first` as the first guess.
    """
    known: Dict[int, int] = {}
    low, high, batch = 0, most + 1, min(first, most)
    while high - low > max(1, low // 32):
        known[batch] = need(batch)
        if known[batch] <= room:
            low = batch
        else:
            high = batch
        step = max(1, low // 32)
        if len(known) == 1:
            guess = 4 * batch if low else batch // 4
        else:
            (b1, n1), (b2, n2) = sorted(known.items(), key=lambda item: abs(item[1] - room))[:2]
            slope = max(1.0, (n2 - n1) / (b2 - b1))
            guess = int(b1 + (room - n1) / slope)
            if low and batch == low and guess < low + step:
                break
        batch = min(max(guess, low + step), high - step)
    return low
