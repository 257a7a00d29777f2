"""Read tables of modes that others passed on: a package, or a plain CSV file.

What others measured is `public` here, whatever they call it: `measured` means by this checkout.
"""

import difflib
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from epochwatt.columns import MODE_PARTS
from epochwatt.columns import Column as OurColumn
from epochwatt.errors import ConfigError, DataError
from epochwatt.open_data import layout
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.check_table import check_cells, check_keys, read_lines
from epochwatt.open_data.schema import TABLES, Column
from epochwatt.sweeps import find
from epochwatt.sweeps.find import ENDINGS
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, read_mode_tables, tables_of
from epochwatt.sweeps.plausible import implausible
from epochwatt.sweeps.public.convert import numbered
from epochwatt.tables import checked_rows, filled, table_text

PAGE = "docs/how-to/share-a-sweep.md"
LARGEST = 1 << 30  # bytes of an unpacked package
LARGEST_TABLE = 1 << 24  # of a plain table: 200,000 lines; they take half a GB of memory
_NOT_A_ZIP = (  # what `zipfile` raises of a damaged file; RuntimeError: one with a password
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
)
_SEPARATORS = {  # other than a comma; the first line that is in a table tells
    "sep=": "a line `sep=`, which only Excel knows",
    ";": "';'",
    "\t": "a tab",
    "|": "'|'",
    "  ": "spaces",
}
_COLUMNS = {column.name: column for column in TABLES["sweeps"].columns}
# what a plain table of others may leave out, because a file as a whole says it
_OPTIONAL = ("provenance", "sweep", "work", "repeat", "valid")


def find_tables(what: str, public_data: Path | None = None) -> list[ModeTable]:
    """Return tables of modes, wherever they come from.

    Raises ConfigError, DataError: there is none, or it is not as it has to be: where, what is
    allowed.

    Parameters
    ----------
    what : a package (a folder or .zip file), a CSV file of modes, or the name of a sweep
    public_data : folder of others' repositories (`sweeps.find.find_tables`)
    """
    path = Path(what)
    if is_package(what):
        return read_package(path)
    if path.name.endswith(ENDINGS) and not _is_ours(path):
        return read_plain(path)
    return find.find_tables(what, public_data=public_data)


def is_package(what: str) -> bool:
    """Return whether this names a package: a .zip file, or a folder that has no sweep's name."""
    return what.endswith(".zip") or (Path(what).is_dir() and what not in find.names())


def _is_ours(path: Path) -> bool:
    return path.resolve().parent == Path(find.RESULTS).resolve()


def read_package(path: Path) -> list[ModeTable]:
    """Return the tables of modes of a package; what is `measured` in it becomes `public`.

    Raises DataError: it is not whole, altered, or holds no table of modes.
    """
    with unpacked(path) as folder:
        problems = [p for p in check_folder(folder) if p.where != layout.FOLDER]
        if problems:
            raise problems[0]
        tables = modes_in(folder)
    if not tables:
        raise DataError("a package without a table of modes", where=str(path))
    return as_others(tables)


def modes_in(folder: Path) -> list[ModeTable]:
    """Return the tables of modes of a package's folder, with the provenances that it states."""
    files = sorted(folder.glob("sweeps-*.csv"))
    return [table for file in files for table in read_mode_tables(file)]


def as_others(tables: Sequence[ModeTable]) -> list[ModeTable]:
    """Return tables in which nothing is measured by us."""
    rows = [row for table in tables for row in table.rows]
    return tables_of(
        replace(row, provenance="public") if row.provenance == "measured" else row for row in rows
    )


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give the folder of a package, of a .zip file for as long as the block lasts.

    Raises DataError: there is none, or the file is damaged.
    """
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        problem = "is no plain file" if path.exists() else "does not exist"
        raise DataError(f"{path} {problem}", allowed="a folder, a .zip or a .csv file")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, path.stem)
        folder.mkdir()
        try:
            with zipfile.ZipFile(path) as archive:
                _extract(archive, folder, path)
        except _NOT_A_ZIP as error:
            raise DataError(f"{path} cannot be unpacked: {error}", do="get it again") from error
        yield folder


def _extract(archive: zipfile.ZipFile, folder: Path, path: Path) -> None:
    entries = archive.infolist()
    for entry in entries:
        if "/" in entry.filename or "\\" in entry.filename or entry.filename in ("", ".", ".."):
            raise DataError("a package has no folders", where=f"{path}: {entry.filename}")
    if sum(entry.file_size for entry in entries) > LARGEST:
        raise DataError("too large for a package", where=str(path), allowed="1 GiB unpacked")
    archive.extractall(folder)


# -- a plain CSV file of others --------------------------------------------------------------------


def read_plain(path: Path) -> list[ModeTable]:
    """Return the tables of somebody's CSV file of modes, in which optional columns may be missing.

    Where it does not say so, its rows are `public`, its sweep is named after the file, and lines of
    one mode are its repeats.

    Raises ConfigError, DataError: a column is missing or misspelt, or a cell wrong: line, column,
    allowed.
    """
    problems = check_plain(path)
    if problems:
        raise problems[0]
    rows, has_repeats = [], False
    for _, cells, row in _plain_rows(path):
        rows.append(row)
        has_repeats = "repeat" in cells
    return as_others(tables_of(rows if has_repeats else numbered(rows)))


def _plain_rows(path: Path) -> Iterator[tuple[str, dict[str, str], SweepRow]]:
    stem = path.name.removesuffix(".gz").removesuffix(".csv")

    def prepared(cells: dict[str, str]) -> dict[str, str]:
        return {"sweep": stem, "provenance": "public", **filled(cells)}

    return checked_rows(SweepRow, path, prepared)


def check_plain(path: Path) -> list[DataError]:
    """Return what is wrong with somebody's CSV file of modes: its columns, or cells, or units."""
    try:
        text = table_text(path, LARGEST_TABLE)
        if problem := _other_separator(str(path), text):
            return [problem]
        lines = read_lines(text, str(path))
    except DataError as error:
        return [error]
    except ConfigError as error:
        return [
            DataError(
                error.problem,
                where=error.where,
                found=error.found,
                allowed=error.allowed,
                do=error.do,
            )
        ]
    problems = [
        *_missing(str(path), lines.header),
        *_misspelt(str(path), lines.header),
        *_twice(str(path), lines.header),
    ]
    if problems:
        return problems
    columns = [_plain_column(name) for name in lines.header]
    problems = list(check_cells(str(path), lines, columns))
    if not problems and "repeat" in lines.header:
        problems = list(check_keys(str(path), lines, TABLES["sweeps"]))
    return problems or [
        *implausible([(where, row) for where, _, row in _plain_rows(path)], str(path))
    ]


def _other_separator(path: str, text: str) -> DataError | None:
    """Return what is wrong with a first line that is no names of columns with commas between."""
    first, _, _ = text.partition("\n")
    separator = next((name for one, name in _SEPARATORS.items() if one in first), None)
    commas = first.removeprefix("sep=,").count(",")
    if commas and first.count(", ") == commas:
        separator = "a comma and a space"
    elif commas:
        return None
    return DataError(
        "no names of columns that are separated by commas",
        where=f"{path}, line 1",
        found=separator or repr(first[:60]),
        do="save it with commas between cells, with points in numbers, and the names of columns in "
        "line 1",
    )


def _missing(path: str, header: Sequence[str]) -> Iterator[DataError]:
    where = f"{path}, line 1"
    for name, column in _COLUMNS.items():
        if column.required and name not in (*_OPTIONAL, *header):
            near = difflib.get_close_matches(name, header, 1, 0.5)
            meaning = column.field.description
            yield DataError(
                f"no column {name}: {meaning}", where=where, found=near or None, do=f"see {PAGE}"
            )
    if not set(header) & set(MODE_PARTS):
        yield DataError(
            "no column of a mode", where=where, allowed=MODE_PARTS, do="add what was varied"
        )


def _misspelt(path: str, header: Sequence[str]) -> Iterator[DataError]:
    """Yield columns that differ from ours by a few letters: they would not be read."""
    lower = {name.lower().strip(): name for name in _COLUMNS}
    for name in header:
        near = difflib.get_close_matches(name.lower().strip(), lower, 1, 0.85)
        if name not in _COLUMNS and near and lower[near[0]] not in header:
            yield DataError(
                f"column {name!r} would not be read",
                where=f"{path}, line 1",
                allowed=[lower[near[0]]],
                do="spell it so, or give it another name",
            )


def _twice(path: str, header: Sequence[str]) -> Iterator[DataError]:
    """Yield names that several columns have: only one of these would be read."""
    for name, n in Counter(header).items():
        if n > 1 and name in _COLUMNS:
            yield DataError(f"{n} columns are called {name}", where=f"{path}, line 1")


def _plain_column(name: str) -> Column:
    """Return what a column may hold; one that is not ours may hold anything."""
    column = _COLUMNS.get(name) or Column(OurColumn(name, "str", "", "", "", name))
    return replace(column, required=column.required and name not in _OPTIONAL)
