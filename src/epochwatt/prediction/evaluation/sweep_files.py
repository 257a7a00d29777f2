"""Read and write files of scores of sweeps, as results/sweeps/scores.csv."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.prediction.evaluation.sweep_names import COLUMNS


def as_text(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return rows as a file of scores has them: numbers to five digits, no column missing."""
    return [{name: _cell(row.get(name, "")) for name in COLUMNS} for row in rows]


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def write_scores(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(as_text(rows))


def read_scores(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of files of scores, in order."""
    rows = []
    for path in paths:
        with open(path, newline="", encoding="utf-8") as handle:
            rows += list(csv.DictReader(handle))
    return rows
