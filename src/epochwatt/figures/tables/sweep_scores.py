"""Write sweep_scores.html: which method predicts which real sweep best, with the drawings."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epochwatt.figures.tables.draw_sweep_scores import CURVES, DRAWINGS
from epochwatt.prediction.evaluation.sweep_text import (
    NOTE,
    TITLES,
    Judged,
    Row,
    choice_table,
    error_table,
    held_table,
    judged,
    left_out_lines,
    sentences,
    summary,
)
from epochwatt.templates import render

TITLE = "Prediction on real sweeps"


def write_page(rows: Sequence[Row], drawings: Path, path: Path) -> None:
    """Write the page."""
    units = judged(rows)
    folder = os.path.relpath(drawings, path.parent)
    text = render(
        "sweep_scores.html",
        title=TITLE,
        note=NOTE,
        summary=summary(units),
        drawings=[
            {
                "path": f"{folder}/sweep_{name}.svg",
                "title": CURVES[name][0] if name in CURVES else name,
            }
            for name in DRAWINGS
        ],
        units=[_shown(unit) for unit in units],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _shown(unit: Judged) -> dict[str, Any]:
    tables = [*(error_table(unit, target) for target in TITLES), held_table(unit)]
    tables.append(choice_table(unit))
    return {
        "heading": f"{unit.title} ({unit.shared['provenance']})",
        "sentences": sentences(unit),
        "tables": [_rows(table) for table in tables if table],
        "left_out": left_out_lines(unit),
    }


def _rows(table: list[list[str]]) -> list[dict[str, str]]:
    head, *rows = table
    return [dict(zip(head, row, strict=True)) for row in rows]
