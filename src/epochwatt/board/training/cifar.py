"""Read and write CIFAR-10's python batches (board side: Python 3.6 grammar).

Source: the format's description on the CIFAR page (www.cs.toronto.edu/~kriz/cifar.html), "Python
version": a pickle, written by Python 2, of a dict with `batch_label`, `labels` (a list), `data` (a
uint8 array (n, 3072): red, green and blue plane of 32x32, row by row) and `filenames`.
"""

import pickletools
import struct
from typing import Any, Callable, Dict, List, Sequence, Tuple

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
        batch = _parsed(content)
        if any(type(label) is not int for label in batch["labels"]):
            raise ValueError("a label is not a number")
        images, labels = _pixels(batch["data"]), np.array(batch["labels"], dtype=np.int64)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{where} is not a CIFAR-10 batch: {error}") from error
    if images.shape != (len(labels), N_VALUES):
        raise DataError(f"{where} holds no n x 3072 bytes with n labels")
    if len(labels) and not 0 <= labels.min() <= labels.max() < CLASSES:
        raise DataError(f"{where} has labels outside 0..{CLASSES - 1}")
    return images.reshape((-1,) + SHAPE), labels.astype(np.uint8)


class _Made:
    """An object that a pickle asks for: its name, its arguments and the state set afterwards."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: Any = ()
        self.state: Any = ()


_NAMES = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")
_VALUES: Dict[str, Callable[[Any], Any]] = {  # opcode -> what it puts on the stack
    **{n: lambda v: v for n in ("BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING")},
    "NONE": lambda _: None,
    "NEWFALSE": lambda _: False,
    "NEWTRUE": lambda _: True,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _parsed(content: bytes) -> Any:
    """Return what a batch file's pickle holds, texts as str (a byte a letter).

    Nothing is unpickled: `pickle`, even one that admits numpy's names only, lets a damaged file
    call numpy's own `__setstate__`, which can kill the interpreter. Here a name stays a name.
    Raises ValueError, KeyError, IndexError, TypeError, AttributeError.
    """
    stack: List[Any] = []
    marks: List[int] = []
    memo: Dict[Any, Any] = {}

    def since_mark() -> List[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    for opcode, argument, _ in pickletools.genops(content):
        name = opcode.name
        if name in _VALUES:
            stack.append(_VALUES[name](argument))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "APPENDS":
            items = since_mark()
            stack[-1].extend(items)
        elif name == "SETITEMS":
            items = since_mark()
            stack[-1].update(zip(items[::2], items[1::2]))
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name == "GLOBAL" and argument in _NAMES:
            stack.append(_Made(argument))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack[-1] = _Made(stack[-1].name)
            stack[-1].arguments = arguments
        elif name == "BUILD":
            state = stack.pop()
            stack[-1].state = state
        elif name not in ("PROTO", "STOP"):
            raise ValueError(f"it asks for {argument or name}")
    return stack.pop()


def _pixels(array: Any) -> np.ndarray:
    """Return what the array of a batch file holds: uint8 (n, m); raises as `_parsed`."""
    _, shape, kind, is_fortran, pixels = array.state
    text = kind.arguments[0].encode("latin-1")
    if array.name != _NAMES[0] or kind.name != _NAMES[2] or text != b"u1" or is_fortran:
        raise ValueError(f"it holds an array of type {text!r}")
    n_rows, n_values = shape
    return np.frombuffer(pixels.encode("latin-1"), np.uint8).reshape(n_rows, n_values).copy()


def encode(images: np.ndarray, labels: Sequence[int], names: Sequence[str], title: str) -> bytes:
    """Return the bytes of a batch file, opcode by opcode as Python 2 wrote the original.

    Today's pickle module would store names that an older numpy does not have, and bytes in a form
    half as large again.

    `images`: (n, 3, 32, 32) uint8
    `labels`: n labels, 0..9
    `title`: the batch's own name
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
