"""Draw differences of pairs of runs: each pair, mean, interval, and the margin."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.analysis.pairs import METRICS
from epochwatt.figures.common import style, vega
from epochwatt.figures.frames import write_caption
from epochwatt.tables import read_table

COLOURS = {"equivalent": "#009E73", "different": "#D55E00", "undecided": "#555555"}
MARKS = {"equivalent": "o", "different": "D", "undecided": "s"}  # told apart in grey, too
DOTS_BELOW = 0.22  # the mean, in rows: a bar would hide them
MARGIN = "#DDDDDD"
WIDTH_IN, ROW_IN, HEAD_IN = 7.0, 0.45, 1.6
SETTING = ("device", "model", "power_mode", "num_workers", "batch_size")
CAPTION = """Each dot is a pair of runs that follow each other and differ in {factor} alone; which
side was measured first alternates. Across: by how much {b} takes more than {a}, in % of the mean of
{a}; the wait in % of its E2E time. The bar is the mean with its interval of 90 %, the grey band the
margin of {margin} % that was stated beforehand. Inside the band: equivalent; outside: different;
across its edge, or with fewer than five pairs: undecided. Pairs with other software on their two
sides are left out."""


def draw_pairs(pairs: str, verdicts: str, style_file: str, stem: str) -> None:
    """Draw pairs.csv and verdicts.csv: SVG, PNG, CSV, caption and interactive spec at `stem`."""
    dots = [row for _, row in read_table(Path(pairs)) if not row["differs"]]
    rows = [row for _, row in read_table(Path(verdicts)) if row["difference_pct"]]
    title, origin, note = "No pair counts", "nothing is drawn", "nothing is drawn"
    if rows:
        title = "{factor}: {b} against {a}".format(**rows[0])
        origin = "{provenance}: {device}".format(**rows[0])
        note = f"{origin}; dots: pairs, bars: mean with its interval of 90 %"
    settings = {
        "title": title,
        "width_in": WIDTH_IN,
        "height_in": HEAD_IN + ROW_IN * max(1, len(rows)),
    }
    with style.panel(style_file, settings, note) as (figure, axes):
        _field(axes, rows, dots)
        style.legend(figure, _handles(rows))
        style.save(figure, stem, rows)
    values = {**rows[0], "margin": f"{float(rows[0]['margin_pct']):g}"} if rows else {}
    write_caption(stem, title, CAPTION.format(**values) if rows else title, origin)
    _write_spec(stem, title, rows)


def _name(row: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return what a row is about: its metric, and what else differs between rows."""
    differing = [key for key in SETTING if len({other[key] for other in rows}) > 1]
    title = METRICS[row["metric"]].title
    if row["relative_to"] != row["quantity"]:
        title += ", % of E2E time"
    return ", ".join([title, *(f"{key} {row[key]}" for key in differing)])


def _axis(rows: Sequence[Mapping[str, str]]) -> str:
    return "how much more {b} takes than {a} (%)".format(**rows[0]) if rows else "difference (%)"


def _field(
    axes: Axes, rows: Sequence[Mapping[str, str]], dots: Sequence[Mapping[str, str]]
) -> None:
    for place, row in enumerate(rows):
        colour, mean = COLOURS[row["verdict"]], float(row["difference_pct"])
        mine = [
            float(dot["difference_pct"])
            for dot in dots
            if all(dot[key] == row[key] for key in ("metric", "storage", *SETTING))
        ]
        axes.plot(mine, [place + DOTS_BELOW] * len(mine), ".", color=style.pale(colour))
        if row["low_pct"]:
            ends = [float(row["low_pct"]), float(row["high_pct"])]
            axes.plot(ends, [place, place], color=colour, linewidth=2.5)
        axes.plot(mean, place, MARKS[row["verdict"]], color=colour)
    axes.set_xlabel(_axis(rows))
    if rows:
        margin = float(rows[0]["margin_pct"])
        axes.axvspan(-margin, margin, color=MARGIN, zorder=0)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(range(len(rows)), [_name(row, rows) for row in rows])
    axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)


def _handles(rows: Sequence[Mapping[str, str]]) -> list[Any]:
    verdicts = dict.fromkeys(row["verdict"] for row in rows)
    handles: list[Any] = [
        Line2D([], [], color=COLOURS[verdict], marker=MARKS[verdict], linewidth=2.5, label=verdict)
        for verdict in verdicts
    ]
    margin = f"margin, {float(rows[0]['margin_pct']):g} %" if rows else "margin"
    return [*handles, Patch(color=MARGIN, label=margin)]


def _write_spec(stem: str, title: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Write the interactive form: mean and interval of each metric in the margin's band."""
    names = ("difference_pct", "low_pct", "high_pct")
    values = [
        {**row, **{n: float(row[n]) for n in names if row[n]}, "name": _name(row, rows)}
        for row in rows
    ]
    y = vega.name("name", sort=None)
    verdicts = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    colour = {"field": "verdict", "type": "nominal", "scale": verdicts}
    margin = float(rows[0]["margin_pct"]) if rows else 0.0
    grey = {"type": "rect", "color": MARGIN}
    band = vega.layer(grey, x=vega.number("from"), x2={"field": "to"})
    band["data"] = {"values": [{"from": -margin, "to": margin}]}
    ends = {"x": vega.number("low_pct"), "x2": {"field": "high_pct"}}
    point = {"type": "point", "filled": True, "size": 80}
    x = vega.number("difference_pct", _axis(rows))
    tooltip = vega.tooltip(values[0] if values else ())
    layers = [
        band,
        vega.layer({"type": "rule", "size": 3}, **ends, y=y, color=colour),
        vega.layer(point, x=x, y=y, color=colour, tooltip=tooltip),
    ]
    vega.write(stem, title, "", {"data": {"values": values}, "layer": layers})
