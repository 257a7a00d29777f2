"""Read pictures, one JPEG per sample (board side: Python 3.6 grammar)."""

import os
import re
from typing import Any, Iterable, List, Tuple

from epochwatt.board.records.shapes import Document
from epochwatt.board.training import coco, landmarks
from epochwatt.board.training.dataset_files import check_size, read_checked, unreadable
from epochwatt.errors import DataError

SYNSETS = "synsets.txt"
CLASSES = 1000
_SYNSET = re.compile(r"n[0-9]{8}")


def picture_name(synset: str, number: int) -> str:
    """Return the path of a picture inside the data set's folder; the first number is 1."""
    return f"val/{synset}/ILSVRC2012_val_{number:08d}.JPEG"


def decode_synsets(content: bytes, where: str) -> List[str]:
    """Decode the list of classes to their 1,000 WordNet ids, in order.

    Raises DataError, naming the file `where`: it is no such list.
    """
    synsets = content.decode("utf-8", "replace").split()
    if len(set(synsets)) != CLASSES or sorted(synsets) != synsets:
        raise DataError(f"{where} does not list {CLASSES} synsets in order")
    wrong = [synset for synset in synsets if not _SYNSET.fullmatch(synset)]
    if wrong:
        raise DataError(f"{where} lists {wrong[0]!r}, which is no WordNet id")
    return synsets


def encode_synsets(synsets: Iterable[str]) -> bytes:
    """Return the bytes of the list of classes."""
    return "".join(f"{synset}\n" for synset in synsets).encode("ascii")


class _Pictures:
    """JPEG files that are opened and decoded each time they are read.

    When the object is made the pictures are compared with the manifest by name and size only:
    hashing them would read the whole data set into the page cache, whose state is measured.
    """

    labels: List[int]

    def __init__(self, folder: str, manifest: Document, names: List[str]) -> None:
        from PIL import Image

        Image.preinit()  # its decoders, now and not in each worker
        self._open = Image.open
        # PIL's own errors are OSErrors, except these: a header with an impossible size, and
        # the errors of some decoders for a header that makes no sense
        self._errors = (OSError, Image.DecompressionBombError, ValueError, SyntaxError)
        for name in names:
            check_size(folder, name, manifest)
        self.paths = [os.path.join(folder, name) for name in names]

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> Tuple[Any, int]:
        """Return picture (PIL, RGB, decoded) and label of one sample."""
        return self.picture(index), self.labels[index]

    def picture(self, index: int) -> Any:
        """Open and decode a picture, as PIL RGB; raises DataError: it cannot be read."""
        path = self.paths[index]
        try:
            with open(path, "rb") as handle:
                image = self._open(handle)
                image.load()
        except self._errors as error:
            raise unreadable(path, error) from error
        return image if image.mode == "RGB" else image.convert("RGB")


class JpegTree(_Pictures):
    """GLD-23k's training set: pictures and a map of their classes."""

    def __init__(self, folder: str, manifest: Document) -> None:
        content = read_checked(folder, landmarks.MAP, manifest)
        rows = landmarks.decode_map(content, os.path.join(folder, landmarks.MAP))
        names = [landmarks.image_name(row.image_id) for row in rows]
        super().__init__(folder, manifest, names)
        self.labels = [row.label for row in rows]


class ImagenetTree(_Pictures):
    """ImageNet's validation set: a folder per synset, a list of the synsets."""

    def __init__(self, folder: str, manifest: Document) -> None:
        content = read_checked(folder, SYNSETS, manifest)
        synsets = decode_synsets(content, os.path.join(folder, SYNSETS))
        label_of = {f"val/{synset}": label for label, synset in enumerate(synsets)}
        names = [name for name in manifest["files"] if os.path.dirname(name) in label_of]
        super().__init__(folder, manifest, names)
        self.labels = [label_of[os.path.dirname(name)] for name in names]


class CocoPictures(_Pictures):
    """COCO's validation set: pictures, and the boxes of the objects on them."""

    def __init__(self, folder: str, manifest: Document) -> None:
        content = read_checked(folder, coco.INSTANCES, manifest)
        self.pictures = coco.decode_instances(content, os.path.join(folder, coco.INSTANCES))
        names = [coco.picture_name(picture.file_name) for picture in self.pictures]
        super().__init__(folder, manifest, names)

    def read(self, index: int) -> Tuple[Any, int]:
        """Return a picture with its boxes (`coco.Annotated`); there is no label beside them: 0."""
        row = self.pictures[index]
        return coco.Annotated(self.picture(index), row.boxes, row.labels), 0
