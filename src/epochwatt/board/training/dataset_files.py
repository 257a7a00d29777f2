"""Read files of a data set and their manifest (board side: Python 3.6 grammar)."""

import hashlib
import os

from epochwatt.board.records import files
from epochwatt.board.records.shapes import ANY_KEY, COUNT, OBJECT, TEXT, Document
from epochwatt.errors import DataError, RecordError

MANIFEST = "manifest.json"
MNIST_IMAGES, MNIST_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
_FILE = {"bytes": COUNT, "sha256": TEXT}
_MANIFEST = {"recipe": OBJECT, "files": {ANY_KEY: _FILE}, "n_samples": COUNT}
REMAKE = "remove the folder and start again; the data set is then made anew"


def read_manifest(folder: str, recipe: Document) -> Document:
    """Read a data set's manifest and compare its recipe with the run's.

    Raises DataError: it is missing, damaged or of another recipe.
    """
    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path):
        raise DataError(f"no data set: {MANIFEST} is missing", where=folder, do=REMAKE)
    try:
        manifest: Document = files.read_json(path, _MANIFEST)
    except RecordError as error:
        raise DataError(f"damaged ({error})", where=path, do=REMAKE) from error
    if manifest["recipe"] != recipe:
        raise DataError(
            "made by another recipe than the run asks for",
            where=folder,
            found=str(manifest["recipe"]),
            allowed=str(recipe),
            do=REMAKE,
        )
    return manifest


def check_size(folder: str, name: str, manifest: Document) -> None:
    """Raise DataError unless a file's size is that in the manifest; its content is not read."""
    path = os.path.join(folder, name)
    expected = manifest["files"].get(name)
    if expected is None:
        raise DataError(f"does not list {name}", where=os.path.join(folder, MANIFEST), do=REMAKE)
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise unreadable(path, error) from error
    if size != expected["bytes"]:
        raise DataError(
            f"its size is not that in {MANIFEST}",
            where=path,
            found=f"{size} bytes",
            allowed=f"{expected['bytes']} bytes",
            do=REMAKE,
        )


def unreadable(path: str, error: Exception) -> DataError:
    """Return the error of a file that cannot be read or decoded."""
    reason = getattr(error, "strerror", None) or error
    return DataError(f"cannot be read: {reason}", where=path, do=REMAKE)


def read_checked(folder: str, name: str, manifest: Document) -> bytes:
    """Read a file of a data set; raises DataError unless size and SHA-256 are the manifest's."""
    check_size(folder, name, manifest)
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as handle:
            content = handle.read()
    except OSError as error:
        raise unreadable(path, error) from error
    if hashlib.sha256(content).hexdigest() != manifest["files"][name]["sha256"]:
        raise DataError("was altered: its SHA-256 differs", where=path, do=REMAKE)
    return content
