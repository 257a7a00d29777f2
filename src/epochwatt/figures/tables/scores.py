"""Show all prediction methods side by side: scores.html, with the paper's counts, methods.svg."""

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from epochwatt.figures.common import style
from epochwatt.figures.frames import numbers, read_texts, records
from epochwatt.prediction.names import EVERY, REFERENCE, TARGETS
from epochwatt.templates import render
from epochwatt.text import counted, label, origin

TITLE = "Predictions of the time and the energy of an epoch"
TRUE = "True"
STYLE = "config/paper.mplstyle"
DRAWING_TITLE = "Errors in other modes of methods that learn from four: median to 90th percentile"
TITLES = dict(zip(TARGETS, ("time", "power", "energy"), strict=True))
WIDTH_IN, HEAD_IN, ROW_IN = 7.0, 1.3, 0.36
NAME_LETTERS = 28  # of a line of a method's name
OURS, REFERENCES = "#0072B2", "#D55E00"  # colour of a method, and of the paper's

Row = Mapping[str, str]
Cells = dict[str, str]


def write_page(folder: str, backend: str, path: str) -> None:
    """Write the page."""
    counts, scores = (read_texts(Path(folder) / name) for name in ("statistics.csv", "scores.csv"))
    devices = [device for table in (counts, scores) if len(table) for device in table.device]
    text = render(
        "scores.html",
        title=TITLE,
        origin=f"{origin([backend])} {', '.join(dict.fromkeys(devices)) or 'no run'}",
        by_construction=len(scores) > 0 and scores.by_construction.eq(TRUE).any(),
        scores=_by_group(scores, score_row),
        counts=_by_group(
            counts[counts.is_paper.eq(TRUE)] if len(counts) else counts, statistics_row
        ),
    )
    Path(path).write_text(text, "utf-8")


def _by_group(rows: pd.DataFrame, shown: Callable[[Row], Cells]) -> list[dict[str, Any]]:
    """Return for each board group a heading, what all rows share, and a table of the rest."""
    parts = []
    for group, members in rows.groupby("board_group", sort=False) if len(rows) else ():
        cells = pd.DataFrame([shown(row) for row in records(members)])
        same = [name for name in cells if len(cells) > 1 and cells[name].nunique() == 1]
        shared = [f"All rows: {n}: {cells[n].iloc[0]}." for n in same if cells[n].iloc[0]]
        first = members.iloc[0]
        heading = (  # the number of a group is its place in power_modes.json
            f"Board group {group}: {first.device}-{first.instance}, {first.storage}, "
            f"{counted(int(first.num_workers), 'workers')}, batch {first.batch_size}, "
            f"setup {first.setup}"
        )
        rest = cells.drop(columns=same).to_dict("records")
        parts.append({"heading": heading, "shared": shared, "rows": rest})
    return parts


def statistics_row(row: Row) -> Cells:
    """Return a row of statistics.csv with one cell for both values: `12 of 40 (15 of 40)`.

    First ours of our total (subsets where they are counted, else predictions), then the paper's.
    """
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


def score_row(row: Row) -> Cells:
    """Return a row of scores.csv for people."""
    minutes = [f"{float(row[f'board_minutes_{part}']):.0f}" for part in ("low", "median", "high")]
    mark = ", by construction" if row["by_construction"] == TRUE else ""
    low, middle, high = (short(row[f"error_ratio_to_paper_{q}"]) for q in ("q25", "q50", "q75"))
    has_ratio = middle and row["method"] != REFERENCE
    return {
        "target": row["target"],
        "method": row["method"] + mark,
        **{name: row[name] for name in ("learned_from", "networks", "n")},
        **{f"{part}, %": short(row[f"{part}_pct"]) for part in ("median", "p90", "worst")},
        "median over the paper's": f"{middle} ({low} to {high})" if has_ratio else "",
        "board minutes (low, median, high)": ", ".join(minutes),
        "left out": row["left_out"],
    }


def short(cell: str) -> str:
    """Return a number to three figures, or as a whole one; anything else as it is."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def draw_scores(
    folder: str, backend: str, titles: Mapping[str, str], title_of: Callable[[str], str]
) -> None:
    """Draw median and 90th percentile of each method's errors, by board group and target.

    `titles`: device -> name for people; `title_of` gives that of a method.
    """
    rows = read_texts(f"{folder}/scores.csv")
    rows = rows[rows.learned_from.eq(EVERY)]
    groups, methods = rows.board_group.unique(), list(rows.method.unique())
    settings = {
        "title": style.titled(DRAWING_TITLE, label(backend).split(",")[0]),
        "width_in": WIDTH_IN,
        "height_in": HEAD_IN + max(len(groups), 1) * (0.5 + ROW_IN * len(methods)),
    }
    boards = [titles.get(device, device) for device in rows.device.unique()]
    note = f"{origin([backend])} {', '.join(boards) or 'no run'}"
    if rows.by_construction.eq(TRUE).any():
        note += "; hollow: almost right by construction"
    note += "; errors are against these runs; orange: the paper's; no dot: not predicted"
    with style.panel(STYLE, settings, note) as (figure, axes):
        axes.remove()
        facets = figure.subplots(max(len(groups), 1), len(TARGETS), sharey=True, squeeze=False)
        for group, row_of_facets in zip(groups, facets, strict=False):
            for target, facet in zip(TARGETS, row_of_facets, strict=True):
                shown = rows[rows.board_group.eq(group) & rows.target.eq(target)]
                _draw_errors(facet, shown, methods)
                facet.set_xlabel(f"error of {TITLES[target]} (%)")
            names = [textwrap.fill(title_of(name), NAME_LETTERS) for name in methods]
            row_of_facets[0].set_yticks(range(len(names)), names)
        style.save(figure, f"{folder}/methods", records(rows))


def _draw_errors(axes: Axes, rows: pd.DataFrame, methods: list[str]) -> None:
    by_construction = rows.by_construction.eq(TRUE)
    errors = zip(rows.method, numbers(rows.median_pct), numbers(rows.p90_pct), by_construction)  # noqa: B905
    for method, median, p90, is_known in errors:
        y, colour = methods.index(method), REFERENCES if method.startswith(REFERENCE) else OURS
        axes.plot([median, p90], [y, y], color=colour, linewidth=1.5)
        fill = "white" if is_known else colour
        axes.plot([median], [y], "o", color=colour, markerfacecolor=fill, markersize=5)
    style.set_log(axes, "x")
    style.label_log(axes.xaxis, 1, 3)
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
