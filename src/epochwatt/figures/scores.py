"""The page of predictions: what the paper counts, counted on ours, and models side by side."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.markup import page, paragraphs, table
from epochwatt.text import origin

TITLE = "Predictions of the time and the energy of an epoch"
NOTES = (
    "First table: the paper's models, counted as in its sections 5.7.2 and 5.7.3; in brackets what "
    "is published, with the criterion of the take-away. A count without the modes that the fit has "
    "learned from is compared as a share.",
    "Second table: each model learns from epochs 1 and 2 of four modes and predicts the others; "
    "error of the mean over later epochs, % of what was observed. Profiling cost: minutes of board "
    "time for the four modes, epochs 0 to 2, least to most. Over the paper's: how many times the "
    "median error of the paper's model a model's is, from the same modes and of the same network; "
    "the median and the middle half. The paper's model of energy learns here from all networks of "
    "the row, VGG-11 too; in the first table it never sees VGG-11.",
    "Bench: its place in power_modes.json, which says what its runs share and what they train on.",
    "Columns, all fits and all rows: docs/prediction.md, statistics.csv, scores.csv.",
)
PLACE = ("bench", "setup", "device", "instance", "num_workers")

Row = Mapping[str, str]


def write_page(folder: str, backend: str, path: str) -> None:
    """Write the page.

    Parameters
    ----------
    folder : results/models/{backend}, with statistics.csv and scores.csv
    backend : whose predictions they are
    path : where to write
    """
    found = [_read(Path(folder) / name) for name in ("statistics.csv", "scores.csv")]
    counted = [told(row) for row in found[0] if row["fit"].startswith("paper")]
    notes = paragraphs([f"{origin([backend])} {', '.join(_devices(found))}.", *NOTES])
    text = page(TITLE, notes, table(counted), table([scored(row) for row in found[1]]))
    Path(path).write_text(text, "utf-8")


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _devices(tables: Iterable[Iterable[Row]]) -> list[str]:
    return list(dict.fromkeys(row["device"] for rows in tables for row in rows)) or ["no run"]


def told(row: Row) -> dict[str, Any]:
    """Return a row of statistics.csv for people."""
    of = f" of {row['of']}" if row["of"] else ""
    printed_of = f" of {row['published_of']}" if row.get("published_of") else ""
    published = f" ({short(row['published'])}{printed_of})" if row.get("published") else ""
    return {
        **{name: row[name] for name in PLACE},
        **{name: row[name] for name in ("target", "fit", "networks", "modes", "statistic")},
        "ours (published)": f"{short(row['value'])}{of}{published}",
        "criterion": row.get("criterion", ""),
        "agrees": row.get("agrees", ""),
    }


def scored(row: Row) -> dict[str, Any]:
    """Return a row of scores.csv for people."""
    minutes = [f"{float(row[f'board_minutes_{part}']):.0f}" for part in ("low", "median", "high")]
    return {
        **{name: row[name] for name in PLACE},
        **{name: row[name] for name in ("target", "fit", "learned_from", "networks", "n")},
        **{f"{part}, %": short(row[f"{part}_pct"]) for part in ("median", "p90", "worst")},
        "median over the paper's": _spread(row),
        "board minutes (low, median, high)": ", ".join(minutes),
        "left out": row["left_out"],
    }


def _spread(row: Row) -> str:
    low, middle, high = (row[f"times_paper_{part}"] for part in ("low", "median", "high"))
    return f"{short(middle)} ({short(low)} to {short(high)})" if middle else ""


def short(cell: str) -> str:
    """Return a number to three figures, anything else as it is."""
    try:
        return f"{float(cell):.3g}"
    except ValueError:
        return cell
