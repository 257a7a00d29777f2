"""Energy over clocks and power limits: curves that others measured beside simulated ones."""

import csv
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from epochwatt.figures.common import style

PANEL = {"title": "Energy against clock or power limit", "width_in": 7.2, "height_in": 3.0}
TITLES = {  # panel of the table -> title, axis
    "GPU alone": ("GPU of a Jetson", "GPU clock / highest"),
    "whole module": ("whole module: simulated only", "GPU clock / highest"),
    "training, GPU": ("graphics cards: measured only", "power limit / highest"),
}
LOOKS = {  # provenance -> colour, width, words; what is first is behind
    "simulated": ("#D55E00", 0.7, "simulated: AGX, NX, Nano, training"),
    "public": ("#0072B2", 1.6, "measured by others: TX2, inference; V100, RTX 6000, training"),
}
HIGHEST = 6.0  # of the energies shown, at least
CAPTION = """Energy over GPU clocks and power limits, each curve divided by its least energy.

Measured by others: a Jetson TX2's GPU rail under ResNet-18 and ResNet-50 (Energy Time Fairness,
SEC 2023); training of six networks on V100 and RTX 6000 under power limits, the GPU's energy,
median over batch sizes and optimisers (Zeus, NSDI 2023). Simulated: training of the papers'
networks on AGX, NX and Nano with 0 and 4 workers; no table here has the measured module.

The energy of the TX2's GPU is least between both ends of its clocks. A simulated GPU alone has no
such minimum: the simulation books all power that no clock moves to the rest of the module.
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
            place.set_ylim(0.95, max([HIGHEST, *(1.1 * float(row["energy"]) for row in rows)]))
        handles = [
            Line2D([], [], color=colour, linewidth=width, label=words)
            for colour, width, words in LOOKS.values()
        ]
        style.legend(figure, handles)
        style.save(figure, stem, rows)
    Path(f"{stem}.txt").write_text(CAPTION, encoding="utf-8")


def _draw(axes: Axes, panel: str, rows: Sequence[dict[str, str]]) -> None:
    """Draw the curves of a panel, measured ones above."""
    for provenance, (colour, width, _) in LOOKS.items():
        some = [row for row in rows if row["provenance"] == provenance]
        for curve in dict.fromkeys(row["curve"] for row in some):
            points = [row for row in some if row["curve"] == curve]
            axes.plot(
                [float(row["setting"]) for row in points],
                [float(row["energy"]) for row in points],
                color=colour,
                linewidth=width,
                alpha=0.8,
            )
    title, label = TITLES[panel]
    axes.set_title(title, fontsize="small")
    axes.set_xlabel(label)
    axes.set_ylabel("energy / least of its curve" if panel == next(iter(TITLES)) else "")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator([1, 1.5, 2, 3, 5, 10, 20]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
