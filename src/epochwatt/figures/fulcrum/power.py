"""Draw training throughput beside a stream of requests, over power budgets, of each plan."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.fulcrum import fields
from epochwatt.figures.fulcrum.names import ASSUMED, ENDINGS, FIGURES, FIRST, HOLLOW, NOTES, look
from epochwatt.figures.roofline.look import write_caption
from epochwatt.tables import read_table

TITLE = FIGURES["fulcrum_power"]
DRAWN = "random_"
LINES = {
    "exhaustive": ("-", 2.6),
    "gmd": ("-", 1.3),
    "gain": ("--", 1.3),
    "maxn": (":", 1.3),
    "presets": ("-.", 1.0),
}
CAPTION = """Each field is a network that trains and one that serves. Requests arrive steadily, at
30 % of the highest rate that the strongest mode serves, and are answered within forty times its
shortest mini-batch. Across: the power budget. Up: mini-batches of training a second, of the plan
that each solver answers with; no line: no plan, or one that breaks a budget. The grey line is the
best of all modes; of solvers with random modes the smallest number of them is shown, one draw."""


def draw_power(power: str, provenance: str, style_file: str, stem: str) -> None:
    """Draw the rows of a provenance of results/fulcrum/power.csv, at `stem`."""
    every = [row for _, row in read_table(Path(power)) if row["provenance"] == provenance]
    solvers = shown_solvers(row["solver"] for row in every)
    rows = [
        {**row, **{name: _number(row[name]) for name in ("max_power_w", "throughput_per_s")}}
        for row in every
        if row["solver"] in solvers
    ]
    settings = {
        "title": style.titled(TITLE, FIRST[provenance]),
        "width_in": fields.WIDTH_IN,
        "height_in": fields.HEIGHT_IN,
    }
    with style.panel(style_file, settings, NOTES[provenance]) as (figure, axes):
        by_field = fields.by_field(rows)
        places = fields.places(figure, axes, len(by_field))
        for place, (title, some) in zip(places, by_field.items(), strict=False):
            _draw(place, some, solvers)
            place.set_title(title, fontsize="small")
        fields.label_rows(places, "mini-batches of training / s")
        style.legend(figure, [_line(name) for name in solvers])
        style.save(figure, stem, rows)
    text = f"{CAPTION} {ASSUMED}" if provenance == "public" else CAPTION
    write_caption(stem, TITLE, text, ENDINGS[provenance])
    fields.write_spec(
        *(stem, TITLE, provenance, [row for row in rows if row["throughput_per_s"] is not None]),
        x={"field": "max_power_w", "type": "quantitative", "title": "power budget (W)"},
        y={"field": "throughput_per_s", "type": "quantitative", "title": "mini-batches / s"},
        color={"field": "solver", "type": "nominal"},
    )


def shown_solvers(names: Iterable[str]) -> list[str]:
    """Return the solvers that have a line, of those that profile random modes the smallest number.

    A prediction that nobody checked has none: its throughput may be that of a broken budget.
    """
    every = list(dict.fromkeys(names))
    chosen = [name for name in every if not name.rpartition("_")[2].isdigit()]
    chosen = [name for name in chosen if not name.endswith(HOLLOW)]
    for kind in (DRAWN, HOLLOW):
        group = [name for name in every if name.startswith(kind) or name.endswith(kind)]
        chosen += group[:1]
    return chosen


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def _draw(axes: Axes, rows: Sequence[Cells], solvers: Iterable[str]) -> None:
    for name in solvers:
        points = [
            (row["max_power_w"], float("nan") if (y := row["throughput_per_s"]) is None else y)
            for row in rows
            if row["solver"] == name
        ]
        if points:
            axes.plot(*zip(*points, strict=True), drawstyle="steps-post", **_strokes(name))
    axes.set_xlabel("power budget (W)")
    if any(row["throughput_per_s"] for row in rows):
        axes.set_ylim(bottom=0)
    else:
        axes.set_ylim(0, 1)
        axes.text(0.5, 0.5, "no plan trains", transform=axes.transAxes, ha="center")
    axes.grid(visible=True, axis="both")


def _strokes(name: str) -> dict[str, Any]:
    _, colour, _ = look(name)
    line, width = LINES.get(name, ("--", 1.2))
    pale = style.pale(colour) if name == "exhaustive" else colour
    return {"color": pale, "linestyle": line, "linewidth": width, "marker": ""}


def _line(name: str) -> Line2D:
    words = look(name)[0] + (", verified" if name.endswith(HOLLOW) else "")
    return Line2D([], [], label=words, **_strokes(name))
