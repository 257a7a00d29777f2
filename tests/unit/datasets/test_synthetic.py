"""Made-up data sets: counts, sizes and files of the originals, repeatable, and worth learning."""

import shutil

import numpy as np
import pytest

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets import photographs
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe

SETS = ("mnist", "cifar10", "gld23k")
SMALL = {"mnist": 0.02, "cifar10": 0.024, "gld23k": 0.0003}  # 1200, 1200 and 7 samples
SMALLER = {"mnist": 0.001, "cifar10": 0.0012, "gld23k": 0.0002}  # 60, 60 and 5
LARGER = {"mnist": 0.04, "cifar10": 0.048, "gld23k": 0.0035}  # several blocks, two processes


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Make a data set, once each; a function that returns its reader and its folder."""
    root = tmp_path_factory.mktemp("sets")

    def make(dataset, scale):
        named = {"dataset": dataset, "dataset_source": "synthetic", "dataset_scale": scale}
        factors = {**named, "recipe": recipe(dataset, "synthetic", scale)}
        folder = root / folder_name(dataset, "synthetic", scale)
        if not folder.exists():
            make_dataset(folder, factors["recipe"])
        return open_dataset(str(root), factors)[0], folder

    return make


@pytest.mark.parametrize("dataset", SETS)
def test_made_again_or_at_another_scale_it_has_the_same_samples(opened, dataset):
    one, folder = opened(dataset, SMALL[dataset])

    def contents():
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    before = contents()
    make_dataset(folder, recipe(dataset, "synthetic", SMALL[dataset]))
    assert contents() == before
    for other in (SMALLER, LARGER):
        two, _ = opened(dataset, other[dataset])
        for index in range(min(len(one), len(two), 100)):
            (a, label_a), (b, label_b) = one.read(index), two.read(index)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
            assert label_a == label_b


def test_disk_that_is_full_is_told_from_a_process_of_its_own(tmp_path, monkeypatch):
    def fail(self, index):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(photographs.Painter, "jpeg", fail)
    with pytest.raises(OSError, match="No space left"):
        photographs.make_gld23k(tmp_path, 200, 0)
    shutil.rmtree(tmp_path)
