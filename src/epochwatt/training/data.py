"""Data sets on disk: the manifest and one reader per format (board side: Python 3.6 grammar).

A data set is a folder with `manifest.json`: its recipe, the number of samples, size and SHA-256 of
every file. Readers decode one sample at a time: `read(i)` is what the papers call fetch.
"""

import hashlib
import os
from typing import Any, Dict, List, Tuple

import numpy as np

from epochwatt.errors import ConfigError, DataError, RecordError
from epochwatt.records import files
from epochwatt.records.dataset_folder import folder_name
from epochwatt.records.shapes import ANY_KEY, COUNT, OBJECT, TEXT
from epochwatt.training import cifar, idx, landmarks
from epochwatt.training.references import is_reference, resolve

MANIFEST = "manifest.json"
MNIST_IMAGES = "train-images-idx3-ubyte"
MNIST_LABELS = "train-labels-idx1-ubyte"
CIFAR_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))

_FILE = {"bytes": COUNT, "sha256": TEXT}
_MANIFEST = {"recipe": OBJECT, "files": {ANY_KEY: _FILE}, "n_samples": COUNT}
_REMAKE = "remove the folder and start again; the data set is then made anew"


def read_manifest(folder: str, recipe: Dict[str, Any]) -> Dict[str, Any]:
    """Read a data set's manifest and check that it was made by the recipe that the run names."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path):
        raise DataError(f"no data set: {MANIFEST} is missing", where=folder, do=_REMAKE)
    try:
        manifest: Dict[str, Any] = files.read_json(path, _MANIFEST)
    except RecordError as error:
        raise DataError(f"damaged ({error})", where=path, do=_REMAKE) from error
    if manifest["recipe"] != recipe:
        raise DataError(
            "made by another recipe than the run asks for",
            where=folder,
            found=str(manifest["recipe"]),
            allowed=str(recipe),
            do=_REMAKE,
        )
    return manifest


def check_size(folder: str, name: str, manifest: Dict[str, Any]) -> None:
    """Compare a file's size with the manifest, without reading the file."""
    path = os.path.join(folder, name)
    expected = manifest["files"].get(name)
    if expected is None:
        raise DataError(f"does not list {name}", where=os.path.join(folder, MANIFEST), do=_REMAKE)
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise _unreadable(path, error) from error
    if size != expected["bytes"]:
        raise DataError(
            f"its size is not that in {MANIFEST}",
            where=path,
            found=f"{size} bytes",
            allowed=f"{expected['bytes']} bytes",
            do=_REMAKE,
        )


def _unreadable(path: str, error: Exception) -> DataError:
    reason = getattr(error, "strerror", None) or error
    return DataError(f"cannot be read: {reason}", where=path, do=_REMAKE)


def read_checked(folder: str, name: str, manifest: Dict[str, Any]) -> bytes:
    """Read a whole file of a data set and compare it with the manifest."""
    check_size(folder, name, manifest)
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as handle:
            content = handle.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if hashlib.sha256(content).hexdigest() != manifest["files"][name]["sha256"]:
        raise DataError("was altered: its SHA-256 differs", where=path, do=_REMAKE)
    return content


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

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        self.images = idx.decode(read_checked(folder, MNIST_IMAGES, manifest), MNIST_IMAGES)
        self.labels = idx.decode(read_checked(folder, MNIST_LABELS, manifest), MNIST_LABELS)
        shapes = self.images.shape, self.labels.shape
        if self.images.ndim != 3 or shapes[1] != shapes[0][:1]:
            raise DataError(
                "images {} and labels {} do not fit each other".format(*shapes), where=folder
            )


class CifarBatches(_InMemory):
    """CIFAR-10's training set as five python batches; an image is (3, 32, 32)."""

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        batches = [cifar.decode(read_checked(folder, n, manifest), n) for n in CIFAR_BATCHES]
        self.images = np.concatenate([images for images, _ in batches])
        self.labels = np.concatenate([labels for _, labels in batches])


class JpegTree:
    """GLD-23k's training set: one JPEG per sample, opened and decoded each time it is read.

    When the object is made the pictures are compared with the manifest by name and size only:
    hashing them would read the whole data set into the page cache, whose state is measured.
    """

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        from PIL import Image

        Image.preinit()  # its decoders, now and not in each worker
        self._open = Image.open
        # PIL's own errors are OSErrors, except these: a header with an impossible size, and
        # the errors of some decoders for a header that makes no sense
        self._errors = (OSError, Image.DecompressionBombError, ValueError, SyntaxError)
        content = read_checked(folder, landmarks.MAP, manifest)
        rows = landmarks.decode_map(content, os.path.join(folder, landmarks.MAP))
        names = [landmarks.image_name(row.image_id) for row in rows]
        for name in names:
            check_size(folder, name, manifest)
        self.paths = [os.path.join(folder, name) for name in names]
        self.labels = [row.label for row in rows]

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, index: int) -> Tuple[Any, int]:
        """Return picture (PIL, RGB, decoded) and label of one sample."""
        path = self.paths[index]
        try:
            with open(path, "rb") as handle:
                image = self._open(handle)
                image.load()
        except self._errors as error:
            raise _unreadable(path, error) from error
        return (image if image.mode == "RGB" else image.convert("RGB")), self.labels[index]


READERS = {"mnist": MnistFiles, "cifar10": CifarBatches, "gld23k": JpegTree}


def reader_of(dataset: str) -> Any:
    """Return the reader class of a data set; one with a dot is a reference to an own class."""
    if is_reference(dataset):
        return resolve(dataset, "the data set")
    if dataset not in READERS:
        raise ConfigError(
            f"no reader for the data set {dataset!r}", allowed=[*READERS, "module.Class"]
        )
    return READERS[dataset]


def dataset_folder(root: str, factors: Dict[str, Any]) -> str:
    """Return the folder of the data set that a run names."""
    name = folder_name(factors["dataset"], factors["dataset_source"], factors["dataset_scale"])
    return os.path.join(root, name)


def dataset_paths(root: str, factors: Dict[str, Any], manifest: Dict[str, Any]) -> List[str]:
    """Return the files of the data set that a run names, in the order of the manifest."""
    folder = dataset_folder(root, factors)
    return [os.path.join(folder, name) for name in manifest["files"]]


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
    folder = dataset_folder(root, factors)
    manifest = read_manifest(folder, factors["recipe"])
    reader = reader_of(factors["dataset"])(folder, manifest)
    if len(reader) != manifest["n_samples"]:
        raise DataError(
            f"its number of samples is not that in {MANIFEST}",
            where=folder,
            found=str(len(reader)),
            allowed=str(manifest["n_samples"]),
            do=_REMAKE,
        )
    return reader, manifest
