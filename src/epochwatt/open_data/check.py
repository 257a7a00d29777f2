"""Check a package: every file as it was written, every cell allowed, every statement the same."""

import csv
import difflib
import io
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from epochwatt.board.records import files, shapes
from epochwatt.board.records.checksums import SUMS, fault, read_sums
from epochwatt.board.records.shapes import Document
from epochwatt.columns import PROVENANCES
from epochwatt.errors import DamagedError, DataError, RecordError
from epochwatt.open_data import package
from epochwatt.open_data.schema import TABLES, Column, Table
from epochwatt.tables import LARGEST
from epochwatt.text import CELL_TEXT_ADVICE

DESCRIPTOR_SHAPE = {
    "name": shapes.WORD,
    "description": shapes.TEXT,
    "licenses?": [{"name": shapes.WORD}],
    "epochwatt": {"format": shapes.COUNT, "provenances": [shapes.WORD]},
    "resources": [{"name": shapes.WORD, "path": shapes.WORD}],
}
TABLE_SHAPE = {
    "epochwatt": {"table": shapes.WORD, "provenance": shapes.WORD},
    "schema": {"fields": [{"name": shapes.WORD, "type": shapes.WORD, "unit?": shapes.WORD}]},
}
RECORDS_SHAPE = {"*": {"*": shapes.WORD}}
_NOT_KNOWN = ("nan", "na", "n/a", "null", "none", "-", "--", "?", "#n/a")


def check_folder(folder: Path) -> list[DataError]:
    """Check a package; return all problems, empty if it may be relied upon.

    A problem says file, line, column, what was there and what is allowed. The name of the folder
    has to say what is not measured, like the name inside it.
    """
    if unreadable := [*_check_readable(folder)]:
        return unreadable
    try:
        descriptor = _read_metadata(folder, package.DESCRIPTOR, DESCRIPTOR_SHAPE)
    except DataError as error:
        return [error]
    if descriptor["epochwatt"]["format"] > package.FORMAT:
        return [
            DataError(
                "a format that this version does not know",
                where=package.DESCRIPTOR,
                found=f"format {descriptor['epochwatt']['format']}",
                allowed=f"up to {package.FORMAT}",
                do="read it with a newer epochwatt",
            )
        ]
    problems = list(_check_files(folder))
    resources = [r for r in descriptor["resources"] if "schema" in r]
    if not resources:
        problems.append(DataError("no table", where=package.DESCRIPTOR, allowed="one or more"))
    for resource in resources:
        if wrong := shapes.problem(resource, TABLE_SHAPE):
            problems.append(DataError(f"{resource['name']}: {wrong}", where=package.DESCRIPTOR))
            return problems
        problems += _check_table(folder, resource)
    provenances = {resource["epochwatt"]["provenance"] for resource in resources}
    return problems + list(_check_statements(folder, descriptor, provenances))


def _check_readable(folder: Path) -> Iterator[DataError]:
    """Yield a problem for each folder, pipe or device, and for each file too large to read."""
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            yield DataError("a package has plain files only", where=path.name, do="remove it")
        elif path.stat().st_size > LARGEST:
            allowed = f"{LARGEST >> 20} MiB"
            yield DataError("too large for a file of a package", where=path.name, allowed=allowed)


def _check_files(folder: Path) -> Iterator[DataError]:
    """Yield missing files, and files that are not as SHA256SUMS has them."""
    present = {path.name for path in folder.iterdir()}
    for name in package.NEEDED:
        if name not in present:
            yield DataError(f"{name} is missing", where=name)
    try:
        sums = read_sums(str(folder)) or {}
    except DamagedError as error:
        yield DataError(str(error), where=SUMS)
        return
    for name in sorted(sums.keys() - present - set(package.NEEDED)):
        yield DataError(f"{name} is missing", where=name, do="get the whole package again")
    for name in sorted(present - {SUMS}) if SUMS in present else ():
        if wrong := fault(str(folder / name), sums):
            yield DataError(wrong.partition("was altered: ")[2], where=name)


def _check_statements(
    folder: Path, descriptor: Document, provenances: set[str]
) -> Iterator[DataError]:
    """Yield where name, description and licence contradict the tables.

    `provenances`: of the tables
    """
    where = package.DESCRIPTOR
    stated = descriptor["epochwatt"]["provenances"]
    if set(stated) != provenances:
        problem = "the provenances of the package are not those of its tables"
        yield wrong_at(where, problem, ", ".join(stated), sorted(provenances))
    begins = package.statement(provenances)
    if not descriptor["description"].lower().startswith(begins.lower()):
        problem = "the description does not begin with where the rows come from"
        yield wrong_at(where, problem, descriptor["description"], [begins])
    for named, name in ((where, descriptor["name"]), (package.FOLDER, folder.name)):
        if missing := package.unmarked(name, provenances):
            said = f"rows are {' and '.join(missing)}"
            problem = f"{said}, and the name of the package does not say so"
            yield wrong_at(named, problem, name, [package.marked(name, provenances)])
    licences = [licence["name"] for licence in descriptor.get("licenses", [])]
    if not licences:
        do = "add `licenses`: without one nobody may use the data"
        yield DataError("no licence", where=where, do=do)
    for licence in licences:
        if wrong := package.licence_problem(licence):
            allowed = ["a name of https://spdx.org/licenses, such as CC-BY-4.0"]
            yield wrong_at(where, f"the licence {wrong}", licence, allowed)


def _check_table(folder: Path, resource: Document) -> list[DataError]:
    """Check a table, cell by cell, and its entry in `datapackage.json`; return all problems."""
    stated, path = resource["epochwatt"], resource["path"]
    table = TABLES.get(stated["table"])
    if table is None:
        problem = f"{path} is a table"
        return [wrong_at(package.DESCRIPTOR, problem, stated["table"], list(TABLES))]
    if not (folder / path).is_file() or "/" in path:
        return [DataError("the table is missing", where=path)]
    problems = list(_check_entry(resource, table))
    try:
        content = files.read_bytes(str(folder / path)).decode("utf-8-sig", "surrogateescape")
        lines = read_lines(content, path)
    except DataError as error:
        return [*problems, error]
    if [*lines.columns] != table.header:
        return [*problems, _header_problem(path, [*lines.columns], table)]
    cells = [
        *check_cells(path, lines, table.columns),
        *_check_origin(path, lines, stated["provenance"]),
    ]
    if stated["provenance"] == "measured":
        problems += _check_records(folder, path, lines)
    problems += cells
    return problems or [*check_keys(path, lines, table)]


def _check_entry(resource: Document, table: Table) -> Iterator[DataError]:
    """Yield where the entry of a table has other columns, types, units or names than ours."""
    stated = resource["schema"]["fields"]
    where = f"{package.DESCRIPTOR}: {resource['name']}"
    expected = {column.name: column.descriptor() for column in table.columns}
    for name in expected.keys() - {field["name"] for field in stated}:
        yield DataError(f"no column {name}", where=where, do=f"it is needed in {table.name}")
    for field in stated:
        ours = expected.get(field["name"], field)
        for key in ("type", "unit"):
            if field.get(key, "") != ours.get(key, ""):
                problem = f"{key} of column {field['name']}"
                yield wrong_at(where, problem, field.get(key, ""), [ours.get(key, "none")])
    provenance = resource["epochwatt"]["provenance"]
    for key, ending in (("name", ""), ("path", ".csv")):
        allowed = f"{table.name}-{provenance}{ending}"
        if resource[key] != allowed:
            problem = f"the {key} of a table with provenance {provenance}"
            yield wrong_at(where, problem, resource[key], [allowed])


def read_lines(text: str, path: str) -> pd.DataFrame:
    """Parse a CSV table into a frame of text, whose index is the line that each row ends in.

    Raises DataError: a line has more or fewer cells than the first, or there is no row.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: dict[int, list[str]] = {}
    try:
        header = next(reader, [])
        for row in filter(None, reader):  # empty lines are none
            if len(row) != len(header):
                # two whole numbers side by side may be one with a comma in it
                is_whole = [cell.strip().isdecimal() for cell in row]
                may_have_commas = len(row) > len(header) and any(map(all, pairwise(is_whole)))
                advice = "if commas stand in its numbers, write 0.041 for 0,041 and 1234 for 1,234"
                raise DataError(
                    f"{len(row)} cells where the first line has {len(header)}",
                    where=f"{path}, line {reader.line_num}",
                    do=advice if may_have_commas else None,
                )
            rows[reader.line_num] = row
    except csv.Error as error:
        raise DataError(str(error), where=f"{path}, line {reader.line_num}") from error
    if not rows:
        raise DataError("a table without a row", where=path)
    return pd.DataFrame([*rows.values()], index=[*rows], columns=header, dtype=object)


def _header_problem(path: str, header: Sequence[str], table: Table) -> DataError:
    """Return the first difference between the columns of a file and those of `table`."""
    where = f"{path}, line 1"
    for name in table.header:
        if name not in header:
            near = difflib.get_close_matches(name, header, 1) or None
            allowed = f"all columns of {table.name}"
            return DataError(f"no column {name}", where=where, found=near, allowed=allowed)
    for name in header:
        if name not in table.header:
            return DataError(f"column {name!r} is not one of {table.name}", where=where)
    problem = "columns in another order"
    return DataError(problem, where=where, found=list(header), allowed=table.header)


def check_cells(path: str, lines: pd.DataFrame, columns: Sequence[Column]) -> Iterator[DataError]:
    """Yield each cell that is not allowed; `columns` are those of the file, in its order."""
    for column in columns:
        cells = lines[column.name]
        wrong = {cell: allowed for cell in set(cells) if (allowed := column.problem(cell))}
        for line, cell in cells[cells.isin(list(wrong))].items():
            where = f"{path}, line {line}, column {column.name}"
            error = wrong_at(where, "a cell that is not allowed", cell, [wrong[cell]])
            error.do = _advice(column, cell)
            yield error


def _advice(column: Column, cell: str) -> str | None:
    """Return advice on a cell that is not allowed; None: there is none."""
    if not cell:
        return "leave the row out, as of a mode that failed, or fill the cell in"
    if column.field.kind not in ("int", "float"):
        return CELL_TEXT_ADVICE if column.field.kind == "str" and not column.choices else None
    bare = re.sub(r"[,'\s]", "", cell)
    if bare != cell and not column.problem(bare):
        return "write numbers with a point and nothing between thousands: 0.041, 1234.5"
    if cell.lower() in _NOT_KNOWN:
        if column.required:
            return "leave the row out, as of a mode that failed"
        return "leave the cell empty where the number is not known"
    return None


def _check_origin(path: str, lines: pd.DataFrame, stated: str) -> Iterator[DataError]:
    """Yield cells that contradict the provenance that the package states of their table."""

    def cells(name: str, is_wrong: Any) -> Iterator[tuple[str, str]]:
        """Yield place and text of the cells of a column where a mask is true."""
        for line, cell in lines.loc[is_wrong, name].items():
            yield f"{path}, line {line}, column {name}", cell

    provenance = lines["provenance"]
    is_other = provenance.isin(PROVENANCES) & (provenance != stated)
    for where, cell in cells("provenance", is_other):
        yield wrong_at(where, "a row of another provenance", cell, [stated])
    if "backend" in lines and "imported" in lines:
        pairs = zip(lines["backend"], lines["imported"], strict=True)
        actual = pd.Series([package.provenance_of(*pair) for pair in pairs], lines.index)
        for other in set(actual) - {stated}:
            for where, cell in cells("backend", actual == other):
                yield wrong_at(where, f"a backend whose rows are {other}, not {stated}", cell)
    if "run" in lines:
        is_simulated = lines["run"].str.startswith("twin-")
        for where, cell in cells("run", is_simulated != (stated == "simulated")):
            problem = "the id of a simulated run begins with twin-, and no other"
            yield wrong_at(where, problem, cell)


def _check_records(folder: Path, path: str, lines: pd.DataFrame) -> Iterator[DataError]:
    """Yield sweeps and runs of a measured table that records.json lists no record of."""
    records: Document = {}
    if (folder / package.RECORDS).is_file():
        try:
            records = _read_metadata(folder, package.RECORDS, RECORDS_SHAPE)
        except DataError as error:
            yield error
            return
    column = "run" if "run" in lines else "sweep"
    for line, name in lines[column].drop_duplicates().items():
        if not records.get(name):
            problem = f"called measured, and {package.RECORDS} lists no record of it"
            yield wrong_at(f"{path}, line {line}, column {column}", problem, name, list(records))


def check_keys(path: str, lines: pd.DataFrame, table: Table) -> Iterator[DataError]:
    """Yield lines that repeat the key of an earlier line, by the key columns that the file has."""
    names = [name for name in table.key if name in lines]
    seen: dict[tuple[str, ...], object] = {}
    for line, *key in lines[names].itertuples(name=None):
        if tuple(key) in seen:
            repeats = table.name == "sweeps"
            yield DataError(
                f"the same {', '.join(table.key)} as in line {seen[tuple(key)]}",
                where=f"{path}, line {line}",
                found=[cell for cell in key if cell],
                do="number repeats by a column repeat: 0, 1, 2, ..." if repeats else "remove one",
            )
        seen.setdefault(tuple(key), line)


def _read_metadata(folder: Path, name: str, shape: Any) -> Any:
    """Read a JSON file of a package; DataError where it is missing or of another shape."""
    try:
        return files.read_json(str(folder / name), shape)
    except (DamagedError, RecordError) as error:
        if not (folder / name).exists():
            raise DataError(f"{name} is missing", where=str(folder)) from error
        raise DataError(str(error).replace(str(folder / name), name), where=name) from error


def wrong_at(where: str, problem: str, value: str, allowed: Sequence[str] = ()) -> DataError:
    """Build a problem with a value that was found, made printable, and what is allowed."""
    shown = value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return DataError(problem, where=where, found=shown or "nothing", allowed=list(allowed) or None)
