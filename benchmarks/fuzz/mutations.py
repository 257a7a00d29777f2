"""Damage done to the bytes of a file: what a bad medium, a stranger or an editor makes of it.

All chance comes from the generator that is given, so a seed makes the same damage again.
"""

import json
import math
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import yaml

MAX_BYTES = 2**20  # what is doubled again and again stays below it

# Values of a wrong kind or size, for any place of a document.
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
STRANGE = (b"\xff\xfe", b"\x80", b"\0" * 9, b"\xc3(", b"\r", b"\n\n", b"\xd1\x02\x9c\xee\x00\x7f+")

Random = random.Random


def damaged(content: bytes, kind: str, rng: Random) -> bytes:
    """Return other bytes in place of a good file's.

    `kind`: `json`, `yaml`, `table` (cells between commas), `text` or `binary`: what is done to its
    parts beside what is done to any bytes
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changes = STRUCTURAL[kind] if kind in STRUCTURAL and rng.random() < 0.6 else ANY
        content = rng.choice(changes)(content, rng)
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
    return _replace(content, rng, lambda part: bytes(len(part)))


def _replace(content: bytes, rng: Random, change: Callable[[bytes], bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    longest = len(content) - start if rng.random() < 0.3 else min(16, len(content) - start)
    end = start + rng.randrange(longest + 1)
    return content[:start] + change(content[start:end]) + content[end:]


def _patch(content: bytes, rng: Random) -> bytes:
    """Leave a part out, say it again and again, or put strange bytes in its place."""
    return _replace(content, rng, lambda part: rng.choice((b"", part * 2, part * 6, *STRANGE)))


def _renumber(content: bytes, rng: Random) -> bytes:
    """Put another word in place of a number."""
    numbers = list(re.finditer(rb"[0-9][0-9.e+-]*", content))
    if not numbers:
        return content
    match = rng.choice(numbers)
    word = rng.choice((*WORDS, str(rng.randrange(-(10**6), 10**6)))).encode()
    return content[: match.start()] + word + content[match.end() :]


def _pieces(content: bytes, rng: Random, separator: bytes = b"\n") -> bytes:
    """Leave a piece out, say it twice, exchange two or put a strange one there."""
    pieces = content.split(separator)
    one, other = (rng.randrange(len(pieces)) for _ in range(2))
    choice = rng.randrange(4)
    if choice == 0:
        del pieces[one]
    elif choice == 1:
        pieces.insert(other, pieces[one])
    elif choice == 2:
        pieces[one], pieces[other] = pieces[other], pieces[one]
    else:
        pieces[one] = rng.choice(WORDS).encode()
    return separator.join(pieces)


def _cells(content: bytes, rng: Random) -> bytes:
    """Change the cells of a row, often of the first."""
    lines = content.split(b"\n")
    place = 0 if rng.random() < 0.15 else rng.randrange(len(lines))
    lines[place] = _pieces(lines[place], rng, b",")
    return b"\n".join(lines)


def _document(
    content: bytes, rng: Random, load: Callable[[bytes], Any], dump: Callable[[Any], str]
) -> bytes:
    """Change a value, or nest many."""
    if rng.random() < 0.02:
        return rng.choice((b"[", b'{"a": ')) * rng.choice((200, 1000, 3000)) + content[:50]
    try:
        return dump(_changed(load(content), rng)).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return flip(content, rng)


def _changed(value: Any, rng: Random) -> Any:
    """Return a copy of a value of lists and mappings, with one place in it changed."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.08:
        return rng.choice(ODD)
    copy, keys = value.copy(), list(value) if isinstance(value, dict) else range(len(value))
    key, choice = rng.choice(keys), rng.random()
    if choice < 0.12:
        del copy[key]
    elif choice < 0.18 and isinstance(copy, dict):
        copy[rng.choice(("", "x", f"{key} "))] = copy.pop(key)
    elif choice < 0.24:
        copy[key] = copy[rng.choice(keys)]  # a good value in a wrong place
    else:
        copy[key] = _changed(copy[key], rng)
    return copy


Change = Callable[[bytes, Random], bytes]
ANY: tuple[Change, ...] = (
    *(flip, flip, flip, truncate, zero, lambda content, rng: b""),
    *(_patch, _patch, _patch, _renumber, _renumber, _pieces),
)
STRUCTURAL: dict[str, tuple[Change, ...]] = {
    "json": (partial(_document, load=json.loads, dump=json.dumps),),
    "yaml": (
        partial(
            _document,
            load=partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)),
            dump=partial(yaml.dump, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)),
        ),
    ),
    "table": (_cells,),
    "text": (_renumber,),
}
