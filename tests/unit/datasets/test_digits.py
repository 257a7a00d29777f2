"""The digits as MNIST's files: originals first, then shifted copies."""

import numpy as np
import pytest

from epochwatt.board.training import idx
from epochwatt.datasets.digits import MAX_SHIFT, enlarge, make_digits

N_ORIGINALS = 1797
NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]


def read(folder, n_samples, seed=0):
    assert sorted(make_digits(folder, n_samples, seed)) == NAMES
    return [idx.decode((folder / name).read_bytes(), name) for name in NAMES]


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory):
    """Images and labels of every digit and one shifted copy of each."""
    return read(tmp_path_factory.mktemp("digits"), 2 * N_ORIGINALS)


def test_originals_come_first_then_shifted_copies(two_rounds):
    from sklearn.datasets import load_digits

    images, labels = two_rounds
    bunch = load_digits()
    assert images.shape == (2 * N_ORIGINALS, 28, 28)
    assert np.array_equal(images[:N_ORIGINALS], enlarge(bunch.images))
    assert np.array_equal(labels[:N_ORIGINALS], bunch.target)
    assert np.array_equal(labels[:N_ORIGINALS], labels[N_ORIGINALS:])
    same = (images[:N_ORIGINALS] == images[N_ORIGINALS:]).all(axis=(1, 2)).mean()
    assert same < 2 / (2 * MAX_SHIFT + 1) ** 2  # 1 of 49 is expected to be shifted by nothing
    pixels = np.sort(images.reshape(2, N_ORIGINALS, -1), axis=2)
    assert np.array_equal(pixels[0], pixels[1])  # none is lost
    assert not images[N_ORIGINALS:, [0, -1]].any()  # a margin of 4 pixels, less 3
    assert images[N_ORIGINALS:, 1].any()  # somewhere the shift is 3


def test_more_samples_begin_with_the_fewer_and_rounds_and_seeds_differ(tmp_path, two_rounds):
    images, _ = read(tmp_path, 3 * N_ORIGINALS)
    assert np.array_equal(images[: 2 * N_ORIGINALS], two_rounds[0])
    rounds = images.reshape(3, N_ORIGINALS, 28, 28)
    assert (rounds[1] != rounds[2]).any(axis=(1, 2)).mean() > 0.9  # expected: 48 of 49
    other, _ = read(tmp_path, 2 * N_ORIGINALS, seed=1)
    assert np.array_equal(other[:N_ORIGINALS], rounds[0])
    assert not np.array_equal(other[N_ORIGINALS:], rounds[1])


def test_content_is_that_of_recipe_version_1(two_rounds):
    """A change here is another data set: raise the recipe's version, then these numbers."""
    images, labels = two_rounds
    left_edge = images.any(axis=1).argmax(axis=1)  # first column with ink, (n,)
    assert images.sum(dtype=np.int64) == pytest.approx(121_570_638, rel=1e-6)
    assert labels.sum(dtype=np.int64) == 16_140
    assert left_edge[:6].tolist() == [5, 5, 5, 5, 5, 7]
    assert left_edge[N_ORIGINALS:][:6].tolist() == [6, 3, 2, 2, 7, 10]
