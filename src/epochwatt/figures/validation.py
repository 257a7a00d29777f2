"""Published numbers and what the simulated boards, fitted without them, predict.

Four fields have what is judged as a ratio, each in its own unit: times, changes as the ratio of
their two sides, powers, and energies. The worst are named below them. The fifth has the median
error by what was left out: a statement on the accuracy has to quote their range. Shares, small
changes and bounds are in `results/twin/validation.csv`.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.validation_spec import write_validation_spec
from epochwatt.published.numbers import load_published

PAPER_OF = {
    "": "SIGMETRICS 2023",
    "hipcw_": "HiPCW 2021",
}  # by what a class begins with
PANELS = {"time": "times", "change": "changes", "power": "powers", "energy": "energies"}
UNITS = {  # of a panel: unit in the table -> how many of the panel's unit, marker, words
    "time": {"s": (1.0, "o", "of an epoch"), "ms": (1e-3, "v", "of a mini-batch")},
    "change": {"pct": (1.0, "^", "change"), "x": (1.0, "^", "change")},
    "power": {"W": (1.0, "s", "power")},
    "energy": {"Wh": (1.0, "D", "energy")},
}
AXIS = {"time": "s", "power": "W", "energy": "Wh", "change": "ratio of two sides"}
OF_UNIT = {"W": "power", "Wh": "energy"}  # panel of what is not told by its class
TITLE = "Simulated boards against published numbers"
PANEL = {"title": TITLE, "width_in": 7.2, "height_in": 9.8}
CAPTION = """Published numbers and what the simulated boards, fitted without them, predict.

A point is a published number that is judged as a ratio: how far the prediction of a fit that has
not seen it is from it. Dashed and dotted lines are the median error of each paper, the grey band is
the goal of 10 %. The worst points are named below each field. The last field has the median error
by what was left out of the fit; bars are 90 % of a bootstrap over what was left out. Simulated, not
measured.
"""
METRICS = {  # words of a quantity, with the worst points
    "stall_s": "stall",
    "compute_s": "compute",
    "e2e_s": "E2E",
    "power_w": "power",
    "energy_wh": "energy",
    "idle_power_w": "idle power",
    "stall_ms_per_minibatch": "stall of a mini-batch",
    "compute_ms_per_minibatch": "compute of a mini-batch",
}
NAMED = ("device", "model", "storage", "num_workers", "batch_size", "power_mode")
USUAL = (16, "g", "15W", "MAXN")  # mini-batch size and power modes that are not named
BAND_PCT = 10.0  # the goal
WIDE = 100.0  # from the lowest to the highest value of an axis
BESIDE_PT = (3.0, 1.5)  # where the number of a worst point stands, from it
N_NAMED = 3  # worst points of a panel that are named
RATIOS = (
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
)  # labelled where an axis goes beyond `FAR`
NEAR_RATIOS, FAR = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0), 2.2
ROOM, LEAST_SHOWN = 1.2, 1.3  # of the axes beyond the worst ratio, which is at least taken as this
COLOURS = {"time": "compute", "energy_power": "epoch_0", "change": "stall"}  # of the palette
COLOURS |= {"power": "epoch_0", "energy": "epoch_0"}
MARKERS = {"time": "o", "energy_power": "s"}
LEFT_OUT = {"time": "times", "energy_power": "energies and powers"}  # classes of the last field
PRIORS = ("fitted, priors", "not fitted, priors")  # begin the rows there that are no grouping
HEADINGS = ("left out of the fit: each ...", "by priors, fitted or not")  # of the rows
ROWS = {  # names of rows there -> words; others are words
    "take-away": "take-away of the paper",
    "take-away, and what asks nearly the same": "take-away and those that ask nearly the same",
    "board with network": "board with one network",
    "HiPCW: main paper, one parameter": "paper (HiPCW 2021; one parameter fitted to it)",
    "not fitted, priors as chosen": "priors as chosen, nothing fitted",
    "fitted, priors widths doubled": "priors twice as wide, fitted",
    "not fitted, priors shifted 1": "priors shifted at random (1), nothing fitted",
    "fitted, priors shifted 1": "priors shifted at random (1), fitted",
    "not fitted, priors shifted 2": "priors shifted at random (2), nothing fitted",
    "fitted, priors shifted 2": "priors shifted at random (2), fitted",
}
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
        return OF_UNIT.get(self.unit, self.class_.removeprefix("hipcw_"))


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
    return value * UNITS[OF_UNIT.get(unit, row["class"].removeprefix("hipcw_"))][unit][0]


def read_names(published: str) -> dict[str, str]:
    """Return in words what each published number is of, by its id.

    Parameters
    ----------
    published : folder config/published
    """
    facts = load_published(Path(published))
    names = {
        id_: f"{_settings(fact.config)}: {METRICS.get(fact.metric, fact.metric)}"
        for id_, fact in facts.measurements.items()
    }
    for id_, fact in facts.relations.items():
        a, b = fact.config_a, fact.config_b
        change = " against ".join(
            _settings({key: side[key] for key in NAMED if side.get(key) != other.get(key)})
            for side, other in ((a, b), (b, a))
            if side
        )
        same = _settings({key: a[key] for key in NAMED if key in a and a[key] == b.get(key)})
        metric = METRICS.get(fact.metric, fact.metric)
        names[id_] = f"{', '.join(filter(None, (same, change)))}: {metric}"
    return names


def _settings(config: Mapping[str, Any]) -> str:
    """Return in a few words the settings that a number is of."""
    words = {"num_workers": counted_workers, "power_mode": "mode {}".format}
    words |= {"batch_size": "batch {}".format}
    shown = [name for name in NAMED if config.get(name) not in (None, "", *USUAL)]
    return " ".join(words.get(name, str)(config[name]) for name in shown)


def counted_workers(n: int) -> str:
    """Return a number of workers in few letters."""
    return f"w={n}"


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
            label = f"{PRIORS[row['fitted'] == 'no']} {row['priors']}"
            error_pct = float(row["median_error_pct"])
            medians.append(Median(label, row["class"], int(row["n"]), error_pct, None, None))
    return medians


def draw(
    points: Sequence[Point],
    panel: str,
    axes: Axes,
    palette: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    """Draw prediction / published over the published value, the goal's band and the median error.

    Both axes are logarithmic: over five decades the ratio alone shows how far off a number is.

    Parameters
    ----------
    names : id -> what a number is of, in words
    """
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    edge = colour[COLOURS[panel]]
    values = [point.published for point in points]
    ends = np.array([0.6 * min(values), 1.9 * max(values)])
    most = max(max(r, 1.0 / r) for r in (point.held_out / point.published for point in points))
    band, top = np.exp(BAND_PCT / 100.0), ROOM * max(most, LEAST_SHOWN)
    axes.axhspan(1.0 / band, band, color=colour["missing"], alpha=0.25, lw=0)
    axes.axhline(1.0, color=colour["missing"], lw=0.8)
    for paper, printed_in in PAPER_OF.items():
        of_paper = [point for point in points if point.paper == paper]
        if of_paper:
            _median_lines(of_paper, ends, axes, edge, f"{printed_in}: {len(of_paper)}")
        for words, marker in dict.fromkeys((unit[2], unit[1]) for unit in UNITS[panel].values()):
            here = [point for point in of_paper if UNITS[panel][point.unit][2] == words]
            axes.scatter(
                [point.published for point in here],
                [point.held_out / point.published for point in here],
                s=16, marker=marker, facecolors="none" if paper else edge, edgecolors=edge,
                linewidths=0.8, label=f"{words}{', HiPCW' if paper else ''}" if here else None,
                zorder=3,
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(1.0 / top, top))
    axes.set_ylabel("simulated / published", fontsize="small")
    worst = _name_worst(points, axes, names)
    axes.set_xlabel(
        "\n".join([f"published ({AXIS[panel]})", *worst]), fontsize="x-small", loc="left"
    )
    _plain_ticks(axes.xaxis, *ends)
    axes.yaxis.set_major_locator(FixedLocator(RATIOS if top > FAR else NEAR_RATIOS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(labelsize="x-small")
    _legend_above(axes, f"{PANELS[panel]}, left out of the fit")


def _legend_above(axes: Axes, title: str) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize="x-small", title=title,
        title_fontsize="small", alignment="left", borderaxespad=0.2,
    )  # fmt: skip


def _name_worst(points: Sequence[Point], axes: Axes, names: Mapping[str, str]) -> list[str]:
    """Put numbers beside the worst points; return lines of what they are."""
    lines = []
    for n, point in enumerate(sorted(points, key=lambda p: -p.error_pct)[:N_NAMED], 1):
        axes.annotate(
            str(n), (point.published, point.held_out / point.published), fontsize="x-small",
            xytext=BESIDE_PT, textcoords="offset points", ha="left", va="bottom", zorder=5,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip
        name = names.get(point.published_id, point.published_id)
        lines.append(f"{n}  {name} {point.published:.3g}, simulated {point.held_out:.3g}")
    return lines


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
        ratio = np.exp(sign * error_pct / 100.0)
        axes.plot(ends, [ratio, ratio], look, color=colour, lw=0.8, label=line_label)


def draw_medians(medians: Sequence[Median], axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw the median errors by what was left out, one row each, with their intervals."""
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    rows = _rows_of(medians)
    for class_, shift in zip(LEFT_OUT, (-0.15, 0.15), strict=True):
        of_class = [entry for entry in medians if entry.class_ == class_]
        y = np.array([rows.index(entry.left_out) + shift for entry in of_class])
        edge = colour[COLOURS[class_]]
        for at, entry in zip(y, of_class, strict=True):
            if entry.low_pct is not None and entry.high_pct is not None:
                axes.plot([entry.low_pct, entry.high_pct], [at, at], color=edge, lw=1.0)
        x = [entry.median_error_pct for entry in of_class]
        grouped = [
            entry.median_error_pct for entry in of_class if not entry.left_out.startswith(PRIORS)
        ]
        ends = f"{min(grouped):.0f} to {max(grouped):.0f} %"
        label = f"{LEFT_OUT[class_]}: {ends} by what is left out"
        axes.scatter(x, y, s=14, color=edge, marker=MARKERS[class_], label=label, zorder=3)
    axes.axvline(BAND_PCT, color=colour["missing"], lw=0.8)
    axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.7))
    axes.set_yticks(range(len(rows)), [ROWS.get(row, row) for row in rows])
    axes.set_xlabel("median error (%); vertical line: the goal", fontsize="small")
    axes.tick_params(labelsize="x-small")
    axes.tick_params("y", length=0)
    for row, tick, line in zip(rows, axes.get_yticklabels(), axes.get_ygridlines(), strict=True):
        if row in HEADINGS:
            tick.set_fontweight("bold")
            line.set_visible(False)
    _plain_ticks(axes.xaxis, *axes.get_xlim())
    _legend_above(axes, "median error by what the fit was without, or started from")


def _rows_of(medians: Sequence[Median]) -> list[str]:
    """Return the rows of the last field: what was left out, then priors, each below its heading."""
    names = list(dict.fromkeys(entry.left_out for entry in medians))
    of_priors = [name for name in names if name.startswith(PRIORS)]
    rows: list[str] = []
    for heading, below in zip(
        HEADINGS, ([name for name in names if name not in of_priors], of_priors), strict=True
    ):
        rows += [heading, *below] if below else []
    return rows


def plot(
    table: str,
    groupings: str,
    priors: str,
    published: str,
    style_file: str,
    palette: Mapping[str, str],
    stem: str,
) -> None:
    """Draw the figure.

    Parameters
    ----------
    table, groupings : `validation.csv` and `groupings.csv`
    priors : config/twin/priors.csv
    published : folder config/published
    style_file : matplotlib style
    palette : thing -> colour
    stem : path of its files without ending
    """
    points, medians = read(table), read_medians(groupings, priors)
    names = read_names(published)
    note = f"simulated, not measured; grey band: {BAND_PCT:g} %; {len(points)} numbers judged as a"
    note += " ratio; bars: 90 % of a bootstrap over what was left out; one"
    note += " parameter was fitted to HiPCW 2021"
    with style.panel(style_file, PANEL, note) as (figure, axes):
        axes.remove()
        grid = figure.add_gridspec(3, 2, height_ratios=(2.2, 2.0, 3.0))
        places = (grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1])
        for panel, place in zip(PANELS, places, strict=True):
            here = [point for point in points if point.panel == panel]
            facet = figure.add_subplot(place)
            if here:
                draw(here, panel, facet, palette, names)
            else:
                facet.remove()
        below = grid[2, :].subgridspec(1, 1)  # its long labels leave the fields above as they are
        draw_medians(medians, figure.add_subplot(below[0]), palette)
        style.save(figure, stem, [*map(_csv_row, points), *(entry._asdict() for entry in medians)])
    Path(f"{stem}.txt").write_text(CAPTION, encoding="utf-8")
    write_validation_spec(stem, TITLE, note, palette, names)


def _csv_row(point: Point) -> dict[str, Any]:
    row = point._asdict()
    return {"published_id": row.pop("published_id"), "class": row.pop("class_"), **row}
