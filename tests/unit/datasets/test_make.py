"""A data set's folder: made whole, readable by the training's own reader."""

import json

import pytest

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe
from epochwatt.errors import RecordWriteError


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


def test_training_opens_what_was_made(made, factors):
    reader, manifest = open_dataset(str(made.parent), factors)
    image, label = reader.read(3)
    assert (len(reader), manifest["n_samples"]) == (18, 18)
    assert (image.shape, label) == ((28, 28), 3)  # the set begins with 0, 1, 2, 3


def test_manifest_lists_every_other_file(made):
    manifest = json.loads((made / "manifest.json").read_text("utf-8"))
    there = {path.name: path.stat().st_size for path in made.iterdir()}
    del there["manifest.json"]
    assert {name: about["bytes"] for name, about in manifest["files"].items()} == there


def test_making_it_again_gives_the_same_bytes(made, factors):
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    make_dataset(made, factors["recipe"])
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_left_overs_of_an_earlier_attempt_are_gone(made, factors):
    (made / "train-images-idx3-ubyte").write_bytes(b"half")
    (made / "stray").touch()
    make_dataset(made, factors["recipe"])
    assert not (made / "stray").exists()
    assert open_dataset(str(made.parent), factors)[1]["n_samples"] == 18


def test_manifest_comes_last(made, factors, monkeypatch):
    def fail(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("epochwatt.board.records.files.sync_file", fail)
    with pytest.raises(RecordWriteError, match="disk is full"):
        make_dataset(made, factors["recipe"])
    assert not (made / "manifest.json").exists()


def test_folder_that_cannot_be_made_is_a_clear_error(tmp_path, factors):
    (tmp_path / "data").touch()
    with pytest.raises(RecordWriteError, match="cannot write the data set"):
        make_dataset(tmp_path / "data" / "mnist-digits-x0.01", factors["recipe"])
