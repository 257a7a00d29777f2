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
    """Decode a batch file to images (n, 3, 32, 32) and labels (n,), both uint8.

    Raises DataError, naming the file `where`: it is no CIFAR-10 batch.
    """
    try:
        batch = _parse_pickle(content)
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


class _PickledObject:
    """An object that a pickle would make: its class's name, arguments and the state set later."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: Any = ()
        self.state: Any = ()


_NAMES = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")
_VALUES: Dict[str, Callable[[Any], Any]] = {  # opcode -> what it puts on the stack
    "BININT": lambda argument: argument,
    "BININT1": lambda argument: argument,
    "BININT2": lambda argument: argument,
    "SHORT_BINSTRING": lambda argument: argument,
    "BINSTRING": lambda argument: argument,
    "NONE": lambda _: None,
    "NEWFALSE": lambda _: False,
    "NEWTRUE": lambda _: True,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
}
_TUPLE_LENGTHS = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _parse_pickle(content: bytes) -> Any:
    """Interpret a batch file's pickle without calling anything; texts are str (Latin-1).

    `pickle`, even restricted to numpy's names, lets a damaged file call numpy's `__setstate__`,
    which can kill the interpreter; here numpy's objects become `_PickledObject`s. Raises
    ValueError, KeyError, IndexError, TypeError or AttributeError for other content.
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
        elif name in _TUPLE_LENGTHS:
            length = _TUPLE_LENGTHS[name]
            stack[-length:] = [tuple(stack[-length:])]
        elif name == "GLOBAL" and argument in _NAMES:
            stack.append(_PickledObject(argument))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack[-1] = _PickledObject(stack[-1].name)
            stack[-1].arguments = arguments
        elif name == "BUILD":
            state = stack.pop()
            stack[-1].state = state
        elif name not in ("PROTO", "STOP"):
            raise ValueError(f"it asks for {argument or name}")
    return stack.pop()


def _pixels(array: Any) -> np.ndarray:
    """Return a pickled numpy array, uint8 (n, m); raises ValueError for another type or order."""
    _, shape, dtype, is_fortran, pixels = array.state
    code = dtype.arguments[0].encode("latin-1")
    if array.name != _NAMES[0] or dtype.name != _NAMES[2] or code != b"u1" or is_fortran:
        raise ValueError(f"it holds an array of type {code!r}")
    n_rows, n_values = shape
    return np.frombuffer(pixels.encode("latin-1"), np.uint8).reshape(n_rows, n_values).copy()


def encode(images: np.ndarray, labels: Sequence[int], names: Sequence[str], title: str) -> bytes:
    """Encode a batch file, with the pickle opcodes that Python 2 wrote into the original.

    Today's pickle module would store names that an older numpy lacks, and bytes in a form half as
    large again. `images`: (n, 3, 32, 32) uint8; `labels`: 0..9; `names`: of the image files;
    `title`: the batch's own name
    """
    pixels = np.ascontiguousarray(images, dtype=np.uint8).tobytes()
    # numpy's array: _reconstruct(ndarray, (0,), "b"), then its state is set
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    array += _int(0) + b"\x85" + _text(b"b") + b"\x87R("
    array += _int(1) + _int(len(images)) + _int(N_VALUES) + b"\x86"  # version, shape
    array += b"cnumpy\ndtype\n" + _text(b"u1") + _int(0) + _int(1) + b"\x87R("
    array += _int(3) + _text(b"|") + b"NNN" + _int(-1) + _int(-1) + _int(0) + b"tb"
    array += b"\x89" + _text(pixels) + b"tb"  # not Fortran's order
    batch = b"\x80\x02}(" + _text(b"batch_label") + _text(title.encode("ascii"))
    batch += _text(b"labels") + b"](" + b"".join(map(_int, labels)) + b"e"
    batch += _text(b"data") + array
    file_names = b"".join(_text(name.encode("ascii")) for name in names)
    return batch + _text(b"filenames") + b"](" + file_names + b"eu."


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
