"""Read tables of epochs (`epochs.csv`), whatever version of epochwatt wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Mapping

from epochwatt import columns, tables
from epochwatt.errors import ConfigError, RecordError

EpochRow = Mapping[str, Any]  # columns.RUN_EPOCH_COLUMNS by name; what is empty is None

# A factor that is younger than a table had its default when the table was made.
DEFAULTS = {f.name: f.default for f in columns.FACTORS if f.default is not columns.REQUIRED}
REMAKE = "remove it and start again: it is then made anew from the records"
_PARSE: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": lambda cell: int(cell) if cell else None,
    "float": lambda cell: float(cell) if cell else None,
    "bool": lambda cell: cell.lower() == "true" if cell else None,
}


def read_rows(path: str | Path) -> list[EpochRow]:
    """Return the rows of a table, as `columns.RUN_EPOCH_COLUMNS` name and type them.

    An empty cell is None, of text "". Raises RecordError where the file is no such table.
    """
    parsers = {field.name: _PARSE[field.kind] for field in columns.RUN_EPOCH_COLUMNS}
    try:
        lines = tables.read_cells(path)
        names = columns.current_names(lines[0]) if lines else []
        parse = [parsers.get(name, str) for name in names]
        return [
            DEFAULTS
            | {name: as_kind(cell) for name, as_kind, cell in zip(names, parse, cells.values())}
            for cells in lines
        ]
    except (ValueError, TypeError, ConfigError) as error:
        raise RecordError(f"{path} is not a table of epochs: {error}", do=REMAKE) from error
