"""Format plurals, lists and tables of text, and say where rows come from."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

HOST, THIS_MACHINE = "host", "this machine"  # a device, and how texts call it
NOT_DRAWN = "Not drawn"  # begins the caption of a panel without a number
# what it takes, where power was not measured; with the command that works in a checkout alone
POWER_SENSORS = "It takes the sensor of a board, an NVIDIA GPU or a CPU with RAPL"
POWER_SENSORS_HERE = f"{POWER_SENSORS}; `epochwatt doctor` says which is read"
# what a terminal obeys, or shows in another order; tabs and ends of lines are none of it
CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"

# of a table that is passed on; a spreadsheet runs what begins with one of those characters
CELL_TEXT = rf"(?![=+\-@])[^\n\t{CONTROLS}]*"
CELL_TEXT_ADVICE = "give it a name in one line, which does not begin with = + - @"


def printable(text: str) -> str:
    """Replace control characters, which a terminal would obey, by escapes."""
    return re.sub(f"[{CONTROLS}]", lambda found: ascii(found[0])[1:-1], text)


def counted(n: float, nouns: str) -> str:
    """Return a number and the noun that it counts, given in the plural: `1 batch`, `2 batches`."""
    return f"{n:.12g} {re.sub('(?<=ch)es$|s$', '', nouns) if n == 1 else nouns}"


def first_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first `most` names, joined by commas; ", ..." follows if there are more."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def by_reason(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each reason with its name, or the number of names and the first of them.

    `reasons`: pairs of name and reason
    """
    names_of: dict[str, list[str]] = {}
    for name, reason in reasons:
        names_of.setdefault(reason, []).append(name)
    return [
        f"{names[0]}: {reason}"
        if len(names) == 1
        else f"{len(names)} alike, such as {names[0]}: {reason}"
        for reason, names in names_of.items()
    ]


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    from tabulate import tabulate  # here: jobs that print no table need not import it

    text = tabulate(rows, tablefmt="plain", disable_numparse=True, preserve_whitespace=True)
    return [line.rstrip() for line in text.splitlines()]


class Origin(NamedTuple):
    """Words for where rows of a backend come from."""

    provenance: str  # of `columns.PROVENANCES`
    label: str  # beside a row or a picture
    before_board: str  # begins a sentence that goes on with a board
    answer: str  # begins an answer in a terminal
    caption: str  # ends the caption of a paper's figure


ORIGINS = {  # by backend
    "host": Origin(
        "measured",
        "measured, host",
        "measured on",
        "from measurements",
        "Measured on this machine, which is none of the paper's boards.",
    ),
    "jetson": Origin(
        "measured", "measured, board", "measured on", "from measurements", "Measured on a board."
    ),
    "twin": Origin(
        "simulated",
        "simulated, twin",
        "simulated, not measured:",
        "SIMULATED, not measured",
        "Simulated, not measured.",
    ),
    "fake": Origin(
        "fake",
        "not measured, fake board",
        "not measured, from a fake board:",
        "NOT MEASURED, from a fake board",
        "From a fake board, not measured.",
    ),
    "public": Origin(
        "public",
        "measured by others",
        "measured by others on",
        "from measurements of others",
        "Measured by others.",
    ),
}


def origin(backends: Iterable[str]) -> str:
    """Return where rows of these backends come from, as the start of a sentence."""
    return " and ".join(dict.fromkeys(ORIGINS[backend].before_board for backend in backends))


def answer_origin(provenance: str) -> str:
    """Return the words that begin a terminal's answer from rows of a provenance."""
    return next(o.answer for o in ORIGINS.values() if o.provenance == provenance)


PROVENANCES = {  # of a table's rows -> words
    "measured": "measured on this machine",
    "simulated": "simulated boards, not measured",
    "public": "measured by others",
}


def label(backend: str) -> str:
    """Return where rows of a backend come from, as a label."""
    return ORIGINS[backend].label
