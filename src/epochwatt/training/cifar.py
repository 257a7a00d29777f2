"""The CIFAR-10 file format, python batches (board side: Python 3.6 grammar).

Source: the format's description on the CIFAR page (www.cs.toronto.edu/~kriz/cifar.html), "Python
version": a pickle, written by Python 2, of a dict with `batch_label`, `labels` (a list), `data` (a
uint8 array (n, 3072): red, green and blue plane of 32x32, row by row) and `filenames`.
"""

import io
import pickle
import struct
from typing import Any, List, Sequence, Tuple

import numpy as np

from epochwatt.errors import DataError

CLASSES = 10
SHAPE = (3, 32, 32)
N_VALUES = 3072


def decode(content: bytes, where: str) -> Tuple[np.ndarray, np.ndarray]:
    """Return the images (n, 3, 32, 32) and labels (n,) of a batch file's bytes, both uint8.

    Raises DataError, naming `where`, for anything that is no such batch.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        images, labels = batch[b"data"], np.array(batch[b"labels"])
    except Exception as error:  # a damaged pickle raises nearly anything
        raise DataError("{} is not a CIFAR-10 batch: {}".format(where, error)) from error
    fits = isinstance(images, np.ndarray) and images.shape == (len(labels), N_VALUES)
    if not fits or images.dtype != np.uint8 or labels.dtype.kind != "i":
        raise DataError("{} holds no n x 3072 bytes with n labels".format(where))
    if len(labels) and not 0 <= labels.min() <= labels.max() < CLASSES:
        raise DataError("{} has labels outside 0..{}".format(where, CLASSES - 1))
    return images.reshape((-1,) + SHAPE), labels.astype(np.uint8)


class _Unpickler(pickle.Unpickler):
    """Reads a batch and nothing else: a pickle names functions, and these three are all it may."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for one of the three names in a batch file."""
        admitted = {
            "numpy.core.multiarray._reconstruct": _empty_array,
            "numpy.ndarray": np.ndarray,
            "numpy.dtype": _byte_type,
        }
        try:
            return admitted["{}.{}".format(module, name)]
        except KeyError:
            raise pickle.UnpicklingError("it asks for {}.{}".format(module, name)) from None


def _empty_array(kind: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Return the array that the pickle then fills, as numpy's own function does."""
    return np.empty(0, np.uint8)


def _byte_type(kind: bytes, align: int, copy: int) -> np.dtype:
    """Return a type that the pickle may fill; only bytes are admitted."""
    if kind != b"u1":
        raise pickle.UnpicklingError("it holds an array of type {!r}".format(kind))
    return np.dtype("u1", align=False, copy=True)  # a copy: the filling must not touch numpy's own


def encode(images: np.ndarray, labels: Sequence[int], names: Sequence[str], title: str) -> bytes:
    """Return the bytes of a batch file, opcode by opcode as Python 2 wrote the original.

    Today's pickle module would store names that an older numpy does not have, and bytes in a form
    half as large again.

    Parameters
    ----------
    images : (n, 3, 32, 32) uint8
    labels : n labels, 0..9
    names : n file names
    title : the batch's own name
    """
    pixels = np.ascontiguousarray(images, dtype=np.uint8).tobytes()
    # numpy: _reconstruct(ndarray, (0,), "b"), filled with version, shape, type, order and bytes
    array: List[bytes] = [
        *(b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy\nndarray\n"),
        *(_int(0), b"\x85", _text(b"b"), b"\x87R("),
        *(_int(1), _int(len(images)), _int(N_VALUES), b"\x86"),
        *(b"cnumpy\ndtype\n", _text(b"u1"), _int(0), _int(1), b"\x87R("),
        *(_int(3), _text(b"|"), b"NNN", _int(-1), _int(-1), _int(0), b"tb"),
        *(b"\x89", _text(pixels), b"tb"),
    ]
    parts: List[bytes] = [
        *(b"\x80\x02}(", _text(b"batch_label"), _text(title.encode("ascii"))),
        *(_text(b"labels"), b"](", *map(_int, labels), b"e"),
        *(_text(b"data"), *array),
        *(_text(b"filenames"), b"](", *(_text(n.encode("ascii")) for n in names), b"e"),
        b"u.",
    ]
    return b"".join(parts)


def _text(value: bytes) -> bytes:
    """Return a string of Python 2 as a pickle holds it."""
    if len(value) < 256:
        return b"U" + struct.pack("<B", len(value)) + value
    return b"T" + struct.pack("<i", len(value)) + value


def _int(value: int) -> bytes:
    """Return an integer as a pickle holds it."""
    if 0 <= value < 256:
        return b"K" + struct.pack("<B", value)
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    return b"J" + struct.pack("<i", value)
