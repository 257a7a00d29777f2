"""Share words, colours, modes, spec and caption between the figures of rooflines."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from epochwatt import columns
from epochwatt.figures.common import vega
from epochwatt.roofline.fits import FitRow
from epochwatt.text import counted

COLOURS = (  # of modes: told apart with any kind of colour vision, and in grey
    "#332288",
    "#B2182B",
    "#009E73",
    "#E69F00",
    "#111111",
)
DASHES = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (9, 2)))
WIDTHS = (2.2, 1.3)  # of the first line, and of others: those that lie on it leave its edges
WARNING = "#B2182B"
PEAK = "#777777"  # of what a data sheet promises
MARKS = {"train": "o", "infer": "^"}
TASKS = {"train": "training", "infer": "inference"}
HOST = "host"
DEVICES = {
    "orin": "AGX Orin",
    "orin64": "AGX Orin 64 GB",
    "orin.nano": "Orin Nano",
    "orin.nx": "Orin NX",
    "tx2": "Jetson TX2",
    HOST: "this machine",
    "agx": "AGX Xavier",
}
MOST_MODES = 4  # in a field
CLOCKS_NOT_SET = "clocks not set"

Dash = str | tuple[int, tuple[int, ...]]


class Look(NamedTuple):
    """Colour, dash and width of a mode's line."""

    colour: str
    dash: Dash
    width: float


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return label -> look of the modes of a field."""
    return {
        label: Look(COLOURS[n % len(COLOURS)], DASHES[n % len(DASHES)], WIDTHS[min(n, 1)])
        for n, label in enumerate(labels)
    }


def device_title(name: str) -> str:
    """Return a device's name for people."""
    return DEVICES.get(name, name)


def shown_modes(rows: Sequence[FitRow]) -> dict[str, FitRow]:
    """Return label -> mode of a device: a few that say what each clock does.

    All where they are few. Else, where modes have names, some from first to last; or the highest
    mode, and those that differ from it in one part alone, which is at its lowest.
    """
    rows = sorted(rows, key=lambda row: row.flops_per_s)
    if len(rows) <= MOST_MODES:
        return {_label(row, rows): row for row in rows}
    if all(row.instance for row in rows):
        places = np.linspace(0, len(rows) - 1, MOST_MODES - 1).round().astype(int)
        return {rows[k].instance: rows[k] for k in places}
    top = max(rows, key=lambda row: [part or 0.0 for part in row.mode])
    shown = {"highest mode": top}
    for place, part in enumerate(columns.CLOCKS):
        if part == "cores" and top.processor == "gpu":
            continue  # no roof of a GPU hangs on them
        others = [row for row in rows if _differs_in(row, top, place)]
        if others:
            lowest = "fewest cores" if part == "cores" else f"lowest {columns.label(part)}"
            shown[lowest] = min(others, key=lambda row: row.mode[place] or 0.0)
    return shown


def _differs_in(row: FitRow, top: FitRow, place: int) -> bool:
    return [k for k in range(len(columns.CLOCKS)) if row.mode[k] != top.mode[k]] == [place]


def _label(row: FitRow, rows: Sequence[FitRow]) -> str:
    """Return what tells a mode apart from the others: its name, or the parts that differ.

    That of a lone mode says all that is known of it.
    """
    names = {other.instance for other in rows}
    if len(names) == len(rows) and len(rows) > 1:
        return row.instance
    apart = [
        p
        for p in columns.CLOCKS
        if len(rows) == 1 or len({getattr(other, p) for other in rows}) > 1
    ]
    values = {p: value for p in apart if (value := getattr(row, p)) is not None}
    parts = [
        counted(n, "cores")
        if p == "cores"
        else f"{n:g} MHz {columns.label(p).removesuffix(' clock')}"
        for p, n in values.items()
    ]
    unset = len(rows) == 1 and set(values) <= {"cores"}
    return ", ".join([*parts, CLOCKS_NOT_SET] if unset or not parts else parts)


def write_spec(stem: str, title: str, subtitle: str, x: str, y: str, scale: str = "log") -> None:
    """Write `stem`.vl.json, points and lines over the rows of `stem`.csv, which is read again.

    Parameters
    ----------
    x, y : columns; the rows' `field` is a small multiple, `line` a line, the others are marks
    scale : of both axes
    """
    rows = vega.read_rows(stem, (x, y))
    axes = {
        axis: vega.number(
            column,
            columns.axis_title(column),
            scale={"type": scale},
            axis={"format": "~s" if column.startswith("flop") else "~g"},
        )
        for axis, column in (("x", x), ("y", y))
    }
    colour = {"field": "mode", "type": "nominal"}
    shape, tooltip = {"field": "what"}, vega.tooltip(dict.fromkeys(n for row in rows for n in row))
    point = {"type": "point", "filled": True, "size": 45}
    line = vega.layer("line", "isValid(datum.line)", **axes, color=colour, detail={"field": "line"})
    marks = vega.layer(
        point, "!isValid(datum.line)", **axes, color=colour, shape=shape, tooltip=tooltip
    )
    fields = vega.multiples(vega.name("field"), [line, marks], 300, 240, 2, "color", "x", "y")
    body = {"data": {"values": rows}, **fields} if rows else vega.NOTHING
    vega.write(stem, title, subtitle, body)
