"""Data sets on disk: the manifest and one reader per format (board side: Python 3.6 grammar).

A data set is a folder with `manifest.json`: its recipe, its format, the number of samples and size
and SHA-256 of every file. Readers decode one sample at a time: `read(i)` is what the papers call
fetch.
"""

import hashlib
import os
from typing import Any, Dict, Tuple

import numpy as np

from epochwatt.errors import DataError, RecordError
from epochwatt.records import files
from epochwatt.training import idx

MANIFEST = "manifest.json"
MNIST_IMAGES = "train-images-idx3-ubyte"
MNIST_LABELS = "train-labels-idx1-ubyte"

_MEND = "Remove the folder and start again: it is then made anew"


def folder_name(dataset: str, source: str, scale: float) -> str:
    """Return the name of a data set's folder below the root of its storage medium."""
    return "{}-{}-x{:g}".format(dataset, source, scale)


def read_manifest(folder: str, recipe: Dict[str, Any]) -> Dict[str, Any]:
    """Read a data set's manifest and check that it was made by the recipe that the run names."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path):
        raise DataError("no data set at {}: {} is missing. {}".format(folder, MANIFEST, _MEND))
    try:
        manifest = dict(files.read_json(path))
        found = manifest["recipe"]
    except (RecordError, KeyError, TypeError, ValueError) as error:
        raise DataError("{} is damaged ({}). {}".format(path, error, _MEND)) from error
    if found != recipe:
        raise DataError(
            "the data set at {} was made by recipe {}, the run asks for {}. {}".format(
                folder, found, recipe, _MEND
            )
        )
    return manifest


def read_checked(folder: str, name: str, manifest: Dict[str, Any]) -> bytes:
    """Read a whole file of a data set and compare it with the manifest."""
    path = os.path.join(folder, name)
    expected = manifest["files"].get(name)
    if expected is None:
        raise DataError("{} does not list {}".format(os.path.join(folder, MANIFEST), name))
    try:
        with open(path, "rb") as handle:
            content = handle.read()
    except OSError as error:
        raise DataError("cannot read {}: {}. {}".format(path, error.strerror, _MEND)) from error
    if len(content) != expected["bytes"]:
        raise DataError(
            "{} has {} bytes, the manifest says {}. {}".format(
                path, len(content), expected["bytes"], _MEND
            )
        )
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise DataError("{} was altered: its SHA-256 differs. {}".format(path, _MEND))
    return content


class MnistFiles:
    """MNIST's training set as two IDX files, in memory after construction.

    As in the 2023 scripts the whole set is read when the object is made, before any timed epoch;
    what remains to fetch is one 28x28 array out of memory.
    """

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        self.images = idx.decode(read_checked(folder, MNIST_IMAGES, manifest), MNIST_IMAGES)
        self.labels = idx.decode(read_checked(folder, MNIST_LABELS, manifest), MNIST_LABELS)
        if self.images.ndim != 3 or self.labels.shape != self.images.shape[:1]:
            raise DataError(
                "{}: images {} and labels {} do not fit each other".format(
                    folder, self.images.shape, self.labels.shape
                )
            )

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, index: int) -> Tuple[np.ndarray, int]:
        """Return image (28, 28) uint8 and label of one sample."""
        return self.images[index].copy(), int(self.labels[index])


READERS = {"mnist": MnistFiles}


def open_dataset(root: str, factors: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
    """Open the data set that a run names; return its reader and its manifest.

    Parameters
    ----------
    root : folder of the storage medium that holds data sets
    factors : the run's complete factors, with `recipe`

    Raises
    ------
    DataError : the data set is missing, cut short, altered or made by another recipe
    """
    name = folder_name(factors["dataset"], factors["dataset_source"], factors["dataset_scale"])
    folder = os.path.join(root, name)
    manifest = read_manifest(folder, factors["recipe"])
    reader = READERS[factors["dataset"]](folder, manifest)
    if len(reader) != manifest["n_samples"]:
        raise DataError(
            "{} holds {} samples, the manifest says {}. {}".format(
                folder, len(reader), manifest["n_samples"], _MEND
            )
        )
    return reader, manifest
