"""Write a table as CSV and as a page of the report."""

import csv
from collections.abc import Sequence
from pathlib import Path

from epochwatt.templates import Rows, columns, render


def save(
    stem: str, title: str, notes: Sequence[str], rows: Rows, shown: Sequence[Rows] = ()
) -> None:
    """Write `stem`.csv and `stem`.html, the same bytes each time.

    Parameters
    ----------
    title, notes : above and below the tables of the page
    rows : of the CSV; its columns are those of all rows, in order
    shown : rows of each table of the page; none: those of the CSV
    """
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    page = render("tables.html", title=title, tables=shown or [rows], notes=notes)
    Path(f"{stem}.html").write_text(page, "utf-8")
