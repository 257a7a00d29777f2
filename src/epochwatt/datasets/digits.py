"""Write scikit-learn's handwritten digits as MNIST's training files.

Source: `sklearn.datasets.load_digits`, the test part of "Optical Recognition of Handwritten Digits"
(Alpaydin and Kaynak, UCI): 1,797 real 8x8 images with levels 0..16.
"""

from pathlib import Path

import numpy as np

from epochwatt.board.training import idx
from epochwatt.board.training.dataset_files import MNIST_IMAGES, MNIST_LABELS
from epochwatt.datasets.synthetic import enlargement

SIDE, INNER = 28, 20  # MNIST: digits of 20x20 pixels in a field of 28x28
MAX_SHIFT = 3  # pixels, of the copies


def make_digits(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` digits as IDX files; return their names.

    The first 1,797 are the originals, centred; each further round is the whole set again, every
    image shifted by up to 3 pixels both ways (seeded).
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    originals = enlarge(bunch.images)
    rounds = -(-n_samples // len(originals))
    random = np.random.default_rng(seed)
    images = [originals]
    for _ in range(rounds - 1):
        shifts = random.integers(-MAX_SHIFT, MAX_SHIFT + 1, size=(len(originals), 2))
        pairs = zip(originals, shifts, strict=True)
        images.append(np.stack([np.roll(image, shift, axis=(0, 1)) for image, shift in pairs]))
    labels = np.tile(bunch.target.astype(np.uint8), rounds)
    (folder / MNIST_IMAGES).write_bytes(idx.encode(np.concatenate(images)[:n_samples]))
    (folder / MNIST_LABELS).write_bytes(idx.encode(labels[:n_samples]))
    return [MNIST_IMAGES, MNIST_LABELS]


def enlarge(images: np.ndarray) -> np.ndarray:
    """Return (n, 8, 8) images with levels 0..16 as (n, 28, 28) uint8: bilinear, centred."""
    weights = enlargement(8, INNER)
    inner = np.einsum("ai,nij,bj->nab", weights, images, weights)  # (n, 20, 20)
    margin = (SIDE - INNER) // 2
    padded = np.pad(inner, ((0, 0), (margin, margin), (margin, margin)))
    return np.clip(np.rint(padded * (255 / 16)), 0, 255).astype(np.uint8)
