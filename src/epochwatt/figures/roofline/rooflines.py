"""Draw rooflines of time and energy over intensity, with the workloads of one origin below them.

A field for each device; a line for each mode that is shown, a mark for each workload in one of
these modes. What a data sheet promises is a dotted line. Origins never share a figure.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from epochwatt.figures.common import style
from epochwatt.figures.common.runs import machines_of
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.frames import write_caption
from epochwatt.figures.roofline import look
from epochwatt.figures.roofline.names import CEILING, add_name, name_ceilings, part_names
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.model import Ceilings, Numbers
from epochwatt.roofline.points import Point, read_points
from epochwatt.tables import read_table
from epochwatt.text import NOT_DRAWN, POWER_SENSORS, PROVENANCES

BEYOND = 5.0  # times: what lines are longer than marks and corners, at both ends
N_POINTS = 60  # of a curve
COLUMNS_OF = ("provenance", "field", "mode", "what", "workload", "batch_size")  # of the CSV
WIDTH_IN, HEIGHT_IN = 7.0, 6.2  # of two rows of fields
COLUMNS = 2
NAMED = 6  # workloads of a field: more are not named
PRECISION = "fp32"

PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
NARROW = 100.0  # times: an axis below it is labelled at 1, 2 and 5
ROOM = 0.25  # of an axis with names: what it gets longer
ROOF_SHARED = "roof: reached while others used the machine"
ROOFS = {"time": "roof: best rates reached", "energy": "roof, fitted"}


class Field(NamedTuple):
    """A device with what is drawn of it."""

    device: str
    modes: dict[str, FitRow]  # label -> fit
    points: dict[str, list[Point]]  # label -> workloads in that mode
    peaks: dict[str, Ceilings]  # label -> ceilings of the data sheet
    title: str  # its device, for people

    @property
    def lone(self) -> FitRow | None:
        """Its roof, where it has one alone."""
        return next(iter(self.modes.values())) if len(self.modes) == 1 else None

    @property
    def is_shared(self) -> bool:
        """Whether others used the machine while its ceilings were measured."""
        return any(row.is_shared for row in self.modes.values())

    @property
    def workloads(self) -> list[Point]:
        """All that is drawn below its lines."""
        return [p for some in self.points.values() for p in some if p.intensity_flop_per_byte]

    @property
    def shares(self) -> list[float]:
        """Share of its lone roof that each workload reaches."""
        lone = self.lone
        return [
            p.flops / p.time_s / float(lone.ceilings.attainable_flops_per_s(p.flops / p.bytes))
            for p in self.workloads
            if lone
        ]

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the highest intensity that its lines are drawn for."""
        at = [float(p.intensity_flop_per_byte or 0.0) for p in self.workloads]
        at += [row.ridge_flop_per_byte for row in self.modes.values()]
        at += [
            row.balance_flop_per_byte for row in self.modes.values() if row.balance_flop_per_byte
        ]
        at += [peak.ridge_flop_per_byte for peak in self.peaks.values()]
        return min(at, default=1.0) / BEYOND, max(at, default=1.0) * BEYOND


def draw(
    fits: str,
    points: str,
    peaks: str,
    style_file: str,
    folder: str,
    origin: str,
    titles: Mapping[str, str],
    records: Sequence[str] = (),
) -> None:
    """Draw `folder`/time_`origin` and energy_`origin`: SVG, PNG, CSV, caption, interactive spec.

    Parameters
    ----------
    fits, points : tables of one origin
    peaks : config/rooflines/peaks.csv
    origin : measured, simulated or public
    records : folders of the epochs that were measured on this machine: they name it
    """
    shown = [replace(p, workload=titles.get(p.workload, p.workload)) for p in read_points(points)]
    fields = fields_of(read_fits(fits), shown, read_peaks(Path(peaks)), machines_of(records))
    _figure(fields, _time, "time", style_file, f"{folder}/time_{origin}", origin)
    powered = [f for f in fields if any(row.energy for row in f.modes.values())]
    _figure(powered, _energy, "energy", style_file, f"{folder}/energy_{origin}", origin)


Peaks = dict[tuple[str, str], Ceilings]


def read_peaks(path: Path) -> Peaks:
    """Return device and mode -> peaks of its data sheet. Raises ConfigError."""
    return {
        (row["device"], row["instance"]): Ceilings(
            float(row["flops_per_s"]), float(row["bytes_per_s"])
        )
        for _, row in read_table(path)
    }


def fields_of(
    fits: Sequence[FitRow], points: Sequence[Point], peaks: Peaks, machines: Sequence[str] = ()
) -> list[Field]:
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
        title = look.device_title(device)
        if device == look.HOST:
            processors = " and ".join(sorted({p.processor.upper() for p in here}))
            title = " ".join([f"{title}'s {processors}", *(f"({one})" for one in machines)])
        fields.append(Field(device, modes, placed, of_device, title))
    return fields


Looks = Mapping[str, look.Look]
Draw = Callable[[Axes, Field, Looks], list[Cells]]


def _figure(
    fields: Sequence[Field], draw_field: Draw, what: str, style_file: str, stem: str, origin: str
) -> None:
    """Draw a field for each device, and write numbers, caption and spec."""
    n_roofs = sum(len(field.modes) for field in fields)
    title = title_of(what, origin, n_roofs or 1)
    settings = {"title": title, "width_in": WIDTH_IN, "height_in": HEIGHT_IN}
    x, y = "intensity_flop_per_byte", "flop_per_s" if what == "time" else "flop_per_j"
    points = [point for field in fields for point in field.workloads]
    is_shared = any(field.is_shared for field in fields)
    is_told = what == "time" and n_roofs == 1 and not is_shared
    shares = [share for field in fields for share in field.shares] if is_told else []
    with style.panel(style_file, settings, note_of(origin, points, shares)) as (figure, axes):
        rows: list[Cells] = []
        if not fields:
            style.notice(figure, f"{title}: not drawn. {NO_POWER}.")
        else:
            places = style.facets(figure, axes, len(fields), COLUMNS)
            for place, field in zip(places, fields, strict=True):
                looks = look.looks(field.points)
                place.set(xscale="log", yscale="log")  # first: the ends of an axis follow from it
                rows += draw_field(place, field, looks)
                _dress(place, field, looks, what, WIDTH_IN / min(len(fields), COLUMNS))
            style.legend(figure, _handles(fields, what))
            style.warn(figure, [SHARED] if is_shared else [], look.WARNING)
            part_names(figure)
        style.save(figure, stem, rows, [*COLUMNS_OF, x, y, "line"])
    tasks, has_peaks = {p.task for p in points}, any(field.peaks for field in fields)
    text = caption_of(what, origin, tasks, n_roofs, has_peaks=has_peaks, is_shared=is_shared)
    write_caption(stem, title, text, origin)
    look.write_spec(stem, title, PROVENANCES[origin], x, y)


def _dress(axes: Axes, field: Field, looks: Looks, what: str, width_in: float) -> None:
    """Give a field its axes, and above it its device and modes."""
    if any(text.get_gid() != CEILING for text in axes.texts):  # names below what they are of
        low, high = axes.get_ylim()
        axes.set_ylim(low / (high / low) ** ROOM, high)
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if high / low < NARROW:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(EngFormatter() if axis is axes.yaxis else PLAIN)
            axis.set_minor_formatter(NullFormatter())
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
        title=field.title + (", by GPU clock" if by_clock else ""),
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
    shared = any(field.is_shared for field in fields)
    roof = Line2D([], [], color="#555555", label=ROOF_SHARED if shared else ROOFS[what])
    handles += [roof] if any(field.modes for field in fields) else []
    if what == "time":
        peak = Line2D([], [], color=look.PEAK, linestyle=":", label="peak of the data sheet")
        return [*handles, peak] if any(field.peaks for field in fields) else handles
    ridge = Line2D([], [], marker="o", mfc="white", label="ridge", **grey)
    balance = Line2D([], [], marker="D", label="energy balance", **grey)
    return [*handles, ridge, balance]


def _time(axes: Axes, field: Field, looks: Looks) -> list[Cells]:
    """Draw a device's roofs and what its workloads reach; return the rows of the CSV."""
    rows = []
    lines = [(label, "roof", row.ceilings) for label, row in field.modes.items()]
    lines += [(label, "data sheet", peak) for label, peak in field.peaks.items()]
    for label, what, ceilings in lines:  # the first behind: it is the widest
        low, high = field.ends
        x = np.array([low, ceilings.ridge_flop_per_byte, high])  # straight between these
        rates = ceilings.attainable_flops_per_s(x)
        colour, dash, width = looks.get(label, look.Look(look.PEAK, ":", look.WIDTHS[-1]))
        if what != "roof":
            dash, width = ":", look.WIDTHS[-1]
        axes.plot(x, rates, color=colour, linestyle=dash, linewidth=width)
        rows += _line(field, label, what, "flop_per_s", x, rates)
    marks = [(p, label, p.flops / p.time_s) for label, some in field.points.items() for p in some]
    rows += _marks(axes, field, marks, looks, "flop_per_s")
    if field.lone:  # last: its axis holds all that is drawn
        name_ceilings(axes, field.lone.ceilings, field.ends)
    return rows


def _energy(axes: Axes, field: Field, looks: Looks) -> list[Cells]:
    """Draw a device's operations per joule, ridges and balances; return the rows of the CSV."""
    rows = []
    for label, row in field.modes.items():  # the first behind: it is the widest
        roofline = row.energy
        if roofline is None:
            continue
        colour, dash, width = looks[label]
        curve = np.geomspace(*field.ends, N_POINTS)
        x = np.sort(np.append(curve, row.ridge_flop_per_byte))  # where it has its corner
        rates = 1 / roofline.j_per_flop(x)
        axes.plot(x, rates, color=colour, linestyle=dash, linewidth=width)
        rows += _line(field, label, "roof", "flop_per_j", x, rates)
        ridge, balance = row.ridge_flop_per_byte, roofline.balance_flop_per_byte
        for at, what, mark, fill in (
            (ridge, "ridge", "o", "white"),
            (balance, "balance", "D", colour),
        ):
            if at <= 0:
                continue  # memory costs nothing: no intensity balances it
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
) -> list[Cells]:
    """Draw workloads at their intensity; if they are few, their names stand below them."""
    rows = []
    drawn = [(p, label, rate) for p, label, rate in marks if p.intensity_flop_per_byte and rate > 0]
    several = len({point.batch_size for point, _, _ in drawn}) > 1
    places: dict[str, list[tuple[float, float]]] = {}
    for point, label, rate in drawn:
        x = point.intensity_flop_per_byte or 0.0
        mark, colour = look.MARKS[point.task], looks[label].colour
        axes.plot([x], [rate], mark, color=colour, markersize=3.2, alpha=0.75, zorder=3)
        name = f"{point.workload}, batch {point.batch_size}" if several else point.workload
        places.setdefault(name, []).append((x, rate))
        rows.append(_row(field, label, point.task, x, rate, column, point))
    if len(places) <= NAMED:
        for name, some in places.items():
            add_name(axes, name, some, are_runs=field.lone is not None)
    return rows


def _line(field: Field, label: str, what: str, column: str, x: Numbers, y: Numbers) -> list[Cells]:
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
) -> Cells:
    first = point or next(iter(field.modes.values()), None)
    return {
        "provenance": first.provenance if first else "",
        "field": field.title,
        "mode": label,
        "what": what,
        "workload": point.workload if point else "",
        "batch_size": point.batch_size if point else "",
        "intensity_flop_per_byte": f"{intensity:.5g}",
        column: f"{value:.5g}",
        "line": "",
    }


# -- what the figures say of themselves -----------------------------------------------------------

HEADS = {  # begin the titles
    "measured": "measured on this machine",
    "simulated": "simulated",
    "public": "measured by others",
}
COUNTED = "fp32; operations and bytes of all kernels counted, each array read or written once"
NO_POWER = f"Power was not measured in any mode. {POWER_SENSORS}"
SHARED = (
    "Others used the machine while its ceilings were measured (machine_shared): it can do more "
    "than these lines say. On a quiet machine: epochwatt discard --shared, then start again."
)
TIME_CAPTION = """Lines: {best} the rates that the best micro-kernels reached; the
slope is memory, the flat part arithmetic, the corner the ridge. {marks}. Operations and bytes are
counted, each array read or written once; launches and waits keep workloads away from the roof."""
PEAKS = """Dotted, in the colour of its mode or grey: the peak that the data sheet promises at the
mode's clocks, a theory that nothing here reached."""
OF_PUBLIC = """Orin Nano and NX: STREAM and matrix products in fp32, with dot products, sums and
matrix-vector products below them; AGX Orin 64 GB: 35 networks in fp32 (branes-ai/graphs), whose
clocks were left to DVFS, so it has no fitted roof; TX2: kernels of ResNet-18 and ResNet-50 (Energy
Time Fairness, SEC 2023), whose roof is what the best of them reach."""
ENERGY = """Operations per joule at the least time, over intensity: work, traffic and constant power
as fitted to the energies of kernels (Choi et al., 2013). {marks}. Open circles: the ridge, from
which on arithmetic limits time; diamonds: the energy balance, from which on arithmetic costs
more than memory. Where the diamond lies left of the circle, what is compute-bound in time is so in
energy."""
ENERGY_OF = {
    "public": """Power is that of the TX2's GPU rail alone. Held-out kernels are off by 34 %
(median): the line is a trend, no prediction. Short kernels lie below, since launches keep the GPU
waiting.""",
    "simulated": """A simulated GPU draws power while it is busy, whatever it does: its operations
cost next to nothing, its traffic and its time do.""",
}
TASK_WORDS = {"train": "Filled circles: training", "infer": "triangles: inference"}


def title_of(what: str, origin: str, n_roofs: int) -> str:
    """Return the title of a figure."""
    plural = "" if n_roofs == 1 else "s"
    return style.titled(f"{what.capitalize()} roofline{plural}", HEADS[origin])


def note_of(origin: str, points: Sequence[Point], shares: Sequence[float]) -> str:
    """Return the corner note.

    Parameters
    ----------
    points : that are drawn
    shares : of the roof, that they reach, where there is one roof
    """
    text = f"{PROVENANCES[origin]}; {COUNTED}"
    sizes = {point.batch_size for point in points}
    if len(sizes) == 1 and (size := sizes.pop()):
        text += f"; mini-batch size {size}"
    if shares:
        low, high = (round(100 * end) for end in (min(shares), max(shares)))
        reached = f"{low} to {high} %" if low < high else f"{low} %"
        text += f"; workloads reach {reached} of the roof"
    return text


def caption_of(
    what: str,
    origin: str,
    tasks: Collection[str],
    n_roofs: int,
    *,
    has_peaks: bool,
    is_shared: bool = False,
) -> str:
    """Return what the caption says: of nothing that is not drawn.

    Parameters
    ----------
    tasks : of the workloads that are drawn; empty: nothing is drawn
    n_roofs, has_peaks : lines that are drawn
    is_shared : others used the machine while its ceilings were measured
    """
    if not tasks:
        return f"{NOT_DRAWN}: {NO_POWER[0].lower()}{NO_POWER[1:]}."
    marks = "; ".join(words for task, words in TASK_WORDS.items() if task in tasks)
    marks = marks[0].upper() + marks[1:]
    parts = [SHARED] if is_shared else []
    if what == "energy":
        return " ".join([*parts, ENERGY.format(marks=marks), ENERGY_OF.get(origin, "")])
    mode = "the mode" if n_roofs == 1 else "each mode"
    best = "" if is_shared else f"what {mode} could do at best,"
    text = TIME_CAPTION.format(best=best, marks=marks)
    parts.append(text)
    if has_peaks:
        parts.append(PEAKS)
    parts.append("In fp32.")
    if origin == "public":
        parts.append(OF_PUBLIC)
    return " ".join(parts)
