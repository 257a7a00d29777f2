"""Draw methods.svg: the errors of all prediction methods, from the same training modes."""

import csv
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.tables.scores import TRUE
from epochwatt.prediction.names import EVERY, REFERENCE, TARGETS
from epochwatt.text import label, origin

STYLE = "config/paper.mplstyle"
TITLE = "Errors of methods that learn from the same four modes: median to 90th percentile"
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
        "title": style.titled(TITLE, label(backend).split(",")[0]),
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
                _draw(facet, some, methods)
                facet.set_xlabel(f"error of {TITLES[target]} (%)")
        style.save(figure, f"{folder}/methods", rows)


def _draw(axes: Axes, rows: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
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
