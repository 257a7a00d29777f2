"""Tables that rules make: their rows, and where they differ from expected ones."""

import csv
import math
from pathlib import Path

EXPECTED = Path(__file__).parent
RELATIVE = 1e-9  # of numbers in tables; they are written with 15 digits or more


def rows(path):
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def assert_expected(path, rule):
    """Compare a table with `{rule}/expected/` of this folder, in the columns of the latter."""
    found, told = rows(path), rows(EXPECTED / rule / "expected" / Path(path).name)
    assert len(found) == len(told), f"{path} has {len(found)} rows, expected {len(told)}"
    differing = [
        f"row {i}, {name}: found {row[name]!r}, expected {cell!r}"
        for i, (row, cells) in enumerate(zip(found, told, strict=True))
        for name, cell in cells.items()
        if not _is_same(row[name], cell)
    ]
    assert differing[:5] == []


def _is_same(found, wanted):
    """Compare two cells: numbers with tolerance, all else as text."""
    try:
        return math.isclose(float(found), float(wanted), rel_tol=RELATIVE)
    except ValueError:
        return found == wanted
