"""Read and write CSV tables of configuration and sweeps; compressed where a name ends in .gz."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from epochwatt.errors import ConfigError
from epochwatt.records import files

Row = TypeVar("Row")


def read_table(path: Path, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Yield number and cells of each line of a table; ConfigError when it cannot be read."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", newline="", encoding="utf-8") as handle:
            rows = csv.DictReader(handle, delimiter=delimiter)
            for row in rows:
                if None in row or None in row.values():
                    raise ConfigError(
                        f"{path}, line {rows.line_num} has more or fewer cells than the first line"
                    )
                yield rows.line_num, row
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


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
