"""GLD-23k's JPEG tree: compared by names and sizes, read and decoded one picture at a time."""

import os
import shutil

import pytest

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training import landmarks
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import DataError

SCALE = 0.0002  # 5 of 23,080


@pytest.fixture(scope="module")
def factors():
    named = {"dataset": "gld23k", "dataset_source": "synthetic", "dataset_scale": SCALE}
    return {**named, "recipe": recipes.recipe("gld23k", "synthetic", SCALE)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory, factors):
    """The folder of a tiny data set that nobody changes."""
    folder = tmp_path_factory.mktemp("gld") / folder_name("gld23k", "synthetic", SCALE)
    make_dataset(folder, factors["recipe"])
    return folder


@pytest.fixture
def made(tmp_path, stored):
    """A copy of it that may be damaged."""
    return shutil.copytree(stored, tmp_path / stored.name)


@pytest.mark.parametrize(
    "content",
    [
        b"user_id,image_id\n7,00cba0067c078490\n",
        b"user_id,image_id,class\n7,00cba0067c078490\n",
        b"user_id,image_id,class\n7,00cba0067c078490,x\n",
        b"\xff\xd8\xff\xe0",
    ],
)
def test_other_files_are_no_map(content):
    with pytest.raises(
        DataError, match=r"map\.csv is not a map with the columns user_id, image_id"
    ):
        landmarks.decode_map(content, "map.csv")


def test_picture_needs_its_file_no_more_and_leaves_no_file_open(made, factors):
    reader, _ = open_dataset(str(made.parent), factors)
    n_open = len(os.listdir("/proc/self/fd"))
    images = [reader.read(index)[0] for index in range(5)]
    assert len(os.listdir("/proc/self/fd")) == n_open
    shutil.rmtree(made)
    assert all(image.copy().getpixel((799, 599)) for image in images)


def test_opening_reads_no_picture(made, factors):
    """Else the page cache, whose state is measured, would hold the data set."""
    for path in (made / "train").iterdir():
        path.write_bytes(b"x" * path.stat().st_size)
    reader, _ = open_dataset(str(made.parent), factors)
    with pytest.raises(DataError, match=r"\.jpg: cannot be read: cannot identify image"):
        reader.read(0)
