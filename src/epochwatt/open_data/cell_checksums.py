"""Checksums of the lines and columns of a table, by which a cell that was altered is found.

A file's SHA-256 says only that something was altered. One altered cell is the one line and the one
column whose checksums differ.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

_CELL = "\x1f"  # the control character that separates units of a record


class Sums(NamedTuple):
    """CRC-32 of a table: of each column by name, and of all lines, eight hex digits each."""

    columns: dict[str, str]
    lines: str

    def of_line(self, index: int) -> str:
        """Return the checksum of a line, the first below the header is 0; empty: there is none."""
        return self.lines[8 * index : 8 * index + 8]

    @property
    def n_lines(self) -> int:
        """Number of lines below the header."""
        return len(self.lines) // 8


def sums_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sums:
    """Return the checksums of a table, whose rows are all as long as its header."""
    columns = {name: _crc([row[i] for row in rows]) for i, name in enumerate(header)}
    return Sums(columns, "".join(map(_crc, rows)))


def _crc(cells: Sequence[str]) -> str:
    return f"{zlib.crc32(_CELL.join(cells).encode('utf-8', 'surrogateescape')):08x}"


def altered(
    header: Sequence[str], rows: Sequence[Sequence[str]], written: Sums
) -> tuple[list[int], list[str]]:
    """Return the indices of lines and the names of columns that are not as they were written."""
    actual = sums_of(header, rows)
    lines = [
        i
        for i in range(max(actual.n_lines, written.n_lines))
        if actual.of_line(i) != written.of_line(i)
    ]
    columns = [name for name in header if actual.columns[name] != written.columns.get(name)]
    return lines, columns
