"""Damage done to the bytes of a file: what a bad medium, a stranger or an editor makes of it.

All chance comes from the generator that is given, so a seed makes the same damage again.
"""

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

import yaml

MAX_BYTES = 2**20  # what is doubled again and again stays below it

# Values of a wrong kind or size, for any place of a file.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, 2**31, 2**63, 10**400, 1e308, -1e308, 1e-320),
    *(math.nan, math.inf, -math.inf, "", "x", "nan", "-1", "1e999", "0x10", "٣", "²", "\0"),
    *("é\ud800", "../../x", "a\nb", "," * 50, "%s{}{0}", "y" * 5000),
    *([], {}, [[]], [None], [0, "a"]),
    *({"": None}, {"a": {"b": []}}, [[1, 2], [3]]),
)
WORDS = (
    *("", "nan", "inf", "-inf", "-1", "0", "1e999", "9" * 400, "0x1f", "٣", "²", "1_0", "+5", " "),
    *("None", "true", '"', "'", "a,b", "x" * 3000, "../..", "\0", "\x85", "--", "{}", "%d", "é"),
)

Random = random.Random


def damaged(content: bytes, kind: str, rng: Random) -> bytes:
    """Return other bytes in place of `content`.

    Parameters
    ----------
    content : of a good file
    kind : `json`, `yaml`, `table` (cells between commas), `text` or `binary`: what is done to its
        parts beside what is done to any bytes
    rng : where all chance comes from
    """
    structural = _STRUCTURAL.get(kind)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if structural is not None and rng.random() < 0.6:
            content = structural(content, rng)
        else:
            content = rng.choice(_ANY)(content, rng)
    return content[:MAX_BYTES]


def flip(content: bytes, rng: Random) -> bytes:
    """Turn over one to eight bits."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(content: bytes, rng: Random) -> bytes:
    """Cut the end off."""
    return content[: rng.randrange(len(content) + 1)]


def zero(content: bytes, rng: Random) -> bytes:
    """Put zeros in place of a part, as after a power cut."""
    start, end = _part(content, rng)
    return content[:start] + bytes(end - start) + content[end:]


def _empty(content: bytes, rng: Random) -> bytes:
    return b""


def _delete(content: bytes, rng: Random) -> bytes:
    start, end = _part(content, rng)
    return content[:start] + content[end:]


def _double(content: bytes, rng: Random) -> bytes:
    start, end = _part(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 1, 5)) + content[end:]


def _insert(content: bytes, rng: Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    strange = (b"\xff\xfe", b"\x80", b"\0" * 9, b"\xc3(", b"\r", b"\n\n", rng.randbytes(7))
    return content[:place] + rng.choice(strange) + content[place:]


def _renumber(content: bytes, rng: Random) -> bytes:
    """Put another word in place of a number."""
    numbers = list(re.finditer(rb"[0-9][0-9.e+-]*", content))
    if not numbers:
        return content
    match = rng.choice(numbers)
    word = rng.choice((*WORDS, str(rng.randrange(-(10**6), 10**6)))).encode("utf-8")
    return content[: match.start()] + word + content[match.end() :]


def _lines(content: bytes, rng: Random) -> bytes:
    """Leave lines out, say them twice or in another order."""
    lines = content.split(b"\n")
    place, other = (rng.randrange(len(lines)) for _ in range(2))
    choice = rng.randrange(4)
    if choice == 0:
        del lines[place]
    elif choice == 1:
        lines.insert(other, lines[place])
    elif choice == 2:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines[place] = rng.choice(WORDS).encode("utf-8")
    return b"\n".join(lines)


def _part(content: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    longest = len(content) - start if rng.random() < 0.3 else min(16, len(content) - start)
    return start, start + rng.randrange(longest + 1)


def _json(content: bytes, rng: Random) -> bytes:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return flip(content, rng)
    if rng.random() < 0.02:
        return _nested(content, rng, b"[", b'{"a":')
    return json.dumps(changed_value(value, rng)).encode("utf-8")


def _yaml(content: bytes, rng: Random) -> bytes:
    if rng.random() < 0.02:
        return _nested(content, rng, b"[", b"{a: ")
    try:
        value = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        changed = changed_value(value, rng)
        text = yaml.dump(changed, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return flip(content, rng)
    return str(text).encode("utf-8", "surrogatepass")


def _nested(content: bytes, rng: Random, *openings: bytes) -> bytes:
    return rng.choice(openings) * rng.choice((200, 1000, 3000)) + content[:50]


def changed_value(value: Any, rng: Random) -> Any:
    """Return a copy of a value of lists and mappings, with one place in it changed."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.08:
        return rng.choice(ODD)
    if isinstance(value, list):
        return _changed_list(list(value), rng)
    copy = dict(value)
    key = rng.choice(list(copy))
    choice = rng.random()
    if choice < 0.12:
        del copy[key]
    elif choice < 0.18:
        copy[rng.choice(("", "x", f"{key} "))] = copy.pop(key)
    elif choice < 0.24:
        copy[key] = copy[rng.choice(list(copy))]  # a good value in a wrong place
    else:
        copy[key] = changed_value(copy[key], rng)
    return copy


def _changed_list(copy: list[Any], rng: Random) -> list[Any]:
    place = rng.randrange(len(copy))
    choice = rng.random()
    if choice < 0.12:
        del copy[place]
    elif choice < 0.24:
        copy.insert(rng.randrange(len(copy) + 1), copy[place])
    else:
        copy[place] = changed_value(copy[place], rng)
    return copy


def _table(content: bytes, rng: Random) -> bytes:
    """Change a cell, or leave one out of a row, or put one in."""
    lines = content.split(b"\n")
    place = 0 if rng.random() < 0.15 else rng.randrange(len(lines))
    cells = lines[place].split(b",")
    cell = rng.randrange(len(cells))
    choice = rng.random()
    if choice < 0.1:
        del cells[cell]
    elif choice < 0.2:
        cells.insert(cell, cells[cell])
    else:
        cells[cell] = rng.choice(WORDS).encode("utf-8")
    lines[place] = b",".join(cells)
    return b"\n".join(lines)


_ANY: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(flip, flip, flip, truncate, zero, _empty, _delete, _double, _insert, _renumber, _renumber),
    _lines,
)
_STRUCTURAL: dict[str, Callable[[bytes, Random], bytes]] = {
    "json": _json,
    "yaml": _yaml,
    "table": _table,
    "text": _renumber,
}
