"""Read and write every CSV table, typed by `columns.py`; compressed where a name ends in .gz.

Where rows are many, use a frame: `read_frame`, `write_frame`. Where they are few, use a class: a
dataclass read by `checked_rows` and written by `write_entries`. `read_cells` gives plain text and
`write_table` takes any rows. pandas and pydantic are imported where they are needed, since some
jobs must start fast.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, TypeVar

from epochwatt.board.records import files
from epochwatt.columns import COLUMNS
from epochwatt.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import ValidationError

Row = TypeVar("Row")
Cells = Dict[str, str]  # of one line, by the names of their columns


LARGEST = 1 << 27  # bytes of a table, unpacked: a million lines; a larger one fills the memory
GZIP_MAGIC = b"\x1f\x8b"
_SIGNATURES = {  # first bytes of what is called .csv and is none
    b"PK\x03\x04": "a spreadsheet or another .zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


def table_text(path: Path, most: int = LARGEST) -> str:
    """Read the text of a table, decompressed if it is gzip, without a byte order mark.

    Raises ConfigError: it cannot be read, has more than `most` bytes, or is no text in UTF-8.
    """
    try:
        # NONBLOCK: a named pipe without a writer would be waited for, for ever
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise ConfigError(
                    f"{path} is a folder, a pipe or a device", do="save the table as a plain file"
                )
            is_packed = handle.peek(2)[:2] == GZIP_MAGIC
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
    """Decode a table; ConfigError: it is not UTF-8, with the line and what it seems to be."""
    kind = next((kind for start, kind in _SIGNATURES.items() if content.startswith(start)), None)
    offset = content.find(b"\0")
    try:
        if kind is None and offset < 0:
            return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start
    if kind is None and content[offset] == 0:
        kind = "text in UTF-16, or no text at all"
    if kind is not None:
        raise ConfigError(f"{path} is no text in UTF-8", found=kind, do="save it as CSV in UTF-8")
    number = content.count(b"\n", 0, offset) + 1
    begin, end = content.rfind(b"\n", 0, offset) + 1, (content + b"\n").find(b"\n", offset)
    cells = content[begin:end].decode("cp1252", "replace").split(",")
    cell = next(cell for cell in cells if not cell.isascii())
    raise ConfigError(
        "no text in UTF-8",
        where=f"{path}, line {number}",
        found=f"{cell.strip()!r}, if it is text in Latin-1 (Windows-1252)",
        do="save it as CSV in UTF-8, or `iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW`",
    )


def read_cells(path: str | Path) -> list[Cells]:
    """Return column -> text for each line of a table; ConfigError: it cannot be read."""
    return [cells for _, cells in read_table(Path(path))]


def read_frame(path: str | Path) -> "pd.DataFrame":
    """Return a table as a frame, each column typed as `columns.py` says.

    Numbers are read exactly. Text is never missing: an empty cell is "". A missing number is NaN
    (so a column of whole numbers with gaps holds floats), a missing truth value pandas' NA. A
    column that `columns.py` does not know holds numbers if all its cells are numbers or empty.

    Raises ConfigError: it cannot be read, or a cell is not of its column's kind.
    """
    import pandas as pd

    lines = read_cells(path)
    names = list(lines[0]) if lines else next(csv.reader([table_text(Path(path))]), [])
    frame = pd.DataFrame(lines, columns=names, dtype=object)
    for name in names:
        known = COLUMNS.get(name)
        kind = known.kind if known else ""
        try:
            frame[name] = _typed(frame[name], kind)
        except ValueError as error:
            allowed = f"{kind}, or an empty cell"
            raise ConfigError(
                f"column {name}: {error}", where=str(path), allowed=allowed
            ) from error
    return frame


_TRUTH = {"true": True, "false": False, "": None}


def _typed(cells: "pd.Series[Any]", kind: str) -> "pd.Series[Any]":
    """Convert a column of text to a kind of `columns.csv`; ValueError: a cell is of another kind.

    Kind "": numbers if all cells are numbers or empty, else text.
    """
    if kind == "str":
        return cells
    if kind == "bool":
        truth = cells.str.lower()
        if not set(truth) <= set(_TRUTH):
            raise ValueError(f"{next(c for c in truth if c not in _TRUTH)!r} is not true or false")
        return truth.map(_TRUTH).astype("boolean" if "" in set(truth) else bool)
    has_gaps = bool((cells == "").any())
    try:
        if kind == "int" and not has_gaps:
            return cells.astype("int64")
        return cells.where(cells != "", "nan").astype(float)
    except ValueError:
        if kind:
            raise
        return cells


def read_table(path: Path, delimiter: str = ",", comment: str = "") -> Iterator[tuple[int, Cells]]:
    """Yield line number and column -> text of each line of a table; ConfigError: it is damaged.

    `comment`: beginning of lines that are skipped and not counted; empty: there are none
    """
    lines = io.StringIO(table_text(path), newline="")
    kept = (line for line in lines if not comment or not line.startswith(comment))
    rows = csv.reader(kept, delimiter=delimiter, strict=True)  # DictReader takes twice the time
    try:
        names = next(rows, [])
        for cells in rows:
            if not cells:  # an empty line
                continue
            if len(cells) != len(names):
                raise ConfigError(
                    f"{path}, line {rows.line_num} has more or fewer cells than the first line"
                )
            yield rows.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise ConfigError(f"{path}, line {rows.line_num} cannot be read: {error}") from error


def checked_rows(
    kind: type[Row], path: Path, prepared: Callable[[Cells], dict[str, Any]] = dict
) -> Iterator[tuple[str, Cells, Row]]:
    """Yield for each line "FILE, line N", its cells as text, and the cells checked as a `kind`.

    Raises ConfigError: the table cannot be read, or a cell is wrong.

    `kind`: a dataclass; its types say what a cell may be, and further columns are left out
    `prepared`: makes the cells of `kind` out of those of the file, where they differ
    """
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(kind)
    for line, row in read_table(path):
        where = f"{path}, line {line}"
        try:
            yield where, row, adapter.validate_python(prepared(row))
        except ValidationError as error:
            raise _explained(error, where) from None


def rows_by_id(rows: Iterable[tuple[str, Cells, Row]]) -> dict[str, Row]:
    """Return `checked_rows` by their column `id`; ConfigError where an id is there twice."""
    by_id: dict[str, Row] = {}
    for where, cells, row in rows:
        if cells["id"] in by_id:
            raise ConfigError(f"id {cells['id']} is there twice", where=where)
        by_id[cells["id"]] = row
    return by_id


def filled(cells: Cells) -> Cells:
    """Return the cells that are not empty; a `prepared` for a dataclass with defaults."""
    return {name: cell for name, cell in cells.items() if cell != ""}


def _explained(error: "ValidationError", where: str) -> ConfigError:
    """Return a ConfigError for the first of pydantic's errors about a line."""
    details = error.errors(include_url=False)[0]
    column = ".".join(map(str, details["loc"]))
    if details["type"] == "missing":
        return ConfigError(f"no column {column}", where=where)
    message = details["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if not column:
        return ConfigError(message, where=where)
    return ConfigError(f"{column} is {details['input']!r}", where=where, allowed=message)


def write_table(
    path: str | Path,
    content: str,
    columns: Sequence[str],
    rows: Iterable[Iterable[Any] | Mapping[str, Any]],
    durable: bool = True,
) -> None:
    """Write a table, whole or not at all; its folder is made where it is missing.

    `content`: what it holds, for the message of the RecordWriteError where it cannot be written
    `rows`: cells in the order of `columns`, or by their names; None, or a missing one, is empty
    `durable`: wait for the disk (fsync); False for tables that are soon made again
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([row.get(c) for c in columns] if isinstance(row, Mapping) else row)
    _write_text(Path(path), content, text.getvalue(), durable)


def write_frame(
    path: str | Path, content: str, frame: "pd.DataFrame", number: str | None = None
) -> None:
    """Write a frame as `write_table` does, without its index; what is missing is an empty cell.

    `number`: format of numbers that are not whole, such as `%.6g`; None: all their digits
    """
    text = frame.to_csv(index=False, lineterminator="\n", float_format=number)
    _write_text(Path(path), content, text)


def _write_text(path: Path, content: str, text: str, durable: bool = True) -> None:
    """Write a text, compressed where its name ends in .gz, atomically; makes its folder."""
    encoded = text.encode()
    if path.suffix == ".gz":
        encoded = gzip.compress(encoded, mtime=0)
    with files.writing(content, str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_bytes(str(path), encoded, durable)


def cell_text(value: Any) -> Any:
    """Return a value as a cell: true, false, floats with nine digits, all else unchanged."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.9g}" if isinstance(value, float) else value


def write_entries(
    path: str | Path, content: str, kind: type[Row], entries: Iterable[Row], number: str = ""
) -> None:
    """Write a table of dataclasses or NamedTuples: a column per attribute, `class_` as `class`.

    `content`: as of `write_table`; `number`: format of floats; empty: all their digits
    """
    attributes = getattr(kind, "_fields", None) or [f.name for f in fields(kind)]  # type: ignore[arg-type]
    rows = ([getattr(entry, name) for name in attributes] for entry in entries)
    cells = ([format(c, number) if isinstance(c, float) else c for c in row] for row in rows)
    write_table(path, content, [name.rstrip("_") for name in attributes], cells)
