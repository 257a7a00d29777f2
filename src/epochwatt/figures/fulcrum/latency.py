"""Draw how long requests wait beside training: steady or random arrivals, or measured."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.fulcrum import fields
from epochwatt.figures.fulcrum.names import ASSUMED, ENDINGS, FIGURES, FIRST, NOTES
from epochwatt.figures.roofline.look import write_caption
from epochwatt.tables import read_table

TITLE = FIGURES["fulcrum_latency"]
COLOURS = {"constant": "#0072B2", "poisson": "#D55E00", "trace": "#009E73"}
WORDS = {"constant": "steady arrivals", "poisson": "random arrivals (Poisson)", "trace": "a trace"}
BUDGET = "#555555"
LEAST_PCT = 0.1  # of the axis
CAPTION = """Each field is a plan. Across: latency. Up: requests that wait longer, in %. Dotted: the
latency budget of the plan. With steady arrivals no request waits longer than planned; where
requests arrive at random, a mini-batch fills sooner or later than planned, and may find the board
still busy."""
PLAYED = """The plans are the best of all modes at the greatest power budget, with 30 % of the
highest rate and a latency budget of forty times the shortest mini-batch."""
MEASURED = """Solid: measured, requests that were served. Dashed: simulated with the same plan and
the median times of single mini-batches that were taken just before. Dotted: the formula's longest
latency of steady arrivals."""


def draw_latency(latencies: str, provenance: str, style_file: str, stem: str) -> None:
    """Draw results/fulcrum/latencies.csv: plans of a provenance, or those that were measured."""
    every = [{**row, **_numbers(row)} for _, row in read_table(Path(latencies))]
    if provenance == "measured":
        rows = [row for row in every if row["plan"]]  # what was measured, and the same simulated
    else:
        rows = [row for row in every if row["provenance"] == provenance and not row["plan"]]
    settings = {
        "title": style.titled(TITLE, FIRST[provenance]),
        "width_in": fields.WIDTH_IN,
        "height_in": fields.HEIGHT_IN,
    }
    with style.panel(style_file, settings, NOTES[provenance]) as (figure, axes):
        by_field = fields.by_field(rows)
        places = fields.places(figure, axes, len(by_field))
        for place, (title, some) in zip(places, by_field.items(), strict=False):
            _draw(place, some, provenance == "measured")
            place.set_title(title, fontsize="small")
        fields.label_rows(places, "requests that wait longer (%)")
        style.legend(figure, _handles(rows))
        style.save(figure, stem, rows)
    more = {"public": f"{PLAYED} {ASSUMED}", "measured": MEASURED}.get(provenance, PLAYED)
    write_caption(stem, TITLE, f"{CAPTION} {more}", ENDINGS[provenance])
    fields.write_spec(
        *(stem, TITLE, provenance, rows),
        x={"field": "latency_ms", "type": "quantitative", "title": "latency (ms)"},
        y={"field": "percentile", "type": "quantitative", "title": "requests answered by then (%)"},
        color={"field": "line", "type": "nominal", "title": None},
    )


def _numbers(row: Mapping[str, str]) -> Cells:
    return {
        "latency_ms": 1e3 * float(row["latency_s"]),
        "percentile": float(row["percentile"]),
        "line": f"{WORDS[row['arrivals']]}, {row['provenance']}",
    }


def _draw(axes: Axes, rows: Iterable[Cells], has_measured: bool) -> None:
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        point = row["latency_ms"], max(100 - row["percentile"], LEAST_PCT / 10)
        lines.setdefault((row["arrivals"], row["provenance"]), []).append(point)
        budget_ms = 1e3 * float(row["max_latency_s"])
    for (arrivals, provenance), points in lines.items():
        dashes = "--" if has_measured and provenance == "simulated" else "-"
        axes.plot(*zip(*points, strict=True), dashes, color=COLOURS[arrivals], marker="")
    axes.axvline(budget_ms, color=BUDGET, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylim(LEAST_PCT, 130)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(left=0)
    axes.set_xlabel("latency (ms)")
    axes.grid(visible=True, axis="both")


def _handles(rows: Iterable[Cells]) -> list[Line2D]:
    arrivals = dict.fromkeys(row["arrivals"] for row in rows)
    lines = [Line2D([], [], color=COLOURS[name], label=WORDS[name]) for name in arrivals]
    return [*lines, Line2D([], [], color=BUDGET, linestyle=":", label="latency budget")]
