"""Draw rooflines of time and energy over intensity, with the workloads of one origin below them.

A field for each device; a line for each mode that is shown, a mark for each workload in one of
these modes. What a data sheet promises is a dotted line. Origins never share a figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from epochwatt import columns
from epochwatt.figures.common import style, vega
from epochwatt.figures.common.names import Names, Place
from epochwatt.figures.common.published import halo
from epochwatt.figures.common.runs import machines_of
from epochwatt.figures.common.vega import Cells, Spec
from epochwatt.figures.frames import Words, caption, study_figure
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.model import Ceilings
from epochwatt.roofline.points import Point, read_points
from epochwatt.tables import read_table
from epochwatt.text import POWER_SENSORS_HERE, PROVENANCES, counted

X = "intensity_flop_per_byte"
RATES = {"time": "flop_per_s", "energy": "flop_per_j"}  # columns
BEYOND = 5.0  # times: what lines are longer than marks and corners, at both ends
N_POINTS = 60  # of a curve
COLUMNS_OF = ("provenance", "field", "mode", "what", "workload", "batch_size", X)  # of the CSV
WIDTH_IN, HEIGHT_IN = 7.0, 6.2  # of two rows of fields
COLUMNS = 2
NAMED = 6  # workloads of a field: more are not named
PRECISION = "fp32"
COLOURS = ("#332288", "#B2182B", "#009E73", "#E69F00", "#111111")  # told apart by anybody, in grey
DASHES = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (9, 2)))
WIDTHS = (2.2, 1.3)  # of the first line, and of others: those that lie on it leave its edges
GREY, WARNING = "#555555", "#B2182B"
PEAK = "#777777"  # of what a data sheet promises, and of lines to names
ALIKE = 1.5  # times: intensities of one workload that share its name
SIZE_PT = 7
CEILING, ABOVE = "ceiling", 1.4  # gid of the texts at a roof; times: the room above it
JOIN: style.Look = {"color": PEAK, "linewidth": 0.7, "zorder": 2.8}
format_rate = EngFormatter(places=0)
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
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
NARROW = 100.0  # times: an axis below it is labelled at 1, 2 and 5
ROOM = 0.25  # of an axis with names: what it gets longer

# -- what the figures say of themselves

HEADS = {"measured": "measured on this machine", "simulated": "simulated"}  # begin the titles
HEADS |= {"public": "measured by others"}
COUNTED = "fp32; bytes: each array read or written once"
NO_POWER = f"Power was not measured in any mode. {POWER_SENSORS_HERE}"
SHARED = (
    "Others used the machine while its ceilings were measured (machine_shared): it can do more."
)
QUIET = "On a quiet machine: epochwatt discard --shared, then start again."
ROOFS = {"time": "roof: best rates reached", "energy": "fitted trend of each mode, no bound"}
ROOF_SHARED = "roof: reached while others used the machine"


class Look(NamedTuple):
    """Colour, dash and width of a mode's line."""

    colour: str
    dash: str | tuple[int, tuple[int, ...]]
    width: float


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return label -> look of the modes of a field."""
    return {
        label: Look(COLOURS[n % len(COLOURS)], DASHES[n % len(DASHES)], WIDTHS[min(n, 1)])
        for n, label in enumerate(labels)
    }


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
        return [p for of in self.points.values() for p in of if p.intensity_flop_per_byte]

    @property
    def shares(self) -> list[float]:
        """Share of its lone roof that each workload reaches."""
        if self.lone is None:
            return []
        roof = self.lone.ceilings.attainable_flops_per_s
        return [p.flops / p.time_s / float(roof(p.flops / p.bytes)) for p in self.workloads]

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the highest intensity that its lines are drawn for."""
        at = [float(p.intensity_flop_per_byte or 0.0) for p in self.workloads]
        at += [row.ridge_flop_per_byte for row in self.modes.values()]
        at += [row.balance_flop_per_byte or 0.0 for row in self.modes.values()]
        at += [peak.ridge_flop_per_byte for peak in self.peaks.values()]
        at = [intensity for intensity in at if intensity]
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

    Fits and points are tables of one origin: measured, simulated or public; `peaks` what data
    sheets promise; `records` folders of epochs that were measured here, which name this machine.
    """
    shown = [replace(p, workload=titles.get(p.workload, p.workload)) for p in read_points(points)]
    of_devices: dict[str, dict[str, Ceilings]] = {}
    for _, row in read_table(Path(peaks)):
        peak = Ceilings(float(row["flops_per_s"]), float(row["bytes_per_s"]))
        of_devices.setdefault(row["device"], {})[row["instance"]] = peak
    machines = machines_of(records)
    fitted = [fit for fit in read_fits(fits) if fit.precision == PRECISION]
    fields = [
        _field(
            device,
            [fit for fit in fitted if fit.device == device],
            [p for p in shown if p.device == device and p.precision == PRECISION],
            of_devices.get(device, {}),
            machines,
        )
        for device in dict.fromkeys(point.device for point in shown)
    ]
    _figure(fields, "time", style_file, f"{folder}/time_{origin}", origin)
    powered = [f for f in fields if any(row.energy for row in f.modes.values())]
    _figure(powered, "energy", style_file, f"{folder}/energy_{origin}", origin)


def _field(
    device: str,
    fits: Sequence[FitRow],
    points: Sequence[Point],
    peaks: dict[str, Ceilings],
    machines: Sequence[str],
) -> Field:
    modes = shown_modes(fits)
    placed = {
        label: [p for p in points if (p.mode, p.instance) == (row.mode, row.instance)]
        for label, row in modes.items()
    }
    if not modes:
        for point in points:
            placed.setdefault(point.instance, []).append(point)
    title = DEVICES.get(device, device)
    if device == HOST:
        processors = " and ".join(sorted({p.processor.upper() for p in points}))
        title = " ".join([f"{title}'s {processors}", *(f"({machine})" for machine in machines)])
    return Field(device, modes, placed, peaks, title)


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
    for n, part in enumerate(columns.CLOCKS):
        if part == "cores" and top.processor == "gpu":
            continue  # no roof of a GPU hangs on them
        others = [
            row
            for row in rows
            if [k for k, (a, b) in enumerate(zip(row.mode, top.mode, strict=True)) if a != b] == [n]
        ]
        if others:
            lowest = "fewest cores" if part == "cores" else f"lowest {columns.label(part)}"
            shown[lowest] = min(others, key=lambda row: row.mode[n] or 0.0)
    return shown


def _label(row: FitRow, rows: Sequence[FitRow]) -> str:
    """Return what tells a mode apart from the others: its name, or the parts that differ.

    That of a lone mode says all that is known of it.
    """
    is_lone = len(rows) == 1
    if len({other.instance for other in rows}) == len(rows) and not is_lone:
        return row.instance
    words = []
    for part, value in zip(columns.CLOCKS, row.mode, strict=True):
        differs = is_lone or len({getattr(other, part) for other in rows}) > 1
        if value is None or not differs:
            continue
        name = columns.label(part).removesuffix(" clock")
        words.append(counted(value, "cores") if part == "cores" else f"{value:g} MHz {name}")
    has_clock = any("MHz" in word for word in words)
    if not words or (is_lone and not has_clock):
        words.append(CLOCKS_NOT_SET)
    return ", ".join(words)


def _figure(fields: Sequence[Field], what: str, style_file: str, stem: str, origin: str) -> None:
    """Draw a field for each device, and write numbers, caption and spec."""
    points = [point for field in fields for point in field.workloads]
    n_roofs = sum(len(field.modes) for field in fields)
    is_shared = any(field.is_shared for field in fields)
    shares = [share for field in fields for share in field.shares]
    reached = shares if what == "time" and n_roofs == 1 and not is_shared else []
    title = f"{what.capitalize()} roofline{'' if n_roofs <= 1 else 's'}"
    words = Words(
        title,
        HEADS[origin],
        _note(origin, points, reached),
        _caption(what, origin, fields, points, n_roofs),
        origin,
    )
    rows = list[Cells]()
    head = [*COLUMNS_OF, RATES[what], "line"]
    with study_figure(
        stem, style_file, words, (WIDTH_IN, HEIGHT_IN), rows, lambda: _spec(rows, what), head
    ) as (figure, axes):
        if not fields:
            style.notice(figure, f"{title}: not drawn. {NO_POWER}.")
            return
        places = style.facets(figure, axes, len(fields), COLUMNS)
        for place, field in zip(places, fields, strict=True):
            of_modes = looks(field.points)
            place.set(xscale="log", yscale="log")  # first: the ends of an axis follow from it
            rows += _lines(place, field, of_modes, what) + _marks(place, field, of_modes, what)
            if what == "time" and field.lone:  # last: its axis holds all that is drawn
                name_ceilings(place, field.lone.ceilings, field.ends)
            _dress(place, field, of_modes, what, WIDTH_IN / min(len(fields), COLUMNS))
        style.legend(figure, _handles(fields, what))
        style.set_notes(figure, words.note, SHARED if is_shared else "", WARNING)
        style.lay_out(figure)
        for place, field in zip(places, fields, strict=True):
            _write_names(place, field, what)


def _note(origin: str, points: Sequence[Point], shares: Sequence[float]) -> str:
    """Return the corner note; `shares`: of the one roof, that the points reach."""
    text = f"{PROVENANCES[origin]}; {COUNTED}"
    sizes = {point.batch_size for point in points}
    if len(sizes) == 1 and (size := sizes.pop()):
        text += f"; mini-batch size {size}"
    if shares:
        low, high = (round(100 * end) for end in (min(shares), max(shares)))
        text += f"; workloads reach {f'{low} to {high}' if low < high else low} % of the roof"
    return text


def _caption(
    what: str, origin: str, fields: Sequence[Field], points: Sequence[Point], n_roofs: int
) -> str:
    """Return what the caption says: of nothing that is not drawn."""
    tasks = {point.task for point in points}
    marks = ["filled circles: training"] if "train" in tasks else []
    marks += ["triangles: inference"] if "infer" in tasks else []
    is_shared = any(field.is_shared for field in fields)
    return caption(
        f"roofline_{what}",
        origin=origin,
        tasks=tasks,
        marks="; ".join(marks)[:1].upper() + "; ".join(marks)[1:],
        best=f"what {'the' if n_roofs == 1 else 'each'} mode could do at best,",
        has_peaks=any(field.peaks for field in fields),
        shared=f"{SHARED} {QUIET}" if is_shared else "",
        no_power=NO_POWER[0].lower() + NO_POWER[1:],
    )


def _dress(
    axes: Axes, field: Field, of_modes: Mapping[str, Look], what: str, width_in: float
) -> None:
    """Give a field its axes, and above it its device and modes."""
    if _names(field, _placed(field, what)):  # they stand below what they are of
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
    handles = []
    for label, (colour, dash, width) in of_modes.items():
        strokes: style.Look = {"linestyle": dash, "linewidth": width}
        if not field.modes:  # as its marks: there is no line
            strokes = {"linestyle": "", "marker": "s", "markersize": 4}
        handles.append(Line2D([], [], color=colour, label=label, **strokes))
    widths = [style.ENTRY_IN + style.LETTER_IN * len(label) for label in of_modes]
    by_clock = all(label.endswith("MHz") for label in of_modes)
    n_columns = style.columns_that_fit(widths, width_in)
    title = field.title + (", by GPU clock" if by_clock else "")
    look: style.Look = {"ncols": n_columns, "handlelength": 2.4, "columnspacing": 1.0}
    style.legend_above(axes, title, handles, **look)


def _handles(fields: Sequence[Field], what: str) -> list[Line2D]:
    """Return the legend of what all fields share."""
    tasks = {point.task for field in fields for of in field.points.values() for point in of}
    mark: style.Look = {"color": GREY, "linestyle": "", "markersize": 4}
    handles = [
        Line2D([], [], marker=MARKS[task], label=word, **mark)
        for task, word in TASKS.items()
        if task in tasks
    ]
    if any(field.modes for field in fields):
        shared = any(field.is_shared for field in fields)
        handles.append(Line2D([], [], color=GREY, label=ROOF_SHARED if shared else ROOFS[what]))
    if what == "energy":
        ridge, balance = "ridge: from here arithmetic limits time", "from here it costs most energy"
        handles.append(Line2D([], [], marker="o", mfc="white", label=ridge, **mark))
        handles.append(Line2D([], [], marker="D", label=balance, **mark))
    elif any(field.peaks for field in fields):
        handles.append(Line2D([], [], color=PEAK, linestyle=":", label="peak of the data sheet"))
    return handles


def _lines(axes: Axes, field: Field, of_modes: Mapping[str, Look], what: str) -> list[Cells]:
    """Draw the roofs of a device, the widest behind; return the rows of the CSV.

    Of time they are straight between their ends and their corner, and a data sheet's is dotted. Of
    energy they are curves with ridges and balances on them.
    """
    rows = list[Cells]()

    def draw_line(label: str, name: str, x: Any, rates: Any) -> None:
        colour, dash, width = of_modes.get(label, Look(PEAK, ":", WIDTHS[-1]))
        if name != "roof":
            dash, width = ":", WIDTHS[-1]
        axes.plot(x, rates, color=colour, linestyle=dash, linewidth=width)
        line = {"line": f"{field.device} {label} {name}"}
        cells = (_row(field, label, name, a, b, what) for a, b in zip(x, rates, strict=True))
        rows.extend({**row, **line} for row in cells)

    if what == "time":
        ceilings = [(label, "roof", row.ceilings) for label, row in field.modes.items()]
        ceilings += [(label, "data sheet", peak) for label, peak in field.peaks.items()]
        for label, name, roof in ceilings:
            x = np.array([field.ends[0], roof.ridge_flop_per_byte, field.ends[1]])
            draw_line(label, name, x, roof.attainable_flops_per_s(x))
        return rows
    for label, row in field.modes.items():
        if row.energy is None:
            continue
        ridge, balance = row.ridge_flop_per_byte, row.energy.balance_flop_per_byte
        x = np.sort(np.append(np.geomspace(*field.ends, N_POINTS), ridge))  # where it has a corner
        draw_line(label, "roof", x, 1 / row.energy.j_per_flop(x))
        colour = of_modes[label].colour
        for at, name, mark, fill in (
            (ridge, "ridge", "o", "white"),
            (balance, "balance", "D", colour),
        ):
            if at <= 0:
                continue  # memory costs nothing: no intensity balances it
            rate = float(1 / row.energy.j_per_flop(at))
            axes.plot([at], [rate], mark, color=colour, mfc=fill, markersize=5, zorder=4)
            rows.append(_row(field, label, name, at, rate, what))
    return rows


def _marks(axes: Axes, field: Field, of_modes: Mapping[str, Look], what: str) -> list[Cells]:
    """Draw workloads at their intensity; return the rows of the CSV."""
    drawn = _placed(field, what)
    for point, label, x, rate in drawn:
        look: style.Look = {"color": of_modes[label].colour, "markersize": 3.2, "alpha": 0.75}
        axes.plot([x], [rate], MARKS[point.task], **look, zorder=3)
    return [_row(field, label, p.task, x, rate, what, p) for p, label, x, rate in drawn]


def _placed(field: Field, what: str) -> list[tuple[Point, str, float, float]]:
    """Return workloads with their mode, intensity and rate."""
    drawn = []
    for label, points in field.points.items():
        for p in points:
            cost = p.time_s if what == "time" else p.time_s * (p.power_w or 0.0)
            if p.intensity_flop_per_byte and cost and p.flops:
                drawn.append((p, label, p.intensity_flop_per_byte, p.flops / cost))
    return drawn


def _names(
    field: Field, drawn: Sequence[tuple[Point, str, float, float]]
) -> dict[str, list[Place]]:
    """Return what stands beside the marks of a field, if these are of few workloads."""
    several = len({point.batch_size for point, *_ in drawn}) > 1
    marks: dict[str, list[Place]] = {}
    for point, _, x, rate in drawn:
        name = f"{point.workload}, batch {point.batch_size}" if several else point.workload
        marks.setdefault(name, []).append((x, rate))
    return marks if len(marks) <= NAMED else {}


def _write_names(axes: Axes, field: Field, what: str) -> None:
    """Write the names of workloads, once for marks of about one intensity; runs are joined."""
    drawn = _placed(field, what)
    names = Names(axes, [(x, rate) for *_, x, rate in drawn])
    names.taken += [_box(text, axes.figure.dpi) for text in axes.texts]
    for name, marks in _names(field, drawn).items():
        groups: list[list[Place]] = []
        for mark in sorted(marks):
            if groups and mark[0] < ALIKE * groups[-1][-1][0]:
                groups[-1].append(mark)
            else:
                groups.append([mark])
        for group in groups:
            are_runs = field.lone is not None and len(group) > 1
            if are_runs:
                axes.plot(*zip(*sorted(group, key=lambda mark: mark[1]), strict=True), **JOIN)
            words = f"{name} ({len(group)} runs)" if are_runs else name
            lowest = min(group, key=lambda mark: mark[1])
            names.write(lowest, words, "#333333", SIZE_PT, path_effects=[halo(2.0)])


def _box(text: Text, dpi: float) -> tuple[float, float, float, float]:
    """Return the box of a text on the page, points: its middle, width, height."""
    box, per_px = text.get_window_extent(), 72.0 / dpi
    x, y = (per_px * (a + b) / 2 for a, b in ((box.x0, box.x1), (box.y0, box.y1)))
    return x, y, per_px * box.width, per_px * box.height


def name_ceilings(axes: Axes, ceilings: Ceilings, ends: tuple[float, float]) -> None:
    """Write the numbers of a lone roof at its slope, its flat part and its corner."""
    low, high = ends
    ridge, flops_per_s = ceilings.ridge_flop_per_byte, ceilings.flops_per_s
    rising, flat = np.sqrt(low * ridge), np.sqrt(ridge * high)
    for text, x, y, xytext, ha, va in (
        (f"{format_rate(ceilings.bytes_per_s)}B/s", rising, rising * ceilings.bytes_per_s,
         (-4, 3), "right", "bottom"),
        (f"{format_rate(flops_per_s)}FLOP/s", flat, flops_per_s, (0, 4), "center", "bottom"),
        (f"ridge {ridge:.1f} FLOP/B", ridge, flops_per_s, (4, -5), "left", "top"),
    ):  # fmt: skip
        axes.annotate(
            text, (x, y), xytext=xytext, textcoords="offset points", ha=ha, va=va,
            fontsize=SIZE_PT, gid=CEILING,
        )  # fmt: skip
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * ABOVE)


def _row(
    field: Field,
    label: str,
    name: str,
    x: float,
    rate: float,
    what: str,
    point: Point | None = None,
) -> Cells:
    first = point or next(iter(field.modes.values()), None)
    return {
        "provenance": first.provenance if first else "",
        "field": field.title,
        "mode": label,
        "what": name,
        "workload": point.workload if point else "",
        "batch_size": point.batch_size if point else "",
        X: f"{x:.5g}",
        RATES[what]: f"{rate:.5g}",
        "line": "",
    }


def _spec(rows: Sequence[Cells], what: str) -> Spec:
    x, y = (vega.number(n, columns.axis_title(n), scale={"type": "log"}) for n in (X, RATES[what]))
    return vega.plane(rows, x, y, vega.name("mode"), field="field", line="line")
