"""A data set's folder: made whole, readable by the training's own reader."""

import json

import pytest

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import n_samples, recipe
from epochwatt.errors import ConfigError, RecordWriteError


@pytest.fixture
def factors():
    return {
        **{"dataset": "mnist", "dataset_source": "digits", "dataset_scale": 0.01},
        "recipe": recipe("mnist", "digits", 0.01),
    }


@pytest.fixture
def made(tmp_path, factors):
    """The folder of 18 digits, below tmp_path."""
    folder = tmp_path / folder_name("mnist", "digits", 0.01)
    make_dataset(folder, factors["recipe"])
    return folder


def test_what_was_made_is_listed_and_opened_by_the_training(made, factors):
    there = {path.name: path.stat().st_size for path in made.iterdir()}
    del there["manifest.json"]
    reader, manifest = open_dataset(str(made.parent), factors)
    assert {name: about["bytes"] for name, about in manifest["files"].items()} == there
    image, label = reader.read(3)
    assert (len(reader), manifest["n_samples"]) == (18, 18)
    assert (image.shape, label) == ((28, 28), 3)  # the set begins with 0, 1, 2, 3


def test_making_it_again_gives_the_same_bytes_and_no_left_overs(made, factors):
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    (made / "train-images-idx3-ubyte").write_bytes(b"half")
    (made / "stray").touch()
    make_dataset(made, factors["recipe"])
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_manifest_comes_last(made, factors, monkeypatch):
    def fail(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("epochwatt.board.records.files.sync_file", fail)
    with pytest.raises(RecordWriteError, match="disk is full"):
        make_dataset(made, factors["recipe"])
    assert not (made / "manifest.json").exists()
    (made.parent / "file").touch()
    with pytest.raises(RecordWriteError, match="cannot write the data set"):
        make_dataset(made.parent / "file/mnist-digits-x0.01", factors["recipe"])


def test_recipe_is_what_it_was():
    """It stands in the id of every run: a change here is a new id for each."""
    assert json.dumps(recipe("mnist", "digits", 8), sort_keys=True) == (
        '{"name": "mnist", "scale": 8, "seed": 0, "source": "digits", "version": 1}'
    )


@pytest.mark.parametrize(
    ("source", "scale", "count"),
    [
        *(("digits", 1, 1797), ("digits", 8, 14376), ("digits", 0.5, 898), ("digits", 1e-6, 1)),
        *(("synthetic", 1, 60_000), ("synthetic", 0.004, 240), ("official", 1, 60_000)),
    ],
)
def test_scale_counts_in_originals_and_is_never_empty(source, scale, count):
    assert n_samples("mnist", source, scale) == count


@pytest.mark.parametrize(("name", "source"), [("mnist", "paper"), ("cifar", "digits")])
def test_unknown_source_names_those_there_are(name, source):
    with pytest.raises(ConfigError) as told:
        recipe(name, source, 1)
    assert f"{name!r} from source {source!r}" in str(told.value)
    assert "mnist from digits" in str(told.value)
