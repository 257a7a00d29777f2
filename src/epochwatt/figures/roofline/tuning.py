"""Draw what a tuned mode saves and costs in time: each workload's choices, by origin."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.frames import write_caption
from epochwatt.figures.roofline import look
from epochwatt.tables import read_table
from epochwatt.text import PROVENANCES

TITLE = "Energy saved by tuning the mode, and what it costs in time"
FIELDS = ("simulated", "public")  # a field each
WIDTH_IN, HEIGHT_IN = 7.0, 3.9
PAPER_PCT = 15.0  # Pagoda, abstract: up to 15 % less energy of inference
LEAST = "least_energy"
DASHES = {"train": "-", "infer": "--"}
SLOWER_PCT = (0, 2, 5, 10, 20, 50, 100, 200)  # labelled; from LINEAR_PCT on logarithmic
LINEAR_PCT = 5.0
AXES = {"simulated": "slower than MAXN (%)", "public": "slower than MAXN, else the fastest (%)"}
CAPTION = """Each line is one workload: the modes of least energy that are at most 0, 2, 5 and 10 %
slower than MAXN, and the mode of least energy of all at its end (circles and solid lines: training,
triangles and dashed lines: inference). A line is level up to the next of these modes; modes in
between may save more. Chosen by what was observed in every mode, with nothing predicted. Dotted:
the 15 % that Pagoda's abstract names for inference at little cost in latency. Simulated: an AGX
Orin in Pagoda's 441 modes; pictures come through the loader, which some modes wait for. Measured by
others: a Jetson TX1 and TX2 (Translucence; a table without MAXN is held against its fastest mode),
and the GPU rail alone of a TX2 at 13 GPU clocks (Energy Time Fairness, SEC 2023)."""


def draw_tuning(table: str, style_file: str, stem: str) -> None:
    """Draw results/pagoda/tuning.csv: SVG, PNG, CSV, caption and interactive spec at `stem`."""
    rows = [row for _, row in read_table(Path(table)) if row["aim"].startswith(LEAST)]
    settings = {"title": TITLE, "width_in": WIDTH_IN, "height_in": HEIGHT_IN}
    drawn: list[Cells] = []
    with style.panel(style_file, settings, "left: simulated; right: measured by others") as opened:
        figure, axes = opened
        places = style.side_by_side(figure, axes, len(FIELDS))
        for place, origin in zip(places, FIELDS, strict=True):
            drawn += _field(place, [r for r in rows if r["provenance"] == origin], origin)
        paper = Line2D(
            [], [], color=look.PEAK, linestyle=":", label="Pagoda, inference: up to 15 %"
        )
        grey: dict[str, Any] = {"color": "#555555", "markersize": 4, "linewidth": 1}
        tasks = [
            Line2D([], [], marker=look.MARKS[task], ls=DASHES[task], label=word, **grey)
            for task, word in look.TASKS.items()
        ]
        top = max((row["saved_pct"] for row in drawn), key=float, default=PAPER_PCT)
        for place in places:
            place.set_ylim(-2, 1.05 * float(top) + 2)
        style.legend(figure, [*tasks, paper])
        style.save(figure, stem, drawn)
    write_caption(stem, TITLE, CAPTION, "simulated boards, and boards that others measured")
    look.write_spec(
        stem, TITLE, "simulated; measured by others", "slower_pct", "saved_pct", scale="linear"
    )


def _field(axes: Axes, rows: Sequence[dict[str, str]], origin: str) -> list[Cells]:
    """Draw the choices of one origin; return the rows of the CSV."""
    drawn: list[Cells] = []
    names = {name_of(row): row["task"] for row in rows}
    shades = list(dict.fromkeys(_shade(row) for row in rows))
    for name, task in names.items():
        some = sorted((r for r in rows if name_of(r) == name), key=lambda r: float(r["slower_pct"]))
        colour = look.COLOURS[shades.index(_shade(some[0])) % len(look.COLOURS)]
        x, y = ([float(row[column]) for row in some] for column in ("slower_pct", "saved_pct"))
        axes.plot(
            x, y, look.MARKS[task], linestyle=DASHES[task], drawstyle="steps-post", color=colour,
            markersize=3.5, linewidth=1,
        )  # fmt: skip
        for row in some:
            shown = {"provenance": origin, "field": PROVENANCES[origin], "mode": name}
            kept = ("aim", "against", "cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "power_scope")
            numbers = {column: row[column] for column in ("slower_pct", "saved_pct")}
            drawn.append({**shown, "what": task, **{k: row[k] for k in kept}, **numbers})
    axes.axhline(PAPER_PCT, color=look.PEAK, linestyle=":", linewidth=1)
    axes.set_xscale("symlog", linthresh=LINEAR_PCT)
    axes.set_xlim(-0.5, SLOWER_PCT[-1] * 1.1)
    axes.set_xticks(SLOWER_PCT, [str(pct) for pct in SLOWER_PCT])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES[origin])
    axes.set_ylabel("energy saved (%)")
    axes.grid(visible=True, axis="both")
    handles = [
        Line2D([], [], color=colour, linewidth=3, label=shade)
        for shade, colour in zip(shades, look.COLOURS * len(shades), strict=False)
    ]
    axes.legend(
        handles=handles, ncols=2, fontsize="x-small", title=PROVENANCES[origin],
        title_fontsize="small", alignment="left", loc="lower left", bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2, columnspacing=1.0,
    )  # fmt: skip
    return drawn


def _shade(row: dict[str, str]) -> str:
    """Return what lines of one colour share: a network, trained or not; a table of others."""
    return row["workload"] if row["provenance"] == "simulated" else name_of(row)


def name_of(row: Mapping[str, str]) -> str:
    """Return what tells a line apart: the network with its task, or the others' table."""
    if row["provenance"] == "simulated":
        return f"{row['workload']}, {look.TASKS[row['task']]}"
    scope = ", GPU rail" if row["power_scope"] == "gpu" else ""
    board, size = row["device"].upper(), row["sweep"].rpartition("-")[2]
    amount = f", {int(size):,} pictures" if size.isdigit() else f", {row['workload']}"
    return f"{board}{amount}{scope}"
