"""Show all prediction methods side by side: scores.html, with the paper's counts, methods.svg."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epochwatt.figures.common import style
from epochwatt.prediction.names import EVERY, REFERENCE, TARGETS
from epochwatt.templates import render
from epochwatt.text import counted, label, origin

TITLE = "Predictions of the time and the energy of an epoch"
TRUE = "True"

Row = Mapping[str, str]


def write_page(folder: str, backend: str, path: str) -> None:
    """Write the page."""
    counts, beside = (_read(Path(folder) / name) for name in ("statistics.csv", "scores.csv"))
    text = render(
        "scores.html",
        title=TITLE,
        origin=f"{origin([backend])} {', '.join(_devices([counts, beside]))}",
        by_construction=any(row["by_construction"] == TRUE for row in beside),
        scores=_by_group(beside, score_row),
        counts=_by_group([row for row in counts if row["is_paper"] == TRUE], counted_row),
    )
    Path(path).write_text(text, "utf-8")


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _devices(tables: Iterable[Iterable[Row]]) -> list[str]:
    return list(dict.fromkeys(row["device"] for rows in tables for row in rows)) or ["no run"]


def _by_group(rows: Sequence[Row], shown: Callable[[Row], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each board group a heading, what all rows share, and a table of the rest."""
    parts = []
    for group in dict.fromkeys(row["board_group"] for row in rows):
        members = [row for row in rows if row["board_group"] == group]
        cells = [shown(row) for row in members]
        same = [n for n in cells[0] if len(cells) > 1 and len({row[n] for row in cells}) == 1]
        shared = [f"All rows: {n}: {cells[0][n]}." for n in same if cells[0][n]]
        rest = [{n: cell for n, cell in row.items() if n not in same} for row in cells]
        parts.append({"heading": _heading(members[0]), "shared": shared, "rows": rest})
    return parts


def _heading(row: Row) -> str:
    """Return in words what a board group shares; its number is its place in power_modes.json."""
    return (
        f"Board group {row['board_group']}: {row['device']}-{row['instance']}, {row['storage']}, "
        f"{counted(int(row['num_workers']), 'workers')}, batch {row['batch_size']}, "
        f"setup {row['setup']}"
    )


def counted_row(row: Row) -> dict[str, Any]:
    """Return a row of statistics.csv for people."""
    n_total = row.get("n_subsets") or row["n_predictions"]
    total = f" of {n_total}" if n_total else ""
    printed_total = f" of {row['n_published']}" if row.get("n_published") else ""
    published = f" ({short(row['published'])}{printed_total})" if row.get("published") else ""
    names = ("target", "method", "learned_from", "networks", "modes", "statistic")
    return {
        **{name: row[name] for name in names},
        "ours (published)": f"{short(row['value']) or 'none'}{total}{published}",
        "criterion": row.get("criterion", ""),
        "agrees": row.get("agrees", ""),
    }


def score_row(row: Row) -> dict[str, Any]:
    """Return a row of scores.csv for people."""
    minutes = [f"{float(row[f'board_minutes_{part}']):.0f}" for part in ("low", "median", "high")]
    mark = ", by construction" if row["by_construction"] == TRUE else ""
    return {
        "target": row["target"],
        "method": row["method"] + mark,
        **{name: row[name] for name in ("learned_from", "networks", "n")},
        **{f"{part}, %": short(row[f"{part}_pct"]) for part in ("median", "p90", "worst")},
        "median over the paper's": _spread(row),
        "board minutes (low, median, high)": ", ".join(minutes),
        "left out": row["left_out"],
    }


def _spread(row: Row) -> str:
    if row["method"] == REFERENCE:
        return ""
    low, middle, high = (row[f"error_ratio_to_paper_{part}"] for part in ("q25", "q50", "q75"))
    return f"{short(middle)} ({short(low)} to {short(high)})" if middle else ""


def short(cell: str) -> str:
    """Return a number to three figures, or as a whole one; anything else as it is."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


STYLE = "config/paper.mplstyle"
DRAWING_TITLE = "Errors of methods that learn from the same four modes: median to 90th percentile"
TITLES = dict(zip(TARGETS, ("time", "power", "energy"), strict=True))
WIDTH_IN, HEAD_IN, ROW_IN = 7.0, 1.3, 0.22
OURS, REFERENCES = "#0072B2", "#D55E00"  # colour of a method, and of the one compared with


def draw_scores(folder: str, backend: str) -> None:
    """Draw median and 90th percentile of each method's errors, by board group and target."""
    with open(f"{folder}/scores.csv", newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["learned_from"] == EVERY]
    groups = list(dict.fromkeys(row["board_group"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    height_in = HEAD_IN + max(len(groups), 1) * (0.5 + ROW_IN * len(methods))
    settings = {
        "title": style.titled(DRAWING_TITLE, label(backend).split(",")[0]),
        "width_in": WIDTH_IN,
        "height_in": height_in,
    }
    note = f"{origin([backend])} {', '.join(dict.fromkeys(r['device'] for r in rows)) or 'no run'}"
    if any(row["by_construction"] == TRUE for row in rows):
        note += "; hollow: almost right by construction"
    note += "; orange: the paper's; no dot: the method does not predict it"
    with style.panel(STYLE, settings, note) as (figure, axes):
        axes.remove()
        facets = figure.subplots(max(len(groups), 1), len(TARGETS), sharey=True, squeeze=False)
        for group, row_of_facets in zip(groups, facets, strict=False):
            for target, facet in zip(TARGETS, row_of_facets, strict=True):
                some = [r for r in rows if (r["board_group"], r["target"]) == (group, target)]
                _draw_errors(facet, some, methods)
                facet.set_xlabel(f"error of {TITLES[target]} (%)")
        style.save(figure, f"{folder}/methods", rows)


def _draw_errors(axes: Axes, rows: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
    for row in rows:
        place = methods.index(row["method"])
        colour = REFERENCES if row["method"] == REFERENCE else OURS
        median, p90 = float(row["median_pct"]), float(row["p90_pct"])
        axes.plot([median, p90], [place, place], color=colour, linewidth=1.5)
        mark = "white" if row["by_construction"] == TRUE else colour
        axes.plot([median], [place], "o", color=colour, markerfacecolor=mark, markersize=5)
    style.set_log(axes, "x")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(methods)), methods)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
