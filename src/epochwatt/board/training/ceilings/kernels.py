"""Make micro-kernels of known work, in torch alone (board side: Python 3.6 grammar; imports torch).

Operations are counted as computed, a multiply-add being two; bytes are those of all arrays, each
read or written once (McCalpin's STREAM counts so), wherever they lie: small arrays stay in caches.

* `copy` y = x and `triad` z = x + a y, from arrays that fit in a first-level cache to such that fit
  in none. Nothing is allocated.
* `matmul`: a product of square matrices.
* `fma`: chains of multiply-adds on each element, of rising length. On a GPU torch fuses a chain to
  one kernel, if this torch can. Else short chains go over blocks that stay in a cache while the
  whole array comes from memory, and long ones are convolutions of 3 x 3 without padding: each of
  their results is a chain of 9 multiply-adds per channel. torch fuses nothing on a CPU.
* `launch`: an operation on one number.
"""

import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import torch

from epochwatt.board.training import arithmetic
from epochwatt.errors import TrainingError

FLOAT_BYTES = 4
ARRAY_BYTES = [2**power for power in (14, 17, 19, 21, 23, 26, 28)]
MEMORY_SHARE = 64  # no array is larger than that part of the memory
MOST_BYTES = {"cpu": 2**26, "cuda": 2**28}  # past every cache that there is today
MATRICES = {"cpu": (256, 512, 1024), "cuda": (512, 1024, 2048, 4096)}  # rows
BLOCK = 2**15  # elements of a block and thread: torch gives no thread fewer
LINKS_IN_BLOCKS = (1, 2, 4, 8)  # of a chain
LINKS_FUSED = (1, 2, 4, 16, 64, 256)
CHANNELS = (2, 4, 8, 16, 32, 64, 128, 256)  # of a convolution
PICTURE = 16  # rows and columns of its input
PICTURES = 2**18  # elements of all of them, for each thread
FACTOR = 1e-9  # no value grows or vanishes, however often a kernel runs
DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class Kernel(NamedTuple):
    """A micro-kernel and its work."""

    kernel: str  # columns.CEILING_KERNELS
    precision: str
    size: int  # columns.CEILING_COLUMNS
    flops: float
    bytes: float
    way: str  # how it is computed, where there are several
    call: Callable[[], Any]
    most_calls: int  # that may be under way at once


MANY = 10**6
QUEUE = 500  # launches that a GPU keeps waiting without holding up the CPU


def kernels(precisions: List[str], device: torch.device) -> Iterator[Kernel]:
    """Yield copy, triad, fma, launch and matmul kernels; each allocates its arrays when it is due.

    Run each before taking the next: TF32 is set for it until then. `precisions`: of the matrix
    products; all else is in fp32
    """
    memory_bytes = int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    if device.type == "cuda":
        memory_bytes = int(torch.cuda.get_device_properties(device).total_memory)
    largest = min(MOST_BYTES[device.type], memory_bytes // MEMORY_SHARE)
    with _tf32(False):
        for n_bytes in ARRAY_BYTES:
            if n_bytes <= largest:
                yield _stream("copy", n_bytes // FLOAT_BYTES, device)
                yield _stream("triad", n_bytes // FLOAT_BYTES, device)
        for kernel in _chains(largest // FLOAT_BYTES, device):
            yield kernel
        number, most_calls = torch.ones(1, device=device), QUEUE if device.type == "cuda" else MANY
        yield _kernel("launch", 1, 0, 0, lambda: number.mul_(1.0), most_calls=most_calls)
        for precision in precisions:
            if precision != "tf32":
                for n in MATRICES[device.type]:
                    yield _matmul(n, precision, device)
    if "tf32" in precisions:
        with _tf32(True):
            for n in MATRICES[device.type]:
                yield _matmul(n, "tf32", device)


def left_out(precisions: List[str], device: torch.device) -> Dict[str, str]:
    """Return the precisions that the device lacks -> the reason."""
    reasons = {}
    for precision in precisions:
        try:
            arithmetic.check({"precision": precision}, device)
        except TrainingError as error:
            reasons[precision] = "{} ({})".format(error.problem, error.found)
    return reasons


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 in matrix products and convolutions within the block."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = allowed
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


def _kernel(
    kernel: str,
    size: int,
    flops: float,
    n_bytes: float,
    call: Callable[[], Any],
    precision: str = "fp32",
    way: str = "",
    most_calls: int = MANY,
) -> Kernel:
    return Kernel(kernel, precision, size, float(flops), float(n_bytes), way, call, most_calls)


def _stream(kernel: str, n: int, device: torch.device) -> Kernel:
    """Return a `copy` or `triad` kernel on float32 arrays of n elements."""
    x, y = [torch.ones(n, device=device) for _ in range(2)]
    if kernel == "copy":
        return _kernel("copy", n, 0, 2 * n * FLOAT_BYTES, lambda: y.copy_(x))
    z, n_bytes = torch.ones(n, device=device), 3 * n * FLOAT_BYTES
    return _kernel("triad", n, 2 * n, n_bytes, lambda: torch.add(x, y, alpha=FACTOR, out=z))


def _matmul(n: int, precision: str, device: torch.device) -> Kernel:
    dtype = getattr(torch, DTYPES[precision])
    x, y, z = [torch.ones(n, n, device=device).to(dtype) for _ in range(3)]
    n_bytes = 3 * n * n * x.element_size()
    return _kernel("matmul", n, 2 * n**3, n_bytes, lambda: torch.mm(x, y, out=z), precision)


def _chains(n: int, device: torch.device) -> Iterator[Kernel]:
    """Yield `fma` kernels: chains fused on n elements, else in blocks, and convolutions."""
    if device.type == "cuda" and can_fuse(device):
        for links in LINKS_FUSED:
            yield _fused(n, links, device)
        return
    for links in LINKS_IN_BLOCKS:
        yield _in_blocks(n, links, device)
    for channels in CHANNELS:
        yield _convolution(channels, device)


def _in_blocks(n: int, links: int, device: torch.device) -> Kernel:
    """Return an `fma` kernel: `links` times x = x + a x on n elements, block by block."""
    blocks = torch.ones(n, device=device).split(BLOCK * torch.get_num_threads())

    def call() -> None:
        for block in blocks:
            for _ in range(links):
                block.add_(block, alpha=FACTOR)

    return _kernel("fma", n, 2 * links * n, 2 * n * FLOAT_BYTES, call, way="blocks")


def _convolution(channels: int, device: torch.device) -> Kernel:
    """Return an `fma` kernel: a 3x3 convolution from and to `channels`, without padding.

    So every operation that is counted is computed.
    """
    n_pictures = max(1, PICTURES * torch.get_num_threads() // (channels * PICTURE**2))
    x = torch.ones(n_pictures, channels, PICTURE, PICTURE, device=device)
    weights = torch.ones(channels, channels, 3, 3, device=device)
    n_results = n_pictures * channels * (PICTURE - 2) ** 2
    n_bytes = FLOAT_BYTES * (x.numel() + weights.numel() + n_results)
    flops = 2 * 9 * channels * n_results
    return _kernel(
        "fma", x.numel(), flops, n_bytes, lambda: torch.conv2d(x, weights), way="convolution"
    )


def chain(links: int) -> Callable[[torch.Tensor, float, float], torch.Tensor]:
    """Return a TorchScript function: `links` times y = y a + b, which torch may fuse."""
    lines = ["def chain(x: Tensor, a: float, b: float) -> Tensor:", "    y = x"]
    lines += ["    y = y * a + b"] * links
    lines += ["    return y"]
    unit = torch.jit.CompilationUnit("\n".join(lines) + "\n")
    function: Callable[[torch.Tensor, float, float], torch.Tensor] = unit.chain
    return function


def _fused(n: int, links: int, device: torch.device) -> Kernel:
    """Return an `fma` kernel of `chain` on n elements, which is compiled already."""
    x, function = torch.ones(n, device=device), chain(links)
    for _ in range(4):  # torch profiles two calls, and compiles in the third
        function(x, 1.0, FACTOR)
    n_bytes = 2 * n * FLOAT_BYTES
    return _kernel("fma", n, 2 * links * n, n_bytes, lambda: function(x, 1.0, FACTOR), way="fused")


def can_fuse(device: torch.device, links: int = 16, least_ratio: float = 4.0) -> bool:
    """Time chains of one link and of `links`; return whether this torch fuses them to one kernel.

    Unfused, 16 links take 16 times as long as one; fused, both read and write the array once.
    """
    times_ms = []
    for length in (1, links):
        kernel = _fused(2**24, length, device)
        begin, end = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        torch.cuda.synchronize(device)
        begin.record()
        kernel.call()
        end.record()
        torch.cuda.synchronize(device)
        times_ms.append(begin.elapsed_time(end))
    one_link_ms, chain_ms = times_ms
    return chain_ms < least_ratio * one_link_ms
