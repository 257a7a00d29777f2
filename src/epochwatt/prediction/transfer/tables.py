"""Read and write the tables of results/powertrain/."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.prediction.transfer.config import PowertrainExample
from epochwatt.prediction.transfer.names import OF_JOBS, TABLES
from epochwatt.prediction.transfer.summary import example_rows, transfer_rows
from epochwatt.tables import write_table

DIGITS = 6  # of numbers; more would say nothing


def collect(folders: Iterable[str], example: Mapping[str, Any], folder: Path) -> None:
    """Join the tables of all jobs, and make of them what is about several."""
    joined = {
        name: [row for place in folders for row in read_rows(Path(place) / f"{name}.csv")]
        for name in OF_JOBS
    }
    made = {
        "transfer": transfer_rows(joined["errors"]),
        "example": example_rows(joined["errors"], joined["choices"], PowertrainExample(**example)),
    }
    for name, rows in {**joined, **made}.items():
        write_rows(folder / f"{name}.csv", name, rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, cells as text."""
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def write_rows(path: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table of `names.TABLES`: numbers to six digits, nothing for what is not known."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = TABLES[name]
    cells = ([_cell(row.get(column)) for column in columns] for row in rows)
    write_table(path, f"table {name} of the study powertrain", columns, cells)


def _cell(value: Any) -> Any:
    if not isinstance(value, float | np.floating):
        return value
    return None if np.isnan(value) else f"{value:.{DIGITS}g}"
