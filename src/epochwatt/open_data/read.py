"""Read tables of modes that others passed on: a package, or a plain CSV file; say what is wrong.

What others measured is `public` here, whatever they call it: `measured` means by this checkout.
"""

import difflib
import tempfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from epochwatt import columns
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.epochs.telemetry import read_all
from epochwatt.errors import ConfigError, DataError, EpochwattError
from epochwatt.open_data import package
from epochwatt.open_data.check import check_cells, check_folder, check_keys, read_lines
from epochwatt.open_data.schema import TABLES, Column
from epochwatt.study.imported import find_own_runs
from epochwatt.study.runs import Run
from epochwatt.sweeps import find
from epochwatt.sweeps.find import ENDINGS
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, read_mode_tables, tables_of
from epochwatt.sweeps.plausible import implausible
from epochwatt.sweeps.public.convert import numbered
from epochwatt.tables import checked_rows, filled, table_text
from epochwatt.text import counted

PAGE = "docs/how-to/share-a-sweep.md"
LARGEST = 1 << 30  # bytes of an unpacked package
LARGEST_TABLE = 1 << 24  # of a plain table: 200,000 lines; they take half a GB of memory
MOST = 20  # problems that are printed
# what `zipfile` raises of a damaged file; RuntimeError: one with a password
_NOT_A_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
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
    """Read tables of modes from a package, a CSV file, or a sweep by name.

    Raises ConfigError, DataError: there is none, or it is not valid.

    `what`: a package (a folder or .zip file), a CSV file of modes, or the name of a sweep;
    `public_data`: folder of others' repositories (`sweeps.find.find_tables`)
    """
    path = Path(what)
    if is_package(what):
        return read_package(path)
    is_ours = path.resolve().parent == Path(find.RESULTS).resolve()
    if path.name.endswith(ENDINGS) and not is_ours:
        return read_plain(path)
    return find.find_tables(what, public_data=public_data)


def is_package(what: str) -> bool:
    """Return whether this names a package: a .zip file, or a folder that has no sweep's name."""
    return what.endswith(".zip") or (Path(what).is_dir() and what not in find.names())


def read_package(path: Path) -> list[ModeTable]:
    """Check a package and read its tables of modes; what is `measured` in it becomes `public`.

    Raises DataError: it is not whole, was altered, or holds no table of modes.
    """
    with unpacked(path) as folder:
        # the folder's name is not judged: whoever reads may have renamed it
        problems = [p for p in check_folder(folder) if p.where != package.FOLDER]
        if problems:
            raise problems[0]
        tables = _modes_in(folder)
    if not tables:
        raise DataError("a package without a table of modes", where=str(path))
    return _as_others(row for table in tables for row in table.rows)


def _modes_in(folder: Path) -> list[ModeTable]:
    """Return the tables of modes of a package's folder, with the provenances that it states."""
    files = sorted(folder.glob("sweeps-*.csv"))
    return [table for file in files for table in read_mode_tables(file)]


def _as_others(rows: Iterator[SweepRow]) -> list[ModeTable]:
    """Group rows into tables, in which `measured` rows become `public`: others measured them."""
    return tables_of(
        replace(row, provenance="public") if row.provenance == "measured" else row for row in rows
    )


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give the folder of a package; a .zip file is unpacked for as long as the block lasts.

    Raises DataError: there is no such file, or it is damaged, too large, or has folders.
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
                entries = archive.infolist()
                for name in (entry.filename for entry in entries):
                    if "/" in name or "\\" in name or name in ("", ".", ".."):
                        raise DataError("a package has no folders", where=f"{path}: {name}")
                if sum(entry.file_size for entry in entries) > LARGEST:
                    allowed = "1 GiB unpacked"
                    raise DataError("too large for a package", where=str(path), allowed=allowed)
                archive.extractall(folder)
        except _NOT_A_ZIP as error:
            raise DataError(f"{path} cannot be unpacked: {error}", do="get it again") from error
        yield folder


# -- a plain CSV file of others --------------------------------------------------------------------


def read_plain(path: Path) -> list[ModeTable]:
    """Check and read somebody's CSV file of modes, in which optional columns may be missing.

    By default its rows are `public`, its sweep has the name of the file, and lines of one mode are
    its repeats.

    Raises ConfigError, DataError: a column is missing or misspelt, or a cell is not allowed.
    """
    problems = check_plain(path)
    if problems:
        raise problems[0]
    rows, has_repeats = [], False
    for _, cells, row in _plain_rows(path):
        rows.append(row)
        has_repeats = "repeat" in cells
    return _as_others(iter(rows if has_repeats else numbered(rows)))


def _plain_rows(path: Path) -> Iterator[tuple[str, dict[str, str], SweepRow]]:
    """Yield place, cells and row of each line, with sweep and provenance by default."""
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    defaults = {"sweep": stem, "provenance": "public"}
    return checked_rows(SweepRow, path, lambda cells: {**defaults, **filled(cells)})


def check_plain(path: Path) -> list[DataError]:
    """Check somebody's CSV file of modes: its separator, columns, cells, keys, then units.

    Returns the problems of the first of these that has any.
    """
    name = str(path)
    try:
        text = table_text(path, LARGEST_TABLE)
        if problem := _other_separator(name, text):
            return [problem]
        lines = read_lines(text, name)
    except DataError as error:
        return [error]
    except ConfigError as error:
        facts = {key: getattr(error, key) for key in ("where", "found", "allowed", "do")}
        return [DataError(error.problem, **facts)]
    if problems := [*_check_header(f"{name}, line 1", [*lines.columns])]:
        return problems
    known = []
    for title in lines.columns:  # a column that is not ours may hold anything
        column = _COLUMNS.get(title) or Column(columns.Column(title, "str", "", "", "", title))
        known.append(replace(column, required=column.required and title not in _OPTIONAL))
    problems = list(check_cells(name, lines, known))
    if not problems and "repeat" in lines:
        problems = list(check_keys(name, lines, TABLES["sweeps"]))
    return problems or [*implausible([(where, row) for where, _, row in _plain_rows(path)], name)]


def _other_separator(path: str, text: str) -> DataError | None:
    """Return the problem if the first line has another separator than a comma, else None."""
    first, _, _ = text.partition("\n")
    separator = next((name for sign, name in _SEPARATORS.items() if sign in first), None)
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


def _check_header(where: str, header: Sequence[str]) -> Iterator[DataError]:
    """Yield columns that are missing, nearly of a name of ours, or there twice."""
    for name, column in _COLUMNS.items():
        if column.required and name not in (*_OPTIONAL, *header):
            near = difflib.get_close_matches(name, header, 1, 0.5) or None
            problem = f"no column {name}: {column.field.description}"
            yield DataError(problem, where=where, found=near, do=f"see {PAGE}")
    if not set(header) & set(columns.MODE_PARTS):
        allowed = columns.MODE_PARTS
        yield DataError(
            "no column of a mode", where=where, allowed=allowed, do="add what was varied"
        )
    lower = {name.lower().strip(): name for name in _COLUMNS}
    for name in header:
        near = difflib.get_close_matches(name.lower().strip(), lower, 1, 0.85)
        if name not in _COLUMNS and near and lower[near[0]] not in header:
            yield DataError(
                f"column {name!r} would not be read",
                where=where,
                allowed=[lower[near[0]]],
                do="spell it so, or give it another name",
            )
    for name, n in Counter(header).items():
        if n > 1 and name in _COLUMNS:
            yield DataError(f"{n} columns are called {name}", where=where)


# -- what `epochwatt validate` prints --------------------------------------------------------------


def report_lines(path: Path) -> tuple[list[str], bool]:
    """Check a folder of records, a package or a CSV file; return lines, and whether it is valid."""
    if path.is_dir() and not (path / package.DESCRIPTOR).is_file():
        folder, runs = find_own_runs(path)
        if runs:
            return _record_lines(path, folder, runs.values())
    is_plain = path.name.endswith(ENDINGS)
    tables: list[ModeTable] = []
    problems: Sequence[EpochwattError]
    try:
        if is_plain:
            problems = check_plain(path)
            tables = [] if problems else read_plain(path)
        else:
            with unpacked(path) as folder:
                problems = check_folder(folder)
                tables = [] if problems else _modes_in(folder)
    except EpochwattError as error:  # what holds of a row or a workload as a whole
        problems = [error]
    if problems:
        more = len(problems) - MOST
        return [
            f"{path}: {counted(len(problems), 'problems')}",
            *map(str, problems[:MOST]),
            *([f"... and {more} more"] if more > 0 else []),
        ], False
    # a line for all workloads of a sweep on a device in which the same was varied
    groups: dict[tuple[str, ...], list[ModeTable]] = defaultdict(list)
    for table in tables:
        knobs = ", ".join(table.varied()) or "nothing"
        groups[table.key.sweep, table.key.device, knobs, table.key.provenance].append(table)
    lines = [f"{path}: valid"]
    for (sweep, device, knobs, provenance), members in groups.items():
        work = members[0].key.workload if len(members) == 1 else counted(len(members), "workloads")
        rows = counted(sum(len(table.rows) for table in members), "rows")
        state = package.STATEMENTS[provenance]
        lines.append(f"  {sweep}: {work} on {device}, {rows}; varied: {knobs}; {state}")
        if is_plain:  # a package states its units
            lines.append(f"    {_ends(members)}")
    return lines, True


def _record_lines(path: Path, folder: Path, runs: Iterable[Run]) -> tuple[list[str], bool]:
    """Verify every file of the records of runs; results as of `report_lines`."""
    lines, problems = [], []
    for run in runs:
        records = RunFolder(str(folder), run.id)
        for epoch in records.measured():
            try:
                read_all(records.verify(epoch))
            except EpochwattError as error:
                problems.append(f"{run.id}: {error}")
        lines.append(f"  {run.id}: {counted(run.epochs, 'epochs')}")
    if problems:
        return [f"{path}: {counted(len(problems), 'problems')}", *problems], False
    return [f"{path}: valid", *lines], True


def _ends(tables: Sequence[ModeTable]) -> str:
    """Write the ranges of the columns that vary, and of time and power, with their units."""
    units = {field.name: field.unit for field in columns.SWEEP_COLUMNS}
    names = dict.fromkeys(name for table in tables for name in table.varied())
    texts = []
    for name in (*names, "time_s", "power_w"):
        values = np.concatenate([table.column(name) for table in tables])
        if np.isfinite(values).any():
            ends = f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} {units[name]}"
            texts.append(f"{name} {ends}".strip())
    return ", ".join(texts)
