"""The one way to write a table: CSV, and a page for the report."""

import csv
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STYLE = (
    "body{font-family:sans-serif;margin:2em}table{margin-bottom:2em}"
    "td,th{padding:.3em .8em;text-align:left;border-bottom:1px solid #ddd}"
    "tr.published{color:#555}"
)

Rows = Sequence[Mapping[str, Any]]


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
        writer = csv.DictWriter(handle, _columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    Path(f"{stem}.html").write_text(page(title, notes, shown or [rows]), "utf-8")


def page(title: str, notes: Sequence[str], shown: Sequence[Rows]) -> str:
    """Return tables as a self-contained page; a row whose `source` is published is grey."""
    tables = "".join(_table(rows) for rows in shown if rows)
    told = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (
        f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style><body><h1>{html.escape(title)}</h1>{tables}{told}</body></html>\n"
    )


def _table(rows: Rows) -> str:
    columns = _columns(rows)
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        f"<tr class='{html.escape(str(row.get('source', '')))}'>"
        + "".join(f"<td>{html.escape(said(row.get(name)))}</td>" for name in columns)
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def said(value: Any) -> str:
    """Return a cell for people: numbers to six figures, nothing for what is not there."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
