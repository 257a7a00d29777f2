"""Published numbers and what the simulated boards, fitted without them, predict.

Three panels have what is judged as a ratio, each in its own unit: times, energies and powers, and
changes as the ratio of their two sides. The worst are named. The fourth has the median error by
what was left out: a statement on the accuracy has to quote their range. Shares, small
changes and bounds are in `results/twin/validation.csv`.
"""

import csv
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from epochwatt.figures.common import style

PAPER_OF = {
    "": "SIGMETRICS 2023",
    "hipcw_": "HiPCW 2021, one parameter",
}  # by what a class begins with
PANELS = {"time": "times", "energy_power": "energies and powers", "change": "changes"}
UNITS = {  # of a panel: unit in the table -> how many of the panel's unit, marker, words
    "time": {"s": (1.0, "o", "s"), "ms": (1e-3, "v", "ms of a mini-batch, in s")},
    "energy_power": {"W": (1.0, "s", "W"), "Wh": (1.0, "D", "Wh")},
    "change": {"pct": (1.0, "^", "change"), "x": (1.0, "^", "change")},
}
AXIS = {"time": "s", "energy_power": "W, or Wh", "change": "ratio of two sides"}
PANEL = {"title": "Simulated boards against published numbers", "width_in": 7.2, "height_in": 7.0}
BAND_PCT = 10.0  # the goal
WIDE = 100.0  # from the lowest to the highest value of an axis
N_NAMED = 3  # worst points of a panel that are named
COLOURS = {"time": "compute", "energy_power": "epoch_0", "change": "stall"}  # of the palette
LEFT_OUT = ("time", "energy_power")  # classes of the fourth panel
PRIORS = "priors"  # begins the rows of the fourth panel that are no grouping
CHOSEN = "as chosen"  # priors of the fits: all other panels have what these give


class Point(NamedTuple):
    """One published number: a value or a ratio of two sides, and its held-out prediction.

    Attributes
    ----------
    published, held_out : in `unit`; ms as s, changes as the ratio of their sides
    """

    published_id: str
    class_: str
    device: str
    published: float
    held_out: float
    error_pct: float
    unit: str = ""

    @property
    def paper(self) -> str:
        """What its class begins with: a key of `PAPER_OF`."""
        return "hipcw_" if self.class_.startswith("hipcw_") else ""

    @property
    def panel(self) -> str:
        """The panel that it is drawn in."""
        return self.class_.removeprefix("hipcw_")


class Median(NamedTuple):
    """The median error of one class where something was left out, or by other priors.

    Attributes
    ----------
    left_out : in words
    low_pct, high_pct : ends of its interval; None: too few groups
    """

    left_out: str
    class_: str
    n: int
    median_error_pct: float
    low_pct: float | None
    high_pct: float | None


def read(path: str) -> list[Point]:
    """Return the numbers of `validation.csv` that are judged as a ratio."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["judged_as"] == "ratio"]
    return [
        Point(
            row["published_id"],
            row["class"],
            row["device"],
            _value(row, "published_value"),
            _value(row, "held_out_prediction"),
            float(row["held_out_error_pct"]),
            row["unit"],
        )
        for row in rows
    ]


def _value(row: Mapping[str, str], column: str) -> float:
    """Return a value in its panel's unit, of a change in per cent the ratio of its sides."""
    value, unit = float(row[column]), row["unit"]
    if unit == "pct":
        return 1.0 + value / 100.0
    return value * UNITS[row["class"].removeprefix("hipcw_")][unit][0]


def read_medians(groupings: str, priors: str) -> list[Median]:
    """Return the medians of `groupings.csv`, and of `priors.csv` those of other priors."""
    with open(groupings, newline="", encoding="utf-8") as handle:
        medians = [
            Median(
                *(row["left_out"], row["class"], int(row["n"]), float(row["median_error_pct"])),
                *(float(row[end]) if row[end] else None for end in ("low_pct", "high_pct")),
            )
            for row in csv.DictReader(handle)
            if row["class"] in LEFT_OUT
        ]
    with open(priors, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        if (row["priors"], row["fitted"]) != (CHOSEN, "yes"):
            label = f"{PRIORS} {row['priors']}" + (", no fit" if row["fitted"] == "no" else "")
            error_pct = float(row["median_error_pct"])
            medians.append(Median(label, row["class"], int(row["n"]), error_pct, None, None))
    return medians


def draw(points: Sequence[Point], panel: str, axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw prediction over published value, both logarithmic, the goal's band and the median."""
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    edge = colour[COLOURS[panel]]
    values = [value for point in points for value in (point.published, point.held_out)]
    ends = np.array([0.6 * min(values), 1.9 * max(values)])
    band = np.exp(BAND_PCT / 100.0)
    axes.fill_between(ends, ends / band, ends * band, color=colour["missing"], alpha=0.25, lw=0)
    axes.plot(ends, ends, color=colour["missing"], lw=0.8)
    for paper, printed_in in PAPER_OF.items():
        of_paper = [point for point in points if point.paper == paper]
        if of_paper:
            _median_lines(of_paper, ends, axes, edge, f"{printed_in}: {len(of_paper)}")
        for words, marker in dict.fromkeys((unit[2], unit[1]) for unit in UNITS[panel].values()):
            here = [point for point in of_paper if UNITS[panel][point.unit][2] == words]
            axes.scatter(
                [point.published for point in here], [point.held_out for point in here],
                s=16, marker=marker, facecolors="none" if paper else edge, edgecolors=edge,
                linewidths=0.8, label=f"{words}{', HiPCW' if paper else ''}" if here else None,
            )  # fmt: skip
    _name_worst(points, axes)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=PANELS[panel])
    axes.set(xlabel=f"published, {AXIS[panel]}", ylabel=f"simulated, held out, {AXIS[panel]}")
    for axis in (axes.xaxis, axes.yaxis):
        _plain_ticks(axis, *ends)
    axes.legend(loc="upper left", fontsize="xx-small")


def _name_worst(points: Sequence[Point], axes: Axes) -> None:
    """Put numbers beside the worst points, and in the empty corner what they are."""
    lines = []
    for n, point in enumerate(sorted(points, key=lambda p: -p.error_pct)[:N_NAMED], 1):
        axes.annotate(
            str(n), (point.published, point.held_out), fontsize="xx-small",
            xytext=(4, -2), textcoords="offset points",
        )  # fmt: skip
        lines.append(
            f"{n}  {point.published_id}: {point.published:.3g} simulated as {point.held_out:.3g}"
        )
    axes.text(
        0.99, 0.02, "\n".join(lines), fontsize="xx-small", ha="right", transform=axes.transAxes
    )


def _plain_ticks(axis: Axis, low: float, high: float) -> None:
    """Label a logarithmic axis at tenfold steps, or at 1, 2 and 5 where these are few."""
    is_wide = high / low > WIDE
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _median_lines(
    points: Sequence[Point], ends: np.ndarray, axes: Axes, colour: str, label: str
) -> None:
    """Draw how far above and below the median number of a paper is, and say it in the legend."""
    error_pct = median(point.error_pct for point in points)
    look = ":" if points[0].paper else "--"
    for sign, line_label in ((1, f"{label}, median error {error_pct:.1f} %"), (-1, None)):
        axes.plot(
            ends,
            ends * np.exp(sign * error_pct / 100.0),
            look,
            color=colour,
            lw=0.8,
            label=line_label,
        )


def draw_medians(medians: Sequence[Median], axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw the median errors by what was left out, one row each, with their intervals."""
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    labels = list(dict.fromkeys(entry.left_out for entry in medians))
    for class_, shift in zip(LEFT_OUT, (-0.15, 0.15), strict=True):
        of_class = [entry for entry in medians if entry.class_ == class_]
        y = np.array([labels.index(entry.left_out) + shift for entry in of_class])
        edge = colour[COLOURS[class_]]
        for at, entry in zip(y, of_class, strict=True):
            if entry.low_pct is not None and entry.high_pct is not None:
                axes.plot([entry.low_pct, entry.high_pct], [at, at], color=edge, lw=1.0)
        x = [entry.median_error_pct for entry in of_class]
        grouped = [
            entry.median_error_pct for entry in of_class if not entry.left_out.startswith(PRIORS)
        ]
        label = f"{PANELS[class_]}: {min(grouped):.0f} to {max(grouped):.0f} %, {PRIORS} apart"
        axes.scatter(x, y, s=14, color=edge, marker="os"[LEFT_OUT.index(class_)], label=label)
    axes.axvline(BAND_PCT, color=colour["missing"], lw=0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize="xx-small")
    axes.set(xscale="log", ylim=(len(labels) - 0.5, -0.5), xlabel="median error, %")
    _plain_ticks(axes.xaxis, *axes.get_xlim())
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize="xx-small",
        title="by what was left out", alignment="left",
    )  # fmt: skip


def plot(
    table: str,
    groupings: str,
    priors: str,
    style_file: str,
    palette: Mapping[str, str],
    stem: str,
) -> None:
    """Draw the figure.

    Parameters
    ----------
    table, groupings : `validation.csv` and `groupings.csv`
    priors : config/twin/priors.csv
    style_file : matplotlib style
    palette : thing -> colour
    stem : path of its files without ending
    """
    points, medians = read(table), read_medians(groupings, priors)
    note = f"simulated boards; band: {BAND_PCT:g} %; {len(points)} numbers judged as a ratio"
    note += "; bars: 90 % of a bootstrap over what was left out"
    with style.panel(style_file, PANEL, note) as (figure, axes):
        axes.remove()
        facets = figure.subplots(2, 2).ravel()
        for panel, facet in zip(PANELS, facets, strict=False):
            draw([point for point in points if point.panel == panel], panel, facet, palette)
        draw_medians(medians, facets[-1], palette)
        style.save(figure, stem, [*map(_csv_row, points), *(entry._asdict() for entry in medians)])


def _csv_row(point: Point) -> dict[str, Any]:
    row = point._asdict()
    return {"published_id": row.pop("published_id"), "class": row.pop("class_"), **row}
