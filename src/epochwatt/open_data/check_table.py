"""Check a table of a package: its columns, every cell, what is stated of it, its checksum."""

import csv
import difflib
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from epochwatt.board.records import files, shapes
from epochwatt.columns import PROVENANCES
from epochwatt.errors import DamagedError, DataError, RecordError
from epochwatt.open_data import layout
from epochwatt.open_data.schema import TABLES, Column, Table
from epochwatt.text import CELL_TEXT_ADVICE

RECORDS_SHAPE = {"*": {"*": shapes.WORD}}
_NOT_KNOWN = ("nan", "na", "n/a", "null", "none", "-", "--", "?", "#n/a")


@dataclass
class Lines:
    """The lines of a CSV file."""

    header: list[str]  # names of the columns
    rows: list[list[str]] = field(default_factory=list)  # cells of each line below
    numbers: list[int] = field(default_factory=list)  # the line of the file that each row ends in


def check_table(folder: Path, resource: Mapping[str, Any], altered: set[str]) -> list[DataError]:
    """Return what is wrong with a table and with its entry in `datapackage.json`.

    `altered` files are not as SHA256SUMS has them, which is told already.
    """
    stated, path = resource["epochwatt"], resource["path"]
    table = TABLES.get(stated["table"])
    if table is None:
        return [wrong_at(layout.DESCRIPTOR, f"{path} is a table", stated["table"], list(TABLES))]
    if not (folder / path).is_file() or "/" in path:
        return [DataError("the table is missing", where=path)]
    problems = [*_check_schema(resource, table), *_check_name(resource)]
    try:
        content = files.read_bytes(str(folder / path))
        lines = read_lines(content.decode("utf-8-sig", "surrogateescape"), path)
    except DataError as error:
        return [*problems, error]
    if lines.header != table.header:
        return [*problems, _header_problem(path, lines.header, table)]
    cells = list(check_cells(path, lines, table.columns))
    cells += _check_provenance(path, lines, table, stated["provenance"])
    if stated["provenance"] == "measured":
        problems += _check_records(folder, path, lines, table)
    if cells:
        problems += cells
    elif not problems:
        problems += check_keys(path, lines, table)
    actual = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if actual != resource["hash"] and path not in altered:
        what = f"another checksum of {path}"
        problems.append(wrong_at(layout.DESCRIPTOR, what, resource["hash"], [actual]))
    return problems


def _check_schema(resource: Mapping[str, Any], table: Table) -> Iterator[DataError]:
    """Yield where the schema in the package differs from the one that epochwatt has."""
    stated = resource["schema"]["fields"]
    where = f"{layout.DESCRIPTOR}: {resource['name']}"
    expected = {column.name: column.descriptor() for column in table.columns}
    for name in expected.keys() - {one["name"] for one in stated}:
        yield DataError(f"no column {name}", where=where, do=f"it is needed in {table.name}")
    for one in stated:
        ours = expected.get(one["name"], {})
        for key in ("type", "unit"):
            if ours and one.get(key, "") != ours.get(key, ""):
                what = f"{key} of column {one['name']}"
                yield wrong_at(where, what, one.get(key, ""), [ours.get(key, "none")])


def _check_name(resource: Mapping[str, Any]) -> Iterator[DataError]:
    """Yield where the name of a table does not say its provenance."""
    provenance = resource["epochwatt"]["provenance"]
    expected = f"{resource['epochwatt']['table']}-{provenance}"
    for key, text in (("name", expected), ("path", f"{expected}.csv")):
        if resource[key] != text:
            where = f"{layout.DESCRIPTOR}: {resource['name']}"
            yield wrong_at(
                where, f"the {key} of a table with provenance {provenance}", resource[key], [text]
            )


def read_lines(text: str, path: str) -> Lines:
    """Return the lines of a table. Raises DataError where they are not as long as the first."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines = Lines([])
    try:
        lines.header = next(reader, [])
        for row in filter(None, reader):  # empty lines are none
            if len(row) != len(lines.header):
                raise DataError(
                    f"{len(row)} cells where the first line has {len(lines.header)}",
                    where=f"{path}, line {reader.line_num}",
                    do=_in_quotes(row, lines.header),
                )
            lines.rows.append(row)
            lines.numbers.append(reader.line_num)
    except csv.Error as error:
        raise DataError(str(error), where=f"{path}, line {reader.line_num}") from error
    if not lines.rows:
        raise DataError("a table without a row", where=path)
    return lines


def _in_quotes(row: Sequence[str], header: Sequence[str]) -> str | None:
    """Return what may have made a line too long: commas that separate no cells."""
    whole = [cell.strip().isdecimal() for cell in row]
    if len(row) > len(header) and any(one and two for one, two in pairwise(whole)):
        return "if commas stand in its numbers, write 0.041 for 0,041 and 1234 for 1,234"
    return None


def _header_problem(path: str, header: Sequence[str], table: Table) -> DataError:
    """Return how the first line of a table differs from what it has to be."""
    where = f"{path}, line 1"
    for name in table.header:
        if name not in header:
            return DataError(
                f"no column {name}",
                where=where,
                found=difflib.get_close_matches(name, header, 1) or None,
                allowed=f"all columns of {table.name}",
            )
    for name in header:
        if name not in table.header:
            return DataError(f"column {name!r} is not one of {table.name}", where=where)
    return DataError(
        "columns in another order", where=where, found=list(header), allowed=table.header
    )


def check_cells(path: str, lines: Lines, columns: Sequence[Column]) -> Iterator[DataError]:
    """Yield each cell that is not allowed; `columns` are those of the file, in its order."""
    for i, column in enumerate(columns):
        allowed: dict[str, str] = {}
        for row, number in zip(lines.rows, lines.numbers, strict=True):
            cell = row[i]
            if cell not in allowed:
                allowed[cell] = column.problem(cell)
            if allowed[cell]:
                where = f"{path}, line {number}, column {column.name}"
                error = wrong_at(where, "a cell that is not allowed", cell, [allowed[cell]])
                error.do = _advice(column, cell)
                yield error


def _advice(column: Column, cell: str) -> str | None:
    """Return what to do about a cell that is not allowed."""
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


def _check_provenance(path: str, lines: Lines, table: Table, stated: str) -> Iterator[DataError]:
    """Yield cells that contradict the provenance that the package states of their table."""
    i = table.header.index("provenance")
    run = table.header.index("run") if "run" in table.header else None
    backend = table.header.index("backend") if "backend" in table.header else None
    imported = table.header.index("imported") if "imported" in table.header else None
    for row, number in zip(lines.rows, lines.numbers, strict=True):
        where = f"{path}, line {number}, column "
        if row[i] in PROVENANCES and row[i] != stated:
            yield wrong_at(where + "provenance", "a row of another provenance", row[i], [stated])
        if backend is not None and imported is not None:
            actual = layout.provenance_of(row[backend], row[imported])
            if actual != stated:
                what = f"a backend whose rows are {actual}, not {stated}"
                yield wrong_at(where + "backend", what, row[backend], [])
        if run is not None and (stated == "simulated") != row[run].startswith("twin-"):
            what = "the id of a simulated run begins with twin-, and no other"
            yield wrong_at(where + "run", what, row[run], [])


def _check_records(folder: Path, path: str, lines: Lines, table: Table) -> Iterator[DataError]:
    """Yield sweeps and runs that are called measured, and for which no record is listed."""
    records: dict[str, Any] = {}
    if (folder / layout.RECORDS).is_file():
        try:
            records = read_metadata(folder, layout.RECORDS, RECORDS_SHAPE)
        except DataError as error:
            yield error
            return
    column = "sweep" if table.name == "sweeps" else "run"
    i = table.header.index(column)
    names = {
        row[i]: number for row, number in reversed([*zip(lines.rows, lines.numbers, strict=True)])
    }
    for name, number in names.items():
        if not records.get(name):
            yield wrong_at(
                f"{path}, line {number}, column {column}",
                f"called measured, and {layout.RECORDS} lists no record of it",
                name,
                list(records),
            )


def check_keys(path: str, lines: Lines, table: Table) -> Iterator[DataError]:
    """Yield lines that cannot be told from an earlier one by those columns that the file has."""
    indices = [lines.header.index(name) for name in table.key if name in lines.header]
    seen: dict[tuple[str, ...], int] = {}
    for row, number in zip(lines.rows, lines.numbers, strict=True):
        key = tuple(row[i] for i in indices)
        if key in seen:
            yield DataError(
                f"the same {', '.join(table.key)} as in line {seen[key]}",
                where=f"{path}, line {number}",
                found=[cell for cell in key if cell],
                do="number repeats by a column repeat: 0, 1, 2, ..."
                if table.name == "sweeps"
                else "remove one",
            )
        seen.setdefault(key, number)


def read_metadata(folder: Path, name: str, shape: Any) -> Any:
    """Return a JSON file of a package; DataError where it is missing or of another shape."""
    try:
        return files.read_json(str(folder / name), shape)
    except (DamagedError, RecordError) as error:
        if not (folder / name).exists():
            raise DataError(f"{name} is missing", where=str(folder)) from error
        raise DataError(str(error).replace(str(folder / name), name), where=name) from error


def wrong_at(where: str, problem: str, value: str, allowed: Sequence[str]) -> DataError:
    """Return a problem with what was there, as it is printable, and what is allowed."""
    shown = value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return DataError(problem, where=where, found=shown or "nothing", allowed=list(allowed) or None)
