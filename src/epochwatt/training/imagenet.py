"""Read and write ImageNet's validation set as synset folders (board side: Python 3.6 grammar).

Source: the ILSVRC 2012 development kit (pictures `ILSVRC2012_val_00000001.JPEG` and on) and the
layout that torchvision's `ImageNet` makes of it: a folder per synset, classes in order of their
WordNet ids.
"""

import re
from typing import Iterable, List

from epochwatt.errors import DataError

SYNSETS = "synsets.txt"
CLASSES = 1000
_SYNSET = re.compile(r"n[0-9]{8}")


def picture_name(synset: str, number: int) -> str:
    """Return the path of a picture inside the data set's folder; the first number is 1."""
    return f"val/{synset}/ILSVRC2012_val_{number:08d}.JPEG"


def decode_synsets(content: bytes, where: str) -> List[str]:
    """Return the WordNet ids of the classes, in order; DataError names `where` for another form."""
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
