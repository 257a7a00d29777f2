"""The page of predictions: what the paper counts, counted on ours, and models side by side."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.templates import render
from epochwatt.text import counted, origin

TITLE = "Predictions of the time and the energy of an epoch"
PAPER = "paper"  # how the names of its models' fits begin

Row = Mapping[str, str]


def write_page(folder: str, backend: str, path: str) -> None:
    """Write the page.

    Parameters
    ----------
    folder : results/models/{backend}, with statistics.csv and scores.csv
    backend : whose predictions they are
    path : where to write
    """
    counts, beside = (_read(Path(folder) / name) for name in ("statistics.csv", "scores.csv"))
    by_construction = any(row["fit"].endswith("by construction") for row in beside)
    text = render(
        "scores.html",
        title=TITLE,
        origin=f"{origin([backend])} {', '.join(_devices([counts, beside]))}",
        by_construction=by_construction,
        scores=_by_bench(beside, scored),
        counts=_by_bench([row for row in counts if row["fit"].startswith(PAPER)], told),
    )
    Path(path).write_text(text, "utf-8")


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _devices(tables: Iterable[Iterable[Row]]) -> list[str]:
    return list(dict.fromkeys(row["device"] for rows in tables for row in rows)) or ["no run"]


def _by_bench(rows: Sequence[Row], shown: Callable[[Row], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a heading, what is the same in all rows and a table of the rest, for each bench."""
    parts = []
    for bench in dict.fromkeys(row["bench"] for row in rows):
        own = [row for row in rows if row["bench"] == bench]
        cells = [shown(row) for row in own]
        same = [n for n in cells[0] if len(cells) > 1 and len({row[n] for row in cells}) == 1]
        shared = [f"All rows: {n}: {cells[0][n]}." for n in same if cells[0][n]]
        rest = [{n: cell for n, cell in row.items() if n not in same} for row in cells]
        parts.append({"heading": _heading(own[0]), "shared": shared, "rows": rest})
    return parts


def _heading(row: Row) -> str:
    """Return in words what all rows of a bench share; its number is the one of power_modes.json."""
    return (
        f"Bench {row['bench']}: {row['device']}-{row['instance']}, {row['storage']}, "
        f"{counted(int(row['num_workers']), 'workers')}, batch {row['batch_size']}, "
        f"setup {row['setup']}"
    )


def told(row: Row) -> dict[str, Any]:
    """Return a row of statistics.csv for people."""
    of = f" of {row['of']}" if row["of"] else ""
    printed_of = f" of {row['published_of']}" if row.get("published_of") else ""
    published = f" ({short(row['published'])}{printed_of})" if row.get("published") else ""
    return {
        **{name: row[name] for name in ("target", "fit", "networks", "modes", "statistic")},
        "ours (published)": f"{short(row['value']) or 'none'}{of}{published}",
        "criterion": row.get("criterion", ""),
        "agrees": row.get("agrees", ""),
    }


def scored(row: Row) -> dict[str, Any]:
    """Return a row of scores.csv for people."""
    minutes = [f"{float(row[f'board_minutes_{part}']):.0f}" for part in ("low", "median", "high")]
    return {
        **{name: row[name] for name in ("target", "fit", "learned_from", "networks", "n")},
        **{f"{part}, %": short(row[f"{part}_pct"]) for part in ("median", "p90", "worst")},
        "median over the paper's": _spread(row),
        "board minutes (low, median, high)": ", ".join(minutes),
        "left out": row["left_out"],
    }


def _spread(row: Row) -> str:
    if row["fit"].startswith(PAPER):
        return ""
    low, middle, high = (row[f"times_paper_{part}"] for part in ("low", "median", "high"))
    return f"{short(middle)} ({short(low)} to {short(high)})" if middle else ""


def short(cell: str) -> str:
    """Return a number to three figures, or as a whole one; anything else as it is."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
