"""Check the shape of a value read from JSON (board side: Python 3.6 grammar).

A shape is one of

* a `Kind` of plain value: `NUMBER`, `TEXT`, ...
* None: nothing but null
* a tuple: any of these shapes
* a list of one shape: a list of such values
* a dict: an object with these keys; a key that ends with `?` may be missing, others may be there
* a dict with the one key `*`: an object with any keys and values of that shape
"""

import math
from typing import Any, Callable, Dict, Optional

Document = Dict[str, Any]  # an object of JSON, in a file or on its way to one
ANY_KEY = "*"
_LARGEST = 1e300  # what is larger is no measurement, and its square no number
_SHOWN = 60  # characters of a value in a message


class Kind:
    """A kind of plain value: what it is in words, and a function that says whether one is."""

    def __init__(self, description: str, fits: Callable[[Any], bool]) -> None:
        self.description = description
        self.fits = fits


def is_number(value: Any) -> bool:
    """Return whether a value is an int or float within +-1e300; bool and NaN are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -_LARGEST <= value <= _LARGEST  # NaN is not


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


NUMBER = Kind("a finite number", is_number)
AMOUNT = Kind("a number >= 0", lambda value: is_number(value) and value >= 0)
WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number >= 0", lambda value: _is_whole(value) and value >= 0)
TEXT = Kind("text", lambda value: isinstance(value, str))
WORD = Kind("text in one line", lambda value: isinstance(value, str) and value.isprintable())
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
ANY = Kind("any value", lambda value: True)


def problem(value: Any, shape: Any, path: str = "") -> Optional[str]:
    """Check a JSON value against a shape; return its first mismatch in words, None: it fits.

    `path`: of the value in its file, such as `kernels[3].size`; empty: the whole file
    """
    if isinstance(shape, tuple):
        problems = []
        for alternative in shape:
            fault = problem(value, alternative, path)
            if fault is None:
                return None
            problems.append(fault)
        # a fault inside the value says more than that the value is of no such kind
        mismatch = _mismatch(value, shape, path)
        start = mismatch.partition(", needed: ")[0]
        return next((text for text in problems if not text.startswith(start)), mismatch)
    if isinstance(shape, dict):
        return _problem_in_object(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _mismatch(value, shape, path)
        for index, element in enumerate(value):
            fault = problem(element, shape[0], f"{path}[{index}]")
            if fault:
                return fault
        return None
    fits = value is None if shape is None else shape.fits(value)
    return None if fits else _mismatch(value, shape, path)


def _problem_in_object(value: Any, shape: Any, path: str) -> Optional[str]:
    """Return the first mismatch of an object's keys and values as `problem` does."""
    if not isinstance(value, dict):
        return _mismatch(value, shape, path)
    if ANY_KEY in shape:
        shape = dict.fromkeys(value, shape[ANY_KEY])
    for name, value_shape in shape.items():
        key = name if name in value else name.rstrip("?")
        if key in value:
            fault = problem(value[key], value_shape, f"{path}.{key}" if path else key)
            if fault:
                return fault
        elif key == name:
            return "{} lacks {}".format(path or "it", key)
    return None


def _mismatch(value: Any, shape: Any, path: str) -> str:
    shown = ascii(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "..."
    return f"{path or 'the file'} is {shown}, needed: {_described(shape)}"


def _described(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(_described(alternative) for alternative in shape)
    if isinstance(shape, list):
        return "a list"
    if isinstance(shape, dict):
        return "an object"
    return "null" if shape is None else str(shape.description)
