"""A data set is opened when it is what the run asks for, and refused with the remedy otherwise."""

import os
import shutil
from pathlib import Path

import pytest

from epochwatt.board.training import data
from epochwatt.errors import ConfigError, DataError

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.fixture
def root(tmp_path, data_root):
    """A copy of the tiny data set that may be damaged."""
    shutil.copytree(data_root, tmp_path / "data")
    return str(tmp_path / "data")


@pytest.fixture
def damaged(root):
    """The folder of that copy."""
    return Path(root, "mnist-digits-x0.02")


@pytest.mark.parametrize("name", [IMAGES, LABELS])
@pytest.mark.parametrize("cut", [1, 20])
def test_file_cut_short_is_named_with_both_sizes(root, damaged, factors, name, cut):
    size = (damaged / name).stat().st_size
    os.truncate(damaged / name, size - cut)
    with pytest.raises(DataError, match="its size") as caught:
        data.open_dataset(root, factors)
    error = caught.value
    assert (error.where, error.found) == (str(damaged / name), f"{size - cut} bytes")
    assert error.allowed == f"{size} bytes"


def test_altered_file_of_the_right_size_is_named(root, damaged, factors):
    content = bytearray((damaged / IMAGES).read_bytes())
    content[-1] ^= 1
    (damaged / IMAGES).write_bytes(content)
    with pytest.raises(DataError, match=f"{damaged / IMAGES}: was altered"):
        data.open_dataset(root, factors)


def test_data_set_of_another_recipe_is_refused(data_root, factors):
    factors["recipe"] = dict(factors["recipe"], seed=7)
    with pytest.raises(DataError, match="made by another recipe") as caught:
        data.open_dataset(data_root, factors)
    assert "'seed': 0" in caught.value.found
    assert "'seed': 7" in caught.value.allowed


@pytest.mark.parametrize(
    ("key", "value"),
    [("files", []), ("files", {IMAGES: {"bytes": "many"}}), ("n_samples", "36"), ("recipe", 1)],
)
def test_manifest_of_another_form_is_named_with_the_place(
    root, damaged, factors, edit_json, key, value
):
    edit_json(damaged / "manifest.json", lambda manifest: manifest.update({key: value}))
    with pytest.raises(DataError, match=rf"manifest\.json cannot be read: {key}") as caught:
        data.open_dataset(root, factors)
    assert "remove the folder" in caught.value.do


class Stream:
    """As torch's IterableDataset is."""

    def __init__(self, folder, manifest):
        self.folder = folder

    def __iter__(self):
        return iter(())


class LongStream(Stream):
    def __len__(self):
        return 3


@pytest.mark.parametrize("lacks", [("__len__", Stream), ("read", LongStream)])
def test_reader_that_cannot_be_asked_for_a_sample_is_refused(
    lacks, data_root, factors, monkeypatch
):
    name, reader = lacks
    monkeypatch.setattr(data, "reader_of", lambda dataset: reader)
    with pytest.raises(ConfigError, match=f"has no {name}") as raised:
        data.open_dataset(data_root, factors)
    assert "read(self, index)" in raised.value.allowed
