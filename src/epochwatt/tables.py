"""Read and write CSV tables of configuration and sweeps; compressed where a name ends in .gz."""

import csv
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from epochwatt.errors import ConfigError
from epochwatt.records import files

Row = TypeVar("Row")


LARGEST = 1 << 27  # bytes of a table, unpacked: a million lines; what is larger fills the memory
_BEGINNINGS = {  # of what is called .csv and is none
    b"PK\x03\x04": "a spreadsheet or another .zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


def table_text(path: Path, most: int = LARGEST) -> str:
    """Return the text of a table, unpacked where it is compressed, without a byte order mark.

    Raises
    ------
    ConfigError : it cannot be read, has more than `most` bytes, or is no text in UTF-8
    """
    try:
        # NONBLOCK: a named pipe without a writer would be waited for, for ever
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise ConfigError(
                    f"{path} is a folder, a pipe or a device", do="save the table as a plain file"
                )
            is_packed = handle.peek(2)[:2] == b"\x1f\x8b"
            unpacked = gzip.GzipFile(fileobj=handle) if is_packed else handle
            content = unpacked.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be read: {reason}") from error
    if len(content) > most:
        raise ConfigError(
            "too large for a table", where=str(path), allowed=f"{most >> 20} MiB unpacked"
        )
    return _decoded(content, path)


def _decoded(content: bytes, path: Path) -> str:
    """Return the text of a table; where it is none in UTF-8, say where and what it looks like."""
    kind = next((kind for start, kind in _BEGINNINGS.items() if content.startswith(start)), None)
    place = content.find(b"\0")
    try:
        if kind is None and place < 0:
            return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start
    if kind is None and content[place] == 0:
        kind = "text in UTF-16, or no text at all"
    if kind is not None:
        raise ConfigError(f"{path} is no text in UTF-8", found=kind, do="save it as CSV in UTF-8")
    number = content.count(b"\n", 0, place) + 1
    begin, end = content.rfind(b"\n", 0, place) + 1, (content + b"\n").find(b"\n", place)
    cells = content[begin:end].decode("cp1252", "replace").split(",")
    cell = next(cell for cell in cells if not cell.isascii())
    raise ConfigError(
        "no text in UTF-8",
        where=f"{path}, line {number}",
        found=f"{cell.strip()!r}, if it is text in Latin-1 (Windows-1252)",
        do="save it as CSV in UTF-8, or `iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW`",
    )


def read_table(path: Path, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Yield number and cells of each line of a table; ConfigError when it cannot be read."""
    rows = csv.DictReader(io.StringIO(table_text(path), newline=""), delimiter=delimiter)
    try:
        for row in rows:
            if None in row or None in row.values():
                raise ConfigError(
                    f"{path}, line {rows.line_num} has more or fewer cells than the first line"
                )
            yield rows.line_num, row
    except csv.Error as error:
        raise ConfigError(f"{path}, line {rows.line_num} cannot be read: {error}") from error


def checked_rows(
    kind: type[Row], path: Path, prepared: Callable[[dict[str, str]], dict[str, Any]] = dict
) -> Iterator[tuple[str, dict[str, str], Row]]:
    """Yield the place of each line (file and number), its cells, and these as one `kind`.

    Parameters
    ----------
    kind : a dataclass; its types say what a cell may be, and further columns are left out
    prepared : makes the cells of `kind` out of those of the file, where they differ

    Raises
    ------
    ConfigError : the table cannot be read, or a cell is wrong: file, line, column, what is allowed
    """
    adapter = TypeAdapter(kind)
    for line, row in read_table(path):
        where = f"{path}, line {line}"
        try:
            yield where, row, adapter.validate_python(prepared(row))
        except ValidationError as error:
            raise _explained(error, where) from None


def filled(cells: dict[str, str]) -> dict[str, str]:
    """Return the cells that are not empty: `prepared` of a dataclass whose defaults are None."""
    return {name: cell for name, cell in cells.items() if cell != ""}


def _explained(error: ValidationError, where: str) -> ConfigError:
    first = error.errors(include_url=False)[0]
    column = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return ConfigError(f"no column {column}", where=where)
    message = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if not column:
        return ConfigError(message, where=where)
    return ConfigError(f"{column} is {first['input']!r}", where=where, allowed=message)


def write_table(
    path: Path, content: str, columns: Sequence[str], rows: Iterable[Iterable[Any]]
) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    content : what it holds, for the message of the RecordWriteError where it cannot be written
    columns : their names
    rows : cells; None is an empty one
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    encoded = text.getvalue().encode()
    with files.writing(content, str(path)):
        files.write_bytes(
            str(path), gzip.compress(encoded, mtime=0) if path.suffix == ".gz" else encoded
        )


def cell_text(value: Any) -> Any:
    """Return a value as a cell: true and false in lower case, numbers to nine digits."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.9g}" if isinstance(value, float) else value


def write_entries(
    path: Path, content: str, kind: type[Row], entries: Iterable[Row], number: str
) -> None:
    """Write a table of dataclasses: a column per attribute, `class_` as `class`.

    Parameters
    ----------
    content : as of `write_table`
    kind : their class
    number : format of numbers that are not whole
    """
    columns = [field.name.rstrip("_") for field in fields(kind)]  # type: ignore[arg-type]
    rows = ([getattr(entry, f.name) for f in fields(kind)] for entry in entries)  # type: ignore[arg-type]
    cells = ([format(c, number) if isinstance(c, float) else c for c in row] for row in rows)
    write_table(path, content, columns, cells)
