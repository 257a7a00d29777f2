"""What the simulated boards say to published numbers they were not fitted to, beside these numbers.

Drawn is what is judged as a ratio: times, energies and powers in the paper's units, changes as the
ratio of their two sides. Shares, small changes and bounds stand in `results/twin/validation.csv`.
"""

import csv
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures import style

PAPER_OF = {"": "SIGMETRICS 2023", "hipcw_": "HiPCW 2021, in no fit"}  # by what a class begins with
MARKERS = {"time": "o", "energy_power": "s", "change": "^"}
LABELS = {
    "time": "time (s, ms)",
    "energy_power": "energy, power (Wh, W)",
    "change": "change (ratio)",
}
PANEL = {"title": "Simulated boards against published numbers", "width_in": 5.0, "height_in": 4.8}
BAND_PCT = 10.0  # the goal
COLOURS = {"time": "compute", "energy_power": "epoch_0", "change": "stall"}  # of the palette


class Point(NamedTuple):
    """One published number: a value or a ratio of two sides, and its held-out prediction."""

    published_id: str
    class_: str
    device: str
    published: float
    held_out: float
    error_pct: float

    @property
    def paper(self) -> str:
        """What its class begins with: a key of `PAPER_OF`."""
        return "hipcw_" if self.class_.startswith("hipcw_") else ""


def read(path: str) -> list[Point]:
    """Return the numbers of `validation.csv` that are judged as a ratio."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["judged_as"] == "ratio"]
    return [
        Point(
            row["published_id"],
            row["class"],
            row["device"],
            _ratio(row["published_value"], row["unit"]),
            _ratio(row["held_out_prediction"], row["unit"]),
            float(row["held_out_error_pct"]),
        )
        for row in rows
    ]


def _ratio(value: str, unit: str) -> float:
    """Return a value, of a change in per cent the ratio of its sides."""
    return 1.0 + float(value) / 100.0 if unit == "pct" else float(value)


def draw(points: Sequence[Point], axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw prediction over published value, both logarithmic, and the band of the goal."""
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    values = [value for point in points for value in (point.published, point.held_out)]
    ends = np.array([0.7 * min(values), 1.5 * max(values)])
    band = np.exp(BAND_PCT / 100.0)
    axes.fill_between(ends, ends / band, ends * band, color=colour["missing"], alpha=0.25, lw=0)
    axes.plot(ends, ends, color=colour["missing"], lw=0.8)
    for paper, printed_in in PAPER_OF.items():
        for class_, marker in MARKERS.items():
            own = [point for point in points if point.class_ == paper + class_]
            if own:
                x, y = [point.published for point in own], [point.held_out for point in own]
                edge = colour[COLOURS[class_]]
                axes.scatter(
                    x, y, s=16, marker=marker, facecolors="none" if paper else edge,
                    edgecolors=edge, linewidths=0.8,
                    label=f"{LABELS[class_]}, {printed_in}: {len(own)}",
                )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="published", ylabel="simulated, its take-away held out")
    axes.legend(loc="upper left")


def plot(path: str, style_file: str, palette: Mapping[str, str], stem: str) -> None:
    """Draw the figure.

    Parameters
    ----------
    path : `validation.csv`
    style_file : matplotlib style
    palette : thing -> colour
    stem : path of its files without ending
    """
    points = read(path)
    note = f"simulated boards; band: {BAND_PCT:g} %; {len(points)} numbers judged as a ratio"
    with style.panel(style_file, PANEL, note) as (figure, axes):
        draw(points, axes, palette)
        style.save(figure, stem, [_told(point) for point in points])


def _told(point: Point) -> dict[str, Any]:
    row = point._asdict()
    return {"published_id": row.pop("published_id"), "class": row.pop("class_"), **row}
