"""Make up MNIST and CIFAR-10: counts, sizes and files of the originals, from a seed.

Each class has its own pattern, faint below noise, so that training has something to learn.
Images are made in blocks, each with its own generator: a larger scale begins with the images
of a smaller one.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from epochwatt.board.training import cifar, idx
from epochwatt.board.training.data import CIFAR_BATCHES
from epochwatt.board.training.dataset_files import MNIST_IMAGES, MNIST_LABELS

BLOCK = 1000  # images with one generator; part of the recipe
CLASSES = 10

# Mean and deviation of the pixels before they are cut to 0..255; what is left has about the mean of
# the original (most of a digit's field is black).
MNIST_LEVELS, CIFAR_LEVELS = (-40.0, 120.0), (121.0, 63.0)
SIGNAL = 0.33  # ASSUME: share of the deviation that is the class's pattern
COARSE = 7  # of 28 pixels, or 8 of 32: side of a pattern before it is enlarged


def make_mnist(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up digits as MNIST's training files; return their names."""
    blocks = list(_blocks(n_samples, seed, (1, 28, 28), MNIST_LEVELS))
    images = np.concatenate([images[:, 0] for images, _ in blocks])
    labels = np.concatenate([labels for _, labels in blocks])
    (folder / MNIST_IMAGES).write_bytes(idx.encode(images))
    (folder / MNIST_LABELS).write_bytes(idx.encode(labels))
    return [MNIST_IMAGES, MNIST_LABELS]


def make_cifar10(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up pictures as CIFAR-10's five batches; return their names."""
    blocks = list(_blocks(n_samples, seed, cifar.SHAPE, CIFAR_LEVELS))
    images = np.concatenate([images for images, _ in blocks])
    labels = np.concatenate([labels for _, labels in blocks])
    n_batches = len(CIFAR_BATCHES)
    for number, (name, indices) in enumerate(
        zip(CIFAR_BATCHES, np.array_split(np.arange(n_samples), n_batches), strict=True), start=1
    ):
        content = cifar.encode(
            images[indices],
            labels[indices].tolist(),
            [f"made_up_picture_s_{i:06d}.png" for i in indices],
            f"training batch {number} of {n_batches}",
        )
        (folder / name).write_bytes(content)
    return list(CIFAR_BATCHES)


def _blocks(
    n_samples: int, seed: int, shape: tuple[int, int, int], levels: tuple[float, float]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield images (n, *shape) and labels (n,), both uint8, block by block.

    `n_samples`: over all blocks
    `seed`: of the patterns and of every block
    `shape`: channels, height, width
    `levels`: mean and deviation of the pixels before they are cut to 0..255
    """
    mean, deviation = levels
    patterns = SIGNAL * class_patterns(seed, shape)
    for number in range(-(-n_samples // BLOCK)):
        random = np.random.default_rng([seed, number])
        labels = random.integers(0, CLASSES, BLOCK)
        values = random.standard_normal((BLOCK, *shape), dtype=np.float32)
        values *= np.float32(np.sqrt(1 - SIGNAL**2))
        values += patterns[labels]
        values *= np.float32(deviation)
        values += np.float32(mean)
        n = min(BLOCK, n_samples - number * BLOCK)
        yield np.clip(np.rint(values[:n]), 0, 255).astype(np.uint8), labels[:n].astype(np.uint8)


def class_patterns(seed: int, shape: tuple[int, int, int]) -> np.ndarray:
    """Return a smooth pattern (float32, mean 0, deviation 1) for each class: (10, *shape)."""
    channels, height, width = shape
    random = np.random.default_rng([seed, 1 << 32])  # no block has this number
    coarse = random.standard_normal((CLASSES, channels, COARSE, COARSE))
    rows, columns = (enlargement(COARSE, side) for side in (height, width))
    patterns = np.einsum("hi,ncij,wj->nchw", rows, coarse, columns)
    patterns -= patterns.mean(axis=(1, 2, 3), keepdims=True)
    patterns /= patterns.std(axis=(1, 2, 3), keepdims=True)
    return patterns.astype(np.float32)


def enlargement(before: int, after: int) -> np.ndarray:
    """Return the matrix (after, before) that interpolates `before` samples linearly to `after`."""
    positions = np.linspace(0, before - 1, after)
    return np.stack([np.interp(positions, range(before), row) for row in np.eye(before)], axis=1)
