"""Energy over clocks and power limits: curves that others measured beside simulated ones."""

import csv
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, ScalarFormatter

from epochwatt.figures.common import style

PANEL = {"title": "Energy against clock or power limit", "width_in": 7.2, "height_in": 3.0}
TITLES = {  # panel of the table -> title, axis
    "GPU alone": ("GPU alone", "GPU clock / highest"),
    "whole module": ("whole module", "GPU clock / highest"),
    "training, GPU": ("training, GPU", "power limit / highest"),
}
COLOURS = {"public": "#0072B2", "simulated": "#D55E00"}
WORDS = {"public": "measured by others", "simulated": "simulated"}
HIGHEST = 6.0  # of the energies shown
CAPTION = """Energy over GPU clocks and power limits, each curve over its points least.

Measured by others: a Jetson TX2's GPU rail under ResNet-18 and ResNet-50 (Energy Time Fairness,
SEC 2023); training of six networks on V100 and RTX 6000 under power limits, the GPU's energy,
median over batch sizes and optimisers (Zeus, NSDI 2023). Simulated: training of the papers'
networks on AGX, NX and Nano with 0 and 4 workers; no table here has the measured module.
"""


def plot(table: str, style_file: str, stem: str) -> None:
    """Draw the curves of results/tables/external_curves.csv; write `stem`.svg, .png, .csv, .txt.

    Parameters
    ----------
    table : the curves
    style_file : of matplotlib
    stem : path without ending
    """
    with open(table, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    with style.panel(style_file, PANEL, "measured by others, and simulated") as (figure, axes):
        for place, panel in zip(style.side_by_side(figure, axes, len(TITLES)), TITLES, strict=True):
            _draw(place, panel, [row for row in rows if row["panel"] == panel])
        handles = [Line2D([], [], color=c, label=WORDS[name]) for name, c in COLOURS.items()]
        style.legend(figure, handles)
        style.save(figure, stem, rows)
    Path(f"{stem}.txt").write_text(CAPTION, encoding="utf-8")


def _draw(axes: Axes, panel: str, rows: Sequence[dict[str, str]]) -> None:
    """Draw the curves of a panel, measured ones above."""
    for provenance in ("simulated", "public"):
        some = [row for row in rows if row["provenance"] == provenance]
        for curve in dict.fromkeys(row["curve"] for row in some):
            points = [row for row in some if row["curve"] == curve]
            axes.plot(
                [float(row["setting"]) for row in points],
                [float(row["energy"]) for row in points],
                color=COLOURS[provenance],
                linewidth=1.6 if provenance == "public" else 0.7,
                alpha=0.9 if provenance == "public" else 0.6,
            )
    title, label = TITLES[panel]
    axes.set_title(title, fontsize="small")
    axes.set_xlabel(label)
    axes.set_ylabel("energy / least" if panel == next(iter(TITLES)) else "")
    axes.set_yscale("log")
    axes.set_ylim(0.95, HIGHEST)
    axes.yaxis.set_major_locator(FixedLocator([1, 1.5, 2, 3, 5]))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
