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
    """Return whether it is a number that arithmetic can be done with; true and false are none."""
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


def problem(value: Any, shape: Any, place: str = "") -> Optional[str]:
    """Return what is wrong with a value and where in it, in words; None: it has the shape."""
    if isinstance(shape, tuple):
        problems = [problem(value, alternative, place) for alternative in shape]
        if None in problems:
            return None
        inside = [text for text in problems if text and not text.startswith(_at(place) + " is ")]
        return (inside or [_wrong(value, shape, place)])[0]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _wrong(value, shape, place)
        parts = (problem(v, shape[0], f"{place}[{n}]") for n, v in enumerate(value))
        return next((text for text in parts if text), None)
    if isinstance(shape, dict):
        return _problem_of_object(value, shape, place)
    fits = value is None if shape is None else shape.fits(value)
    return None if fits else _wrong(value, shape, place)


def _problem_of_object(value: Any, shape: Any, place: str) -> Optional[str]:
    if not isinstance(value, dict):
        return _wrong(value, shape, place)
    begin = place + "." if place else ""
    if ANY_KEY in shape:
        texts = (problem(v, shape[ANY_KEY], begin + key) for key, v in value.items())
        return next((text for text in texts if text), None)
    for name, inner in shape.items():
        key = name.rstrip("?")
        if key in value:
            wrong = problem(value[key], inner, begin + key)
            if wrong:
                return wrong
        elif key == name:
            return "{} lacks {}".format(place or "it", key)
    return None


def _at(place: str) -> str:
    return place or "the file"


def _wrong(value: Any, shape: Any, place: str) -> str:
    shown = ascii(value) if not isinstance(value, float) or math.isfinite(value) else str(value)
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "..."
    return f"{_at(place)} is {shown}, needed: {_described(shape)}"


def _described(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(_described(alternative) for alternative in shape)
    if isinstance(shape, list):
        return "a list"
    if isinstance(shape, dict):
        return "an object"
    return "null" if shape is None else str(shape.description)
