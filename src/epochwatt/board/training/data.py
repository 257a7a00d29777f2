"""Open data sets on disk: the manifest, one reader per format (board side: Python 3.6 grammar).

A data set is a folder with `manifest.json`: its recipe, the number of samples, size and SHA-256 of
every file. Readers decode one sample at a time: `read(i)` is what the papers call fetch.
"""

import os
from typing import Any, List, Tuple

import numpy as np

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.records.shapes import Document
from epochwatt.board.training import cifar, idx
from epochwatt.board.training.dataset_files import (
    MANIFEST,
    MNIST_IMAGES,
    MNIST_LABELS,
    REMAKE,
    check_size,
    read_checked,
    read_manifest,
)
from epochwatt.board.training.pictures import CocoPictures, ImagenetTree, JpegTree
from epochwatt.board.training.references import is_reference, resolve
from epochwatt.board.training.text import SquadQuestions, TokenFile, WikiWords
from epochwatt.columns import Factors
from epochwatt.errors import ConfigError, DataError

__all__ = ["MANIFEST", "check_size", "open_dataset", "read_checked"]  # also of own data formats

CIFAR_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))


class _InMemory:
    """Images, uint8 (n, ...), and labels, (n,), that are read when the object is made.

    As in the 2023 scripts, that is before any timed epoch; what remains to fetch is one array out
    of memory.
    """

    in_memory = True  # so the page cache means nothing to an epoch
    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, index: int) -> Tuple[np.ndarray, int]:
        """Return image, uint8, and label of one sample."""
        return self.images[index].copy(), int(self.labels[index])


class MnistFiles(_InMemory):
    """MNIST's training set as two IDX files; an image is (28, 28)."""

    def __init__(self, folder: str, manifest: Document) -> None:
        self.images = idx.decode(read_checked(folder, MNIST_IMAGES, manifest), MNIST_IMAGES)
        self.labels = idx.decode(read_checked(folder, MNIST_LABELS, manifest), MNIST_LABELS)
        images, labels = self.images.shape, self.labels.shape
        if len(images) != 3 or labels != images[:1]:
            raise DataError(
                f"images {images} and labels {labels} do not fit each other", where=folder
            )


class CifarBatches(_InMemory):
    """CIFAR-10's training set as five python batches; an image is (3, 32, 32)."""

    def __init__(self, folder: str, manifest: Document) -> None:
        batches = [cifar.decode(read_checked(folder, n, manifest), n) for n in CIFAR_BATCHES]
        self.images = np.concatenate([images for images, _ in batches])
        self.labels = np.concatenate([labels for _, labels in batches])


READERS = {
    "mnist": MnistFiles,
    "cifar10": CifarBatches,
    "gld23k": JpegTree,
    "imagenet": ImagenetTree,
    "squad": SquadQuestions,
    "wikitext": WikiWords,
    "tokens": TokenFile,
    "coco": CocoPictures,
}


def reader_of(dataset: str) -> Any:
    """Return the reader class of a data set, for `module.Class` the user's own.

    Raises ConfigError: there is no such reader.
    """
    if is_reference(dataset):
        return resolve(dataset, "the data set")
    if dataset not in READERS:
        raise ConfigError(
            f"no reader for the data set {dataset!r}", allowed=[*READERS, "module.Class"]
        )
    return READERS[dataset]


def dataset_folder(root: str, factors: Factors) -> str:
    """Return the folder of the data set that a run names."""
    name = folder_name(factors["dataset"], factors["dataset_source"], factors["dataset_scale"])
    return os.path.join(root, name)


def dataset_paths(root: str, factors: Factors, manifest: Document) -> List[str]:
    """Return the files of the data set that a run names, in the order of the manifest."""
    folder = dataset_folder(root, factors)
    return [os.path.join(folder, name) for name in manifest["files"]]


def open_dataset(root: str, factors: Factors) -> Tuple[Any, Document]:
    """Open the data set that a run's `factors` name below `root`; return reader and manifest.

    Raises DataError: the data set is missing, cut short, altered or made by another recipe;
    ConfigError: a user's own reader lacks a length or `read`.
    """
    folder = dataset_folder(root, factors)
    manifest = read_manifest(folder, factors["recipe"])
    reader = reader_of(factors["dataset"])(folder, manifest)
    missing = [name for name in ("__len__", "read") if not hasattr(reader, name)]
    if missing:
        raise ConfigError(
            f"the reader {factors['dataset']} has no {missing[0]}",
            allowed="a class with __init__(self, folder, manifest), __len__(self) and "
            "read(self, index)",
            do="see docs/how-to/own-format.md; what comes as a stream is read into memory or files",
        )
    if len(reader) != manifest["n_samples"]:
        raise DataError(
            f"its number of samples is not that in {MANIFEST}",
            where=folder,
            found=str(len(reader)),
            allowed=str(manifest["n_samples"]),
            do=REMAKE,
        )
    return reader, manifest
