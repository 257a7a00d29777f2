"""Read and write IDX, MNIST's file format (board side: Python 3.6 grammar).

Source: the format's description on the MNIST page (yann.lecun.com/exdb/mnist): two zero bytes, one
byte for the type (0x08 = unsigned byte), one for the number of dimensions, the dimensions as
big-endian 32-bit integers, then the data, last index fastest.
"""

import struct
from typing import Tuple

import numpy as np

from epochwatt.errors import DataError

UNSIGNED_BYTE = 0x08


def decode(content: bytes, where: str) -> np.ndarray:
    """Decode an IDX file's bytes to a read-only uint8 array of the header's shape.

    Raises DataError, naming the file `where`: its type is another, or its size not the header's.
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE:
        raise DataError(f"{where} is not an IDX file of unsigned bytes")
    n_dims = content[3]
    start = 4 + 4 * n_dims
    if len(content) < start:
        raise DataError(f"{where} ends inside its header")
    shape: Tuple[int, ...] = struct.unpack(f">{n_dims}I", content[4:start])
    expected = start + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise DataError(f"{where} has {len(content)} bytes, its header asks for {expected}")
    try:
        return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
    except ValueError as error:  # more dimensions or elements than numpy can count
        raise DataError(f"{where}: {error}") from error


def encode(array: np.ndarray) -> bytes:
    """Return the bytes of an IDX file that holds a uint8 array of any shape."""
    if array.dtype != np.uint8:
        raise ValueError(f"IDX is written from uint8, not {array.dtype}")
    header = struct.pack(f">HBB{array.ndim}I", 0, UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array).tobytes()
