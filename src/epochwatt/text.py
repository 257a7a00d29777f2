"""Words and tables for people."""

import re
from collections.abc import Iterable, Sequence


def counted(n: float, what: str) -> str:
    """Return a number and what it counts, told in the plural: one of it without its ending."""
    return f"{n:.12g} {re.sub('(?<=ch)es$|s$', '', what) if n == 1 else what}"


def first_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and dots where there are more."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    from tabulate import tabulate  # here: jobs that print no table need not import it

    text = tabulate(rows, tablefmt="plain", disable_numparse=True, preserve_whitespace=True)
    return [line.rstrip() for line in text.splitlines()]


ORIGINS = {
    "host": "measured on",
    "jetson": "measured on",
    "twin": "simulated, not measured:",
    "fake": "not measured, from a fake board:",
}


def origin(backends: Iterable[str]) -> str:
    """Return in words where rows of these backends come from: a fake board measures nothing."""
    return " and ".join(dict.fromkeys(ORIGINS[backend] for backend in backends))


LABELS = {
    "host": "measured, host",
    "jetson": "measured, board",
    "twin": "simulated, twin",
    "fake": "not measured, fake board",
}


def label(backend: str) -> str:
    """Return in a few words where rows of a backend come from."""
    return LABELS[backend]
