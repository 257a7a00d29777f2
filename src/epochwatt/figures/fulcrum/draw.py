"""All figures of the study of schedules."""

from collections.abc import Iterable
from pathlib import Path

from epochwatt.figures.fulcrum.latency import draw_latency
from epochwatt.figures.fulcrum.names import PROVENANCES
from epochwatt.figures.fulcrum.power import draw_power
from epochwatt.figures.fulcrum.solvers import draw_solvers

DRAW = {  # figure -> table, and what draws it
    "fulcrum_solvers": ("scores", draw_solvers),
    "fulcrum_power": ("power", draw_power),
    "fulcrum_latency": ("latencies", draw_latency),
}


def draw_schedules(tables: Iterable[str], style_file: str, stems: Iterable[str]) -> None:
    """Draw all figures: SVG, PNG, CSV, caption and interactive form of each."""
    by_name = {Path(table).stem: table for table in tables}
    for stem in stems:
        place = Path(stem)
        table, draw = DRAW[place.name]
        draw(by_name[table], PROVENANCES[place.parent.name], style_file, stem)
