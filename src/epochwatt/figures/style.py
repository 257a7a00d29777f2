"""The one way to open and to save a figure: style file in, SVG + PNG + CSV out, byte-stable."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

from epochwatt.errors import ConfigError

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@contextmanager
def panel(style: str, settings: Mapping[str, Any], note: str) -> Iterator[tuple[Figure, Axes]]:
    """Open a panel in the project's style, with title and corner note; close it afterwards.

    Parameters
    ----------
    style : path of the matplotlib style file
    settings : `title`, `width_in`, `height_in`
    note : corner note: measured or simulated, which device, how many epochs
    """
    with plt.style.context(style):
        size = (settings["width_in"], settings["height_in"])
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.set_title(settings["title"], loc="left")
        figure.supxlabel(note, x=1.0, ha="right", fontsize="x-small", color="#555555")
        try:
            yield figure, axes
        finally:
            plt.close(figure)


def save(figure: Figure, stem: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write `stem`.svg, .png and .csv (the plotted numbers); same input, same bytes."""
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "epochwatt"}):
        figure.savefig(f"{stem}.svg", metadata={"Date": None, "Creator": "epochwatt"})
    figure.savefig(f"{stem}.png", metadata={"Software": "epochwatt"})
    with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def colours(palette: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Return the colours of `keys`; ConfigError lists the ones the palette lacks."""
    missing = [key for key in keys if key not in palette]
    if missing:
        raise ConfigError(
            f"config/plotting.yaml: palette has no colour for {', '.join(missing)}\n"
            "  allowed: any matplotlib colour, such as '#0072B2'"
        )
    return {key: palette[key] for key in keys}
