"""Legends of methods, and of the paper's black marks."""

from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D

from epochwatt.figures.powertrain.looks import PAPER, Look

WHOSE = "black, open: the paper's, on a real board"


def handles(shown: Sequence[Look], has_paper: bool = False) -> list[Line2D]:
    """Return the legend's entries; `has_paper`: the figure has the paper's marks."""
    entries = [
        Line2D([], [], color=look.colour, marker=look.mark, ls=look.line, ms=4, label=look.title)
        for look in shown
    ]
    if has_paper:
        marks: dict[str, Any] = {"marker": "o", "mfc": "white", "ls": "", "ms": 5}
        entries.append(Line2D([], [], color=PAPER, label=WHOSE, **marks))
    return entries
