"""Operations and bytes of the kernels of ResNet-18 and ResNet-50, one picture of 224 x 224.

For measurements by others that name the kernels of a compiled network, but not their work. A
convolution comes with its bias, its addition and its ReLU in one kernel, as compilers fuse them:
weights, inputs and outputs go through memory once, the other summand too (He et al., CVPR 2016;
the stride of a bottleneck is in its 3 x 3 convolution, as in torchvision).
"""

from collections.abc import Iterator
from typing import NamedTuple

FLOAT_BYTES = 4
STAGES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


class KernelWork(NamedTuple):
    """One fused kernel.

    Attributes
    ----------
    kind : conv, pool, reshape or dense
    flops : floating-point operations, a multiply-add being two
    moved_bytes : weights, inputs and outputs, each once
    """

    kind: str
    flops: int
    moved_bytes: int


def resnet_kernels(network: str) -> list[KernelWork]:
    """Return the kernels of a network in their order; KeyError names one that is not known."""
    return list(_kernels(network))


def _kernels(network: str) -> Iterator[KernelWork]:
    yield _conv(3, 64, 7, 112, 2)
    yield KernelWork("pool", 9 * 64 * 56**2, FLOAT_BYTES * 64 * (112**2 + 56**2))
    block = _basic if network == "resnet18" else _bottleneck
    channels, side = 64, 56
    for stage, n_blocks in enumerate(STAGES[network]):
        width = 64 * 2**stage
        for place in range(n_blocks):
            stride = 2 if stage and not place else 1
            side //= stride
            yield from block(channels, width, side, stride, not place)
            channels = width if network == "resnet18" else 4 * width
    yield KernelWork("pool", channels * side**2, FLOAT_BYTES * channels * (side**2 + 1))
    yield KernelWork("reshape", 0, FLOAT_BYTES * 2 * channels)
    yield KernelWork("dense", 2 * 1000 * channels + 1000, FLOAT_BYTES * (1001 * channels + 2000))


def _basic(channels: int, width: int, side: int, stride: int, first: bool) -> Iterator[KernelWork]:
    yield _conv(channels, width, 3, side, stride)
    if first and channels != width:
        yield _conv(channels, width, 1, side, stride)
    yield _conv(width, width, 3, side, 1, added=True)


def _bottleneck(
    channels: int, width: int, side: int, stride: int, first: bool
) -> Iterator[KernelWork]:
    yield _conv(channels, width, 1, side * stride, 1)
    yield _conv(width, width, 3, side, stride)
    if first:
        yield _conv(channels, 4 * width, 1, side, stride)
    yield _conv(width, 4 * width, 1, side, 1, added=True)


def _conv(
    inputs: int, outputs: int, window: int, side: int, stride: int, added: bool = False
) -> KernelWork:
    """Return a convolution to `outputs` channels of `side` x `side`, its bias and its ReLU."""
    pixels = outputs * side**2
    weights = outputs * (inputs * window**2 + 1)
    moved = weights + inputs * (side * stride) ** 2 + pixels * (2 if added else 1)
    flops = pixels * (2 * inputs * window**2 + 2 + added)
    return KernelWork("conv", flops, FLOAT_BYTES * moved)
