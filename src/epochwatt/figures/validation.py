"""Draw published numbers and what the simulated boards, fitted without them, predict.

Four fields have what is judged as a ratio, each in its own unit: times, changes as the ratio of
their two sides, powers, and energies. The worst are named below them. The fifth has the median
error by what was left out: a statement on the accuracy has to quote their range. Shares, small
changes and bounds are in `results/twin/validation.csv`. An error is 100 |ln(simulated /
published)|, so that half as much is as far off as twice as much.
"""

import csv
import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from epochwatt import columns
from epochwatt.figures.common import style, vega
from epochwatt.published.numbers import Published, load_published
from epochwatt.text import counted

PAPER_OF = {
    "": "SIGMETRICS 2023",
    "hipcw_": "HiPCW 2021",
}  # by what a class begins with
PANEL_UNITS = {  # of a panel: unit in the table -> how many of the panel's unit, marker
    "time": {"s": (1.0, "o"), "ms": (1e-3, "v")},
    "change": {"pct": (1.0, "^"), "x": (1.0, "^")},
    "power": {"W": (1.0, "s")},
    "energy": {"Wh": (1.0, "D")},
}
DRAWN_UNITS = {"time": "s", "change": "x", "power": "W", "energy": "Wh"}  # of a panel's numbers
OF_UNIT = {"W": "power", "Wh": "energy"}  # panel of what is not told by its class
MEDIA = {"ssd": "SSD", "sd": "SD card", "hdd": "hard disk"}
NAMED = ("device", "model", "storage", "num_workers", "batch_size", "power_mode", "dvfs", "epoch")
USUAL = (16, "g", "15W", "MAXN", "off", "1+", "all")  # settings that are not named
PINNED = {"gpu114": "GPU at 114.75 MHz"}  # power modes of section 5.6 with no letter
EPOCHS = {"0": "first epoch", "1+": "later epochs", "all": "median of all epochs"}
LEFT_OUT = {"time": "times", "energy_power": "energies and powers"}  # classes of the last field
PRIORS = ("fitted, priors", "not fitted, priors")  # begin the rows there that are no grouping
CHOSEN = "as chosen"  # priors of the fits: all other panels have what these give
FEW = 3  # numbers that a paper prints otherwise, and that are listed
SLIP = "slip: "  # begins the note on a number that a paper prints otherwise


class Point(NamedTuple):
    """One published number: a value or a ratio of two sides, and its held-out prediction."""

    published_id: str
    class_: str
    device: str
    published: float  # in `unit`; ms as s, changes as the ratio of their sides
    held_out: float
    # where its take-away, where its section was left out of the fit; None: no such fit is made
    error_pct: float
    section_error_pct: float | None
    unit: str
    marker: str  # of a point

    @property
    def paper(self) -> str:
        """Its paper: a key of `PAPER_OF`."""
        return "hipcw_" if self.class_.startswith("hipcw_") else ""

    @property
    def panel(self) -> str:
        """The panel that it is drawn in."""
        return _panel(self.class_, self.unit)


class Median(NamedTuple):
    """The median error of one class where something was left out, or by other priors."""

    left_out: str  # in words
    class_: str
    n: int
    median_error_pct: float
    low_pct: float | None  # ends of its interval; None: too few groups
    high_pct: float | None


def read_points(path: str) -> list[Point]:
    """Return the numbers of `validation.csv` that are judged as a ratio."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["judged_as"] == "ratio"]
    return [_point(row) for row in rows]


def read_rest(path: str) -> str:
    """Return in words how many numbers of `validation.csv` are no ratios, and how near they are."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    bounds = [row["met"] == "yes" for row in rows if row["judged_as"] == "bound"]
    points = [float(row["held_out_error_pct"]) for row in rows if row["judged_as"] == "points"]
    words = [f"{len(bounds)} bounds and ranges, {sum(bounds)} of them met"] if bounds else []
    if points:
        off = f"off by {median(points):.1f} points in the median"
        words += [f"{len(points)} shares and changes below 20 %, {off}"]
    return f"not drawn: {'; '.join(words)} ({path})" if words else "all are drawn"


def _panel(class_: str, unit: str) -> str:
    return OF_UNIT.get(unit, class_.removeprefix("hipcw_"))


def _point(row: Mapping[str, str]) -> Point:
    """Return a row in its panel's unit: a change in per cent as the ratio of its sides."""
    panel = _panel(row["class"], row["unit"])
    factor, marker = PANEL_UNITS[panel][row["unit"]]
    names = ("published_value", "held_out_prediction")
    published, held_out = (
        1.0 + float(row[name]) / 100.0 if row["unit"] == "pct" else float(row[name]) * factor
        for name in names
    )
    section_pct = row["section_error_pct"]
    return Point(
        *(row["published_id"], row["class"], row["device"], published, held_out),
        *(float(row["held_out_error_pct"]), float(section_pct) if section_pct else None),
        *(DRAWN_UNITS[panel], marker),
    )


def read_names(facts: Published, titles: Mapping[str, str]) -> dict[str, str]:
    """Return in words what each published number is of, by its id."""
    shown = MEDIA | dict(titles)
    names = {
        id_: f"{_settings(fact.config, shown)}: {columns.label(fact.metric)}"
        for id_, fact in facts.measurements.items()
    }
    for id_, fact in facts.relations.items():
        a, b = fact.config_a, fact.config_b
        ends = ((a, b), (b, a)) if fact.formula == "A/B" else ((b, a), (a, b))
        change = " against ".join(
            _settings({k: side[k] for k in NAMED if side.get(k) != other.get(k)}, shown, usual=())
            for side, other in ends
            if side
        )
        same = {key: a[key] for key in NAMED if key in a and a[key] == b.get(key)}
        metric = columns.label(fact.metric)
        names[id_] = f"{', '.join(filter(None, (_settings(same, shown), change)))}: {metric}"
    return names


def _settings(
    config: Mapping[str, Any], titles: Mapping[str, str], usual: tuple[Any, ...] = USUAL
) -> str:
    """Return in a few words the settings that a number is of, without the usual ones."""
    words = {"num_workers": lambda n: counted(n, "workers"), "batch_size": "batch {}".format}
    words |= {"power_mode": lambda mode: PINNED.get(mode, f"mode {mode}")}
    words |= {"dvfs": "DVFS {}".format, "epoch": lambda k: EPOCHS.get(k, f"epochs {k}")}
    shown = [(name, config.get(name)) for name in NAMED]
    return ", ".join(
        words.get(name, lambda value: titles.get(value, str(value)))(value)
        for name, value in shown
        if value not in (None, "", *usual)
    )


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


def slips(points: Sequence[Point], facts: Published) -> list[str]:
    """Return a line on the numbers that a paper prints otherwise than they are drawn."""
    of_id = facts.facts()
    wrong = [
        (point, fact)
        for point in points
        if (fact := of_id.get(point.published_id)) and fact.note.startswith(SLIP)
    ]
    if not wrong:
        return []
    if len(wrong) > FEW:
        kinds = Counter((point.paper, fact.note.removeprefix(SLIP)) for point, fact in wrong)
        ((paper, reason), n), *_ = kinds.most_common(1)
        return [f"corrected: {n} numbers of {PAPER_OF[paper]}, {reason}"]
    drawn = " and ".join(f"{point.published:g}" for point, _ in wrong)
    printed = " and ".join(fact.as_printed.replace("us", "µs") for _, fact in wrong)
    point, fact = wrong[0]
    return [f"corrected: {drawn} {point.unit} are printed as {printed}, read as {fact.unit}"]


PANELS = {"time": "times", "change": "changes", "power": "powers", "energy": "energies"}
AXIS = {"time": "s", "power": "W", "energy": "Wh", "change": "ratio of two sides"}
OF_MARKERS = {"time": "; circles: of an epoch, triangles: of a mini-batch"}
TITLE = "Simulated boards against published numbers"
PANEL = {"title": TITLE, "width_in": 7.2, "height_in": 10.2}
CAPTION = """Published numbers, and what the simulated boards, fitted without them, predict of them.

A point is a published number that is judged as a ratio, simulated / published. Its error is
100 |ln(simulated / published)|: 10 % is a factor of 1.11, 100 % one of 2.7. Take-aways are the
findings that a paper counts by number or section, such as 5.1.3: each is left out of the fit in
turn, with all that gives it away, and its numbers are then predicted. It is stricter to leave out
the whole section, whose median error stands second. HiPCW 2021 contradicts the main paper: one
parameter is fitted to it, again without each of its take-aways; all others come from the main
paper. Lines are the median error of a paper, dashed of SIGMETRICS 2023, dotted of HiPCW 2021; the
grey band is the goal of 10 %. The two farthest points of each paper are named below each field.

The last field has the median error by what was left out of the fit; bars are 90 % of a bootstrap
over what was left out. Priors are what each parameter is expected to be, with a width, before any
published number is used; the lower rows say what comes of others. Simulated, not measured.
"""
BAND_PCT = 10.0  # the goal
WIDE = 100.0  # from the lowest to the highest value of an axis
BESIDE_PT = ((-3.0, "right"), (3.0, "left"))  # where the numbers of the worst points stand
SAME_PLACE = 0.015  # of its value, that a point is at most beside one that hides it
FIXED = "\u00a0"  # where no line is broken
ABOVE_PT = 1.5  # the same, upwards
N_NAMED = 2  # worst points of each paper in a panel that are named
LINE_CHARACTERS = 66  # of a line below a panel
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
HEADINGS = (  # of the rows
    "left out of the fit: each ...",
    "priors (fitted: without each take-away)",
)
NOTHING_FITTED = "not fitted, priors as chosen"  # a row
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


def draw(
    points: Sequence[Point],
    panel: str,
    axes: Axes,
    palette: Mapping[str, str],
    facts: Published,
    names: Mapping[str, str],
) -> None:
    """Draw prediction / published over the published value, the goal's band and the median error.

    Both axes are logarithmic: over five decades the ratio alone shows how far off a number is.
    """
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    edge = colour[COLOURS[panel]]
    values = [point.published for point in points]
    ends = np.array([0.6 * min(values), 1.9 * max(values)])
    most = max(max(r, 1.0 / r) for r in (point.held_out / point.published for point in points))
    band, top = np.exp(BAND_PCT / 100.0), ROOM * max(most, LEAST_SHOWN)
    axes.axhspan(1.0 / band, band, color=colour["missing"], alpha=0.25, lw=0)
    axes.axhline(1.0, color=colour["missing"], lw=0.8)
    handles: list[Line2D] = []
    for paper in PAPER_OF:
        of_paper = [point for point in points if point.paper == paper]
        handles += _draw_paper(of_paper, ends, axes, edge) if of_paper else []
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(1.0 / top, top))
    axes.set_ylabel("simulated / published", fontsize="small")
    lines = [f"published ({AXIS[panel]}){OF_MARKERS.get(panel, '')}"]
    lines += _name_worst(points, axes, names, facts) + slips(points, facts)
    wrapped = [textwrap.fill(line, LINE_CHARACTERS, subsequent_indent="    ") for line in lines]
    axes.set_xlabel("\n".join(wrapped), fontsize="x-small", loc="left")
    _plain_ticks(axes.xaxis, *ends)
    axes.yaxis.set_major_locator(FixedLocator(RATIOS if top > FAR else NEAR_RATIOS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(labelsize="x-small")
    _legend_above(axes, f"{PANELS[panel]}, each take-away left out of the fit in turn", handles)


def _draw_paper(points: Sequence[Point], ends: np.ndarray, axes: Axes, edge: str) -> list[Line2D]:
    """Draw the points of a paper and how far off the median one is; return the legend's entries."""
    paper = points[0].paper
    fill, dash = ("none", ":") if paper else (edge, "--")
    for marker in dict.fromkeys(point.marker for point in points):
        here = [point for point in points if point.marker == marker]
        axes.scatter(
            [point.published for point in here],
            [point.held_out / point.published for point in here],
            s=16, marker=marker, facecolors=fill, edgecolors=edge, linewidths=0.8, zorder=3,
        )  # fmt: skip
    error_pct = median(point.error_pct for point in points)
    factor = np.exp(error_pct / 100.0)
    for ratio in (factor, 1.0 / factor):
        axes.plot(ends, [ratio, ratio], dash, color=edge, lw=0.8)
    label = f"{PAPER_OF[paper]}, {counted(len(points), 'numbers')}: median error {error_pct:.1f} %"
    label += f", × or ÷ {factor:.2f}"
    look: dict[str, Any] = {"marker": points[0].marker, "markersize": 4, "markeredgewidth": 0.8}
    look |= {"linestyle": dash, "linewidth": 0.8, "color": edge, "markerfacecolor": fill}
    handles = [Line2D([], [], label=label, **look)]
    stricter = [one.section_error_pct for one in points if one.section_error_pct is not None]
    if stricter:
        label = f"with the whole section left out: {median(stricter):.1f} %"
        handles.append(Line2D([], [], linestyle="", label=label))
    return handles


def _legend_above(axes: Axes, title: str, handles: Sequence[Artist]) -> None:
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize="x-small",
        title=title, title_fontsize="small", alignment="left", borderaxespad=0.2,
    )  # fmt: skip


def _name_worst(
    points: Sequence[Point], axes: Axes, names: Mapping[str, str], facts: Published
) -> list[str]:
    """Put numbers beside the worst points of each paper; return lines of what they are.

    Of two the left one has its number at its left.
    """
    by_error = sorted(points, key=lambda point: -point.error_pct)
    worst = [[p for p in by_error if p.paper == paper][:N_NAMED] for paper in PAPER_OF]
    last = {max(some, key=lambda point: point.published) for some in worst if some}
    lines, of_id = [], facts.facts()
    for n, point in enumerate([point for some in worst for point in some], 1):
        aside_pt, side = BESIDE_PT[point in last]
        axes.annotate(
            str(n), (point.published, point.held_out / point.published), fontsize="x-small",
            xytext=(aside_pt, ABOVE_PT), textcoords="offset points", ha=side, va="bottom", zorder=5,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip
        name = names.get(point.published_id, point.published_id)
        unit = f"{FIXED}{point.unit}" if point.panel != "change" else ""
        fact = of_id.get(point.published_id)
        is_slip = fact is not None and fact.note.startswith(SLIP)
        printed = f" (printed{FIXED}{fact.as_printed.split()[0]})" if fact and is_slip else ""
        both = f"{point.published:.3g}{unit}{printed}, here{FIXED}{point.held_out:.3g}{unit}"
        n_here = sum(_is_on(other, point) for other in points)
        hidden = f"; {n_here} points lie here" if n_here > 1 else ""
        lines.append(f"{n}  {name}{FIXED}{both}{hidden}")
    return lines


def _is_on(other: Point, point: Point) -> bool:
    """Say whether a point lies on another: both of its numbers are those of the other."""
    a, b = ((p.published, p.held_out / p.published) for p in (other, point))
    return bool(np.allclose(a, b, rtol=SAME_PLACE))


def _plain_ticks(axis: Axis, low: float, high: float) -> None:
    """Label a logarithmic axis at tenfold steps, or at 1, 2 and 5 where these are few."""
    is_wide = high / low > WIDE
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_medians(medians: Sequence[Median], axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw the median errors by what was left out, one row each, with their intervals."""
    colour = style.colours(palette, [*COLOURS.values(), "missing"])
    rows, handles = _rows_of(medians), list[Artist]()
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
        counts = sorted({entry.n for entry in of_class})
        numbers = " to ".join(map(str, [*counts[:1], *counts[1:][-1:]]))
        label = f"{LEFT_OUT[class_]}, {numbers} numbers: {ends} by what is left out"
        dots = axes.scatter(x, y, s=14, color=edge, marker=MARKERS[class_], zorder=3)
        dots.set_label(label)
        handles.append(dots)
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
    _legend_above(axes, "median error by what the fit was without, or started from", handles)


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
    titles: Mapping[str, str],
    stem: str,
) -> None:
    """Draw the figure."""
    points, medians = read_points(table), read_medians(groupings, priors)
    facts = load_published(Path(published))
    names = read_names(facts, titles)
    note = "simulated, not measured; error: 100 |ln(simulated / published)| %; grey band:"
    note += f" {BAND_PCT:g} %; {len(points)} numbers judged as a ratio; {read_rest(table)}; bars:"
    note += " 90 % of a bootstrap over what was left out, none where that is too few; one parameter"
    note += f" was fitted to HiPCW 2021{_nothing_fitted(medians)}"
    with style.panel(style_file, PANEL, note) as (figure, axes):
        axes.remove()
        grid = figure.add_gridspec(3, 2, height_ratios=(2.2, 2.0, 3.0))
        places = (grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1])
        for panel, place in zip(PANELS, places, strict=True):
            here = [point for point in points if point.panel == panel]
            facet = figure.add_subplot(place)
            if here:
                draw(here, panel, facet, palette, facts, names)
            else:
                facet.remove()
        below = grid[2, :].subgridspec(1, 1)  # its long labels leave the fields above as they are
        draw_medians(medians, figure.add_subplot(below[0]), palette)
        style.save(figure, stem, [*map(_csv_row, points), *(entry._asdict() for entry in medians)])
    Path(f"{stem}.txt").write_text(CAPTION, encoding="utf-8")
    write_validation_spec(stem, TITLE, note, palette, names)


def _nothing_fitted(medians: Sequence[Median]) -> str:
    """Return what the note says of times where nothing was fitted at all."""
    errors_pct = [m.median_error_pct for m in medians
                  if (m.left_out, m.class_) == (NOTHING_FITTED, "time")]  # fmt: skip
    return "".join(f"; with nothing fitted, times are off by {pct:.1f} %" for pct in errors_pct)


def _csv_row(point: Point) -> dict[str, Any]:
    row = point._asdict()
    del row["marker"]
    return {"published_id": row.pop("published_id"), "class": row.pop("class_"), **row}


# -- the interactive form ------------------------------------------------------------------------

FIELDS = {"W": "powers (W)", "Wh": "energies (Wh)"}  # unit -> title of a field
FIELDS |= {"time": "times (s)", "change": "changes (ratio of two sides)"}  # else by class
POINT_NUMBERS = ("published", "held_out", "error_pct", "section_error_pct", "ratio")
MEDIAN_NUMBERS = ("median_error_pct", "low_pct", "high_pct", "n")


def write_validation_spec(
    stem: str, title: str, note: str, palette: Mapping[str, str], names: Mapping[str, str]
) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv, which is read again: the same cells."""
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    points, medians = list[vega.Spec](), list[vega.Spec]()
    for row in rows:
        if row["published_id"]:
            paper = "hipcw_" if row["class"].startswith("hipcw_") else ""
            kind = row["class"].removeprefix(paper)
            point = {
                "field": FIELDS.get(row["unit"]) or FIELDS.get(kind, kind),
                "paper": PAPER_OF[paper],
                "of": names.get(row["published_id"], row["published_id"]),
                "ratio": float(row["held_out"]) / float(row["published"]),
            }
            kept = ("published_id", "device", "unit", *POINT_NUMBERS[:4])
            points.append(point | {name: row[name] for name in kept})
        else:
            shown = {"of": LEFT_OUT[row["class_"]], "row": ROWS.get(row["left_out"])}
            medians.append({**row, **shown, "row": shown["row"] or row["left_out"]})
    both = [_point_fields(points, palette), _median_rows(medians, palette)]
    data = vega.csv_data(points, POINT_NUMBERS)
    vega.write(stem, title, note, {"data": data, "vconcat": both})


def _point_fields(points: Sequence[vega.Spec], palette: Mapping[str, str]) -> vega.Spec:
    """Return the fields of points, with the goal as a band."""
    grey, factor = palette["missing"], math.exp(BAND_PCT / 100.0)
    scale = {"type": "log", "zero": False}
    band = {"type": "rect", "color": grey, "opacity": 0.25}
    goal = vega.layer(band, y={"datum": 1.0 / factor}, y2={"datum": factor})
    unity = vega.layer({"type": "rule", "color": grey}, y={"datum": 1.0})
    for drawn_once in (goal, unity):  # not for each point
        drawn_once["transform"] = [{"aggregate": [], "groupby": ["field"]}]
    dots = vega.layer(
        {"type": "point", "size": 45, "filled": True, "opacity": 0.9},
        x=vega.number("published", "published", scale=scale),
        y=vega.number("ratio", "simulated / published", scale=scale),
        shape=vega.name("paper", scale={"range": ["circle", "triangle-up"]}),
        color={"value": palette["stall"]},
        tooltip=vega.tooltip(("of", "unit", *POINT_NUMBERS, "paper", "published_id")),
    )
    by = vega.name("field", sort=list(dict.fromkeys(point["field"] for point in points)))
    return vega.multiples(by, [goal, unity, dots], 320, 220, 2, "x", "y")


def _median_rows(medians: Sequence[vega.Spec], palette: Mapping[str, str]) -> vega.Spec:
    """Return the median errors by what was left out, with their intervals."""
    rows = list(dict.fromkeys(row["row"] for row in medians))
    colours = [palette["compute"], palette["epoch_0"]]
    place = {
        "y": vega.name("row", sort=rows, axis={"labelLimit": 320}),
        "yOffset": {"field": "of", "type": "nominal"},
        "color": vega.name("of", scale={"domain": list(LEFT_OUT.values()), "range": colours}),
    }
    title = "median error (%) by what was left out of the fit, or by other priors"
    x = vega.number("median_error_pct", title, scale={"type": "log"})
    ends = {"x": {**x, "field": "low_pct"}, "x2": {"field": "high_pct"}}
    rod, dot = {"type": "rule", "strokeWidth": 1.5}, {"type": "point", "filled": True}
    dot |= {"size": 50, "opacity": 1}
    tooltip = vega.tooltip(("row", "of", *MEDIAN_NUMBERS))
    layers = [
        vega.layer({"type": "rule", "color": palette["missing"]}, x={"datum": BAND_PCT}),
        vega.layer(rod, "isValid(datum.low_pct)", **ends, **place),
        vega.layer(dot, x=x, **place, tooltip=tooltip),
    ]
    return {"data": vega.csv_data(medians, MEDIAN_NUMBERS), "width": 460, "layer": layers}
