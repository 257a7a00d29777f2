"""CIFAR-10's python batches: read as the original's readers do, and nothing else is read."""

import builtins
import os
import pickle
import warnings

import numpy as np
import pytest

from epochwatt.board.training import cifar
from epochwatt.errors import DataError


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (300, *cifar.SHAPE), dtype=np.uint8)


@pytest.fixture
def content(images):
    """A batch of 300, so that its numbers take two bytes."""
    names = [f"picture_{i}.png" for i in range(300)]
    return cifar.encode(images, [i % 10 for i in range(300)], names, "training batch 1 of 5")


def test_batch_comes_back(images, content):
    decoded, labels = cifar.decode(content, "data_batch_1")
    assert (decoded.dtype, labels.dtype) == (np.uint8, np.uint8)
    np.testing.assert_array_equal(decoded, images)
    assert labels.tolist() == [i % 10 for i in range(300)]


@pytest.mark.parametrize("encoding", ["latin1", "bytes"])
def test_batch_is_what_pickle_itself_reads_of_the_original(images, content, encoding):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy 2.4 wants a bool where the original has 0
        batch = pickle.loads(content, encoding=encoding)
    batch = {k if isinstance(k, str) else k.decode(): v for k, v in batch.items()}
    assert list(batch) == ["batch_label", "labels", "data", "filenames"]
    assert batch["data"].dtype == np.uint8
    np.testing.assert_array_equal(batch["data"], images.reshape(300, 3072))
    assert batch["labels"][:11] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert batch["filenames"][299] in ("picture_299.png", b"picture_299.png")


class Harmful:
    """What a pickle of an enemy holds."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "call", [(os.system, "true"), (builtins.eval, "1"), (np.load, "x"), (os.getenv, "HOME")]
)
def test_pickle_that_calls_anything_else_is_refused_uncalled(call, monkeypatch):
    called = []
    content = pickle.dumps({b"data": Harmful(*call), b"labels": []}, protocol=2)
    monkeypatch.setattr(os, "system", called.append)
    with pytest.raises(DataError, match="data_batch_1 is not a CIFAR-10 batch: it asks for"):
        cifar.decode(content, "data_batch_1")
    assert called == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: b"PK\x03\x04" + content,
        lambda content: content.replace(b"labels", b"levels"),
        lambda content: content.replace(b"U\x04data", b"U\x04dada"),
    ],
    ids=["empty", "a byte short", "half", "another format", "no labels", "no data"],
)
def test_damaged_batch_is_named(content, damage):
    with pytest.raises(DataError, match="data_batch_1 is not a CIFAR-10 batch"):
        cifar.decode(damage(content), "data_batch_1")


FLIPS_IN_A_CHILD = """
import random, sys
from epochwatt.errors import DataError
from epochwatt.board.training import cifar
content = open(sys.argv[1], "rb").read()
draws = random.Random(int(sys.argv[2]))
n_refused = 0
for _ in range(3000):
    damaged = bytearray(content)
    for _ in range(draws.randint(1, 4)):
        place = draws.choice([draws.randrange(len(damaged)), draws.randrange(300)])
        damaged[place] = draws.choice([damaged[place] ^ 1 << draws.randrange(8), *b"b)N.RtT]"])
    try:
        cifar.decode(bytes(damaged), "batch")
    except DataError:
        n_refused += 1
print(n_refused)
"""


def test_damaged_file_of_six_kb_never_kills_the_interpreter(images, tmp_path, python):
    path = tmp_path / "batch"
    path.write_bytes(cifar.encode(images[:2], [1, 2], ["a", "b"], "x"))
    assert int(python(FLIPS_IN_A_CHILD, path, 1)) > 100
