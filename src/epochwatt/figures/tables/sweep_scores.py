"""Write sweep_scores.html: which method predicts which real sweep best, with the drawings."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epochwatt.figures.tables.draw_sweep_scores import CURVES, DRAWINGS
from epochwatt.prediction.evaluation.sweep_text import NOTE, Judged, Row, judged, summary_table
from epochwatt.templates import render

TITLE = "Prediction on real sweeps"


def write_page(rows: Sequence[Row], drawings: Path, path: Path) -> None:
    """Write the page.

    Parameters
    ----------
    rows : of results/sweeps/scores.csv
    drawings : folder of the drawings, which the page shows from there
    path : where to write
    """
    units = judged(rows)
    folder = os.path.relpath(drawings, path.parent)
    text = render(
        "sweep_scores.html",
        title=TITLE,
        note=NOTE,
        summary=_rows(summary_table(units)),
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
    return {
        "heading": f"{unit.title} ({unit.shared['provenance']})",
        "tables": [_rows(table) for table in unit.tables()],
        "left_out": unit.left_out_lines(),
    }


def _rows(table: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]
