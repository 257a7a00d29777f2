"""Rooflines of time and of energy over intensity, with the workloads of one origin below them.

A field for each device; a line for each mode that is shown, a mark for each workload in one of
these modes. What a data sheet promises is a dotted line. Origins never share a figure.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epochwatt.figures.common import style
from epochwatt.figures.roofline import look
from epochwatt.figures.roofline.names import add_name, part_names
from epochwatt.published.tables import read_table
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.model import Ceilings, EnergyRoofline, Numbers
from epochwatt.roofline.points import Point, read_points

INTENSITIES = np.logspace(-1.5, 3.5, 200)
WIDTH_IN, HEIGHT_IN = 7.0, 6.2  # of two rows of fields
COLUMNS = 2
NAMED = 6  # workloads of a field: more are not named
PRECISION = "fp32"

ROOM = 0.25  # of an axis with names: what it gets longer
ROOFS = {"time": "roof: best rates reached", "energy": "roof, fitted"}

TIME_CAPTION = """What each mode could do at best (lines: the rates that the best micro-kernels
reached; the slope is memory, the flat part arithmetic, the corner the ridge) and what workloads do
(circles: training, triangles: inference). Operations and bytes are counted, each array read or
written once; launches and waits keep workloads away from the roof. Dotted, in the colour of
its mode or grey: the peak that the data sheet promises at the mode's clocks, a theory that nothing
here reached. In fp32."""
TIME_PUBLIC = """Orin Nano and NX: STREAM and matrix products in fp32, with dot products, sums and
matrix-vector products below them; AGX Orin 64 GB: 35 networks in fp32 (branes-ai/graphs), whose
clocks were left to DVFS, so it has no fitted roof; TX2: kernels of ResNet-18 and ResNet-50 (Energy
Time Fairness, SEC 2023), whose roof is what the best of them reach."""
ENERGY_CAPTION = """Operations per joule at the least time, over intensity: work, traffic and
constant power as fitted to the energies of kernels (Choi et al., 2013). Open circles: the ridge,
from which on arithmetic limits time; diamonds: the energy balance, from which on arithmetic costs
more than memory. Where the diamond lies left of the circle, what is compute-bound in time is so in
energy."""
ENERGY_PUBLIC = """Power is that of the TX2's GPU rail alone. Held-out kernels are off by 34 %
(median): the line is a trend, no prediction. Short kernels lie below, since launches keep the GPU
waiting."""
ENERGY_SIMULATED = """A simulated GPU draws power while it is busy, whatever it does: its operations
cost next to nothing, its traffic and its time do."""


class Field(NamedTuple):
    """A device with what is drawn of it.

    Attributes
    ----------
    modes : label -> fit
    points : label -> workloads in that mode
    peaks : label -> ceilings of the data sheet
    """

    device: str
    modes: dict[str, FitRow]
    points: dict[str, list[Point]]
    peaks: dict[str, Ceilings]


def draw(fits: str, points: str, peaks: str, style_file: str, folder: str, origin: str) -> None:
    """Draw `folder`/time_`origin` and energy_`origin`: SVG, PNG, CSV, caption, interactive spec.

    Parameters
    ----------
    fits, points : tables of one origin
    peaks : config/rooflines/peaks.csv
    style_file : config/paper.mplstyle
    folder : results/figures/roofline
    origin : measured, simulated or public
    """
    fields = fields_of(read_fits(fits), read_points(points), read_peaks(Path(peaks)))
    public = origin == "public"
    text = f"{TIME_CAPTION} {TIME_PUBLIC}" if public else TIME_CAPTION
    _figure(fields, _time, "time", text, style_file, f"{folder}/time_{origin}", origin)
    powered = [f for f in fields if any(row.costs for row in f.modes.values())]
    more = {"public": ENERGY_PUBLIC, "simulated": ENERGY_SIMULATED}.get(origin, "")
    text = f"{ENERGY_CAPTION} {more}"
    _figure(powered, _energy, "energy", text, style_file, f"{folder}/energy_{origin}", origin)


Peaks = dict[tuple[str, str], Ceilings]


def read_peaks(path: Path) -> Peaks:
    """Return device and mode -> peaks of its data sheet. Raises ConfigError."""
    return {
        (row["device"], row["instance"]): Ceilings(
            float(row["flops_per_s"]), float(row["bytes_per_s"])
        )
        for _, row in read_table(path)
    }


def fields_of(fits: Sequence[FitRow], points: Sequence[Point], peaks: Peaks) -> list[Field]:
    """Return a field of each device of which there are points."""
    fields = []
    for device in dict.fromkeys(point.device for point in points):
        rows = [r for r in fits if r.device == device and r.precision == PRECISION]
        modes = look.shown_modes(rows)
        here = [p for p in points if p.device == device and p.precision == PRECISION]
        placed = {
            label: [p for p in here if (p.mode, p.instance) == (row.mode, row.instance)]
            for label, row in modes.items()
        }
        if not modes:
            placed = {name: [] for name in dict.fromkeys(p.instance for p in here)}
            for point in here:
                placed[point.instance].append(point)
        of_device = {mode: peak for (name, mode), peak in peaks.items() if name == device}
        fields.append(Field(device, modes, placed, of_device))
    return fields


Looks = Mapping[str, look.Look]
Draw = Callable[[Axes, Field, Looks], list[dict[str, Any]]]


def _figure(
    fields: Sequence[Field],
    draw_field: Draw,
    what: str,
    text: str,
    style_file: str,
    stem: str,
    origin: str,
) -> None:
    """Draw a field for each device, and write numbers, caption and spec."""
    title = f"{what.capitalize()} rooflines, {look.ORIGINS[origin]}"
    settings = {"title": title, "width_in": WIDTH_IN, "height_in": HEIGHT_IN}
    x, y = "intensity_flop_per_byte", "flop_per_s" if what == "time" else "flop_per_j"
    note = f"{look.ORIGINS[origin]}; fp32, operations and bytes as counted"
    with style.panel(style_file, settings, note) as (figure, axes):
        rows: list[dict[str, Any]] = []
        if not fields:
            style.notice(figure, f"{title}: not drawn. Power was not measured in any mode.")
        else:
            places = style.facets(figure, axes, len(fields), COLUMNS)
            for place, field in zip(places, fields, strict=True):
                looks = look.looks(field.points)
                rows += draw_field(place, field, looks)
                _dress(place, field, looks, what, WIDTH_IN / min(len(fields), COLUMNS))
            style.legend(figure, _handles(fields, what))
            part_names(figure)
        style.save(figure, stem, rows)
    look.write_caption(stem, title, text, origin)
    look.write_spec(stem, title, look.ORIGINS[origin], x, y)


def _dress(axes: Axes, field: Field, looks: Looks, what: str, width_in: float) -> None:
    """Give a field its axes, and above it its device and modes.

    Parameters
    ----------
    width_in : of the field, with the labels of its axis
    """
    axes.set_xscale("log")
    axes.set_yscale("log")
    if axes.texts:  # names below what they are of
        low, high = axes.get_ylim()
        axes.set_ylim(low / (high / low) ** ROOM, high)
    axes.grid(visible=True, which="major", axis="both")
    axes.set_xlabel("intensity (FLOP/B)")
    axes.set_ylabel("FLOP/s" if what == "time" else "FLOP/J")
    handles = [
        Line2D([], [], color=one.colour, label=label, **_strokes(one, bool(field.modes)))
        for label, one in looks.items()
    ]
    widths = [style.ENTRY_IN + style.LETTER_IN * len(label) for label in looks]
    by_clock = all(label.endswith("MHz") for label in looks)
    axes.legend(
        handles=handles, ncols=style.n_columns(widths, width_in), fontsize="x-small",
        title=look.device_title(field.device) + (", by GPU clock" if by_clock else ""),
        title_fontsize="small", alignment="left", loc="lower left", bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2, handlelength=2.4, columnspacing=1.0,
    )  # fmt: skip


def _strokes(one: look.Look, has_roof: bool) -> dict[str, Any]:
    """Return how a mode's entry in the legend is drawn: as its line, or as its marks."""
    if has_roof:
        return {"linestyle": one.dash, "linewidth": one.width}
    return {"linestyle": "", "marker": "s", "markersize": 4}


def _handles(fields: Sequence[Field], what: str) -> list[Line2D]:
    """Return the legend of what all fields share."""
    tasks = {point.task for field in fields for some in field.points.values() for point in some}
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "", "markersize": 4}
    handles = [
        Line2D([], [], marker=look.MARKS[task], label=word, **grey)
        for task, word in look.TASKS.items()
        if task in tasks
    ]
    roof = Line2D([], [], color="#555555", label=ROOFS[what])
    handles += [roof] if any(field.modes for field in fields) else []
    if what == "time":
        peak = Line2D([], [], color=look.PEAK, linestyle=":", label="peak of the data sheet")
        return [*handles, peak] if any(field.peaks for field in fields) else handles
    ridge = Line2D([], [], marker="o", mfc="white", label="ridge", **grey)
    balance = Line2D([], [], marker="D", label="energy balance", **grey)
    return [*handles, ridge, balance]


def _time(axes: Axes, field: Field, looks: Looks) -> list[dict[str, Any]]:
    """Draw a device's roofs and what its workloads reach; return the rows of the CSV."""
    rows = []
    lines = [(label, "roof", row.ceilings) for label, row in field.modes.items()]
    lines += [(label, "data sheet", peak) for label, peak in field.peaks.items()]
    for label, what, ceilings in lines:  # the first behind: it is the widest
        rates = ceilings.attainable_flops_per_s(INTENSITIES)
        colour, dash, width = looks.get(label, look.Look(look.PEAK, ":", look.WIDTHS[-1]))
        if what != "roof":
            dash, width = ":", look.WIDTHS[-1]
        axes.plot(INTENSITIES, rates, color=colour, linestyle=dash, linewidth=width)
        rows += _line(field, label, what, "flop_per_s", INTENSITIES[::20], rates[::20])
    marks = [(p, label, p.flops / p.time_s) for label, some in field.points.items() for p in some]
    return rows + _marks(axes, field, marks, looks, "flop_per_s")


def _energy(axes: Axes, field: Field, looks: Looks) -> list[dict[str, Any]]:
    """Draw a device's operations per joule, ridges and balances; return the rows of the CSV."""
    rows = []
    for label, row in field.modes.items():  # the first behind: it is the widest
        if row.costs is None:
            continue
        colour, dash, width = looks[label]
        roofline = EnergyRoofline(row.ceilings, row.costs)
        rates = 1 / roofline.j_per_flop(INTENSITIES)
        axes.plot(INTENSITIES, rates, color=colour, linestyle=dash, linewidth=width)
        rows += _line(field, label, "roof", "flop_per_j", INTENSITIES[::20], rates[::20])
        ridge, balance = row.ridge_flop_per_byte, roofline.balance_flop_per_byte
        for at, what, mark, fill in (
            (ridge, "ridge", "o", "white"),
            (balance, "balance", "D", colour),
        ):
            rate = float(1 / roofline.j_per_flop(at))
            axes.plot([at], [rate], mark, color=colour, mfc=fill, markersize=5, zorder=4)
            rows.append(_row(field, label, what, at, rate, "flop_per_j"))
    marks = [
        (p, label, p.flops / (p.power_w * p.time_s))
        for label, some in field.points.items()
        for p in some
        if p.power_w is not None
    ]
    return rows + _marks(axes, field, marks, looks, "flop_per_j")


def _marks(
    axes: Axes,
    field: Field,
    marks: Sequence[tuple[Point, str, float]],
    looks: Looks,
    column: str,
) -> list[dict[str, Any]]:
    """Draw workloads at their intensity; if they are few, their names stand below them."""
    rows = []
    drawn = [(p, label, rate) for p, label, rate in marks if p.intensity_flop_per_byte and rate > 0]
    places: dict[str, list[tuple[float, float]]] = {}
    for point, label, rate in drawn:
        x = point.intensity_flop_per_byte or 0.0
        mark, colour = look.MARKS[point.task], looks[label].colour
        axes.plot([x], [rate], mark, color=colour, markersize=3.2, alpha=0.75, zorder=3)
        places.setdefault(point.workload, []).append((x, rate))
        rows.append(_row(field, label, point.task, x, rate, column, point))
    if len(places) <= NAMED:
        for name, some in places.items():
            add_name(axes, name, some)
    return rows


def _line(
    field: Field, label: str, what: str, column: str, x: Numbers, y: Numbers
) -> list[dict[str, Any]]:
    name = f"{field.device} {label} {what}"
    return [
        {**_row(field, label, what, a, b, column), "line": name} for a, b in zip(x, y, strict=True)
    ]


def _row(
    field: Field,
    label: str,
    what: str,
    intensity: float,
    value: float,
    column: str,
    point: Point | None = None,
) -> dict[str, Any]:
    first = point or next(iter(field.modes.values()), None)
    return {
        "provenance": first.provenance if first else "",
        "field": look.device_title(field.device),
        "mode": label,
        "what": what,
        "workload": point.workload if point else "",
        "batch_size": point.batch_size if point else "",
        "intensity_flop_per_byte": f"{intensity:.5g}",
        column: f"{value:.5g}",
        "line": "",
    }
