"""Page of the study of PowerTrain: figures, methods beside each other, the paper beside ours."""

import os
from collections.abc import Iterable
from pathlib import Path

from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.powertrain import looks
from epochwatt.pages import powertrain_tables
from epochwatt.templates import render


def write_powertrain(tables: Iterable[str], figures: Iterable[str], path: str) -> None:
    """Write the page.

    Parameters
    ----------
    tables : paths of errors.csv, penalties.csv, numbers.csv, claims.csv; a missing one has no rows
    figures : paths of the drawings (SVG), each beside its caption (.txt)
    path : where to write
    """
    rows = {Path(table).stem: read_rows(table) for table in tables}
    sections = []
    for provenance, folder in looks.FOLDERS.items():
        mine = [f for f in figures if Path(f).parent.name == folder]
        section = {
            "title": looks.PROVENANCES[provenance],
            "methods": powertrain_tables.methods_table(
                rows["errors"], rows["penalties"], provenance
            ),
            "figures": [_figure(figure, path) for figure in mine],
        }
        sections.append(section)
    text = render(
        "powertrain.html",
        title="PowerTrain, on simulated and on real boards",
        in_short=powertrain_tables.in_short(rows["claims"]),
        sections=sections,
        numbers=powertrain_tables.numbers_table(rows["numbers"]),
        claims=powertrain_tables.claims_table(rows["claims"]),
    )
    Path(path).write_text(text, "utf-8")


def _figure(svg: str, page: str) -> dict[str, str]:
    title, _, caption = Path(svg).with_suffix(".txt").read_text("utf-8").partition("\n\n")
    return {
        "path": os.path.relpath(svg, Path(page).parent),
        "title": title,
        "caption": " ".join(caption.split()),
    }
