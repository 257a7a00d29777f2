"""The one way to write a table: CSV, and a page for the report."""

import csv
from collections.abc import Sequence
from pathlib import Path

from epochwatt.markup import Rows, columns, page, paragraphs, table


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
    tables = [table(each) for each in shown or [rows]]
    Path(f"{stem}.html").write_text(page(title, *tables, paragraphs(notes)), "utf-8")
