"""Draw learning curves: error of new modes by how many were profiled, a field for each workload."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.looks import Look
from epochwatt.figures.powertrain.rows import learning_rows
from epochwatt.published.paper_numbers import PaperNumber

Row = Mapping[str, str]
WIDTH_IN, HEIGHT_IN = 7.2, 6.0  # of two rows of fields
GROUPS = ("learning-curve", "other-workloads")  # of the paper's numbers on one board
LETTERS = 30  # of a line of a field's title
LEAST = 2  # numbers of profiled modes that make a curve
BLACK_MARKS = "black, open: the paper's, on a real board"
SPREAD = 1.035  # methods stand beside each other
WHOSE = {
    "simulated": "The boards are simulated, so methods are compared on made modes. Black and open: "
    "the paper's errors, on a real AGX Orin.",
    "public": "Others measured these modes on real boards, which the paper did not use: it has no "
    "mark here.",
}


def caption(target: str, provenance: str) -> str:
    """Return the caption of a figure."""
    return (
        "Mean absolute percentage error (MAPE) of predicted "
        f"{looks.TARGETS[target]} over all modes that were not profiled, by how many random ones "
        "were. Marks: median over draws of the profiled modes; bars: quartiles. The transferred "
        "network was taught by all modes of a reference workload, which the others are not given. "
        f"{WHOSE.get(provenance, '')}"
    ).strip()


def curves(rows: Sequence[Cells]) -> list[tuple[str, str]]:
    """Return workload and reference of the fields: those in which a method has a curve."""
    numbers: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        numbers.setdefault((row["workload"], row["reference"]), set()).add(row["n_profiled"])
    return [field for field in looks.fields(rows) if len(numbers[field]) >= LEAST]


def draw_learning(
    stem: str,
    errors: Sequence[Row],
    numbers: Sequence[PaperNumber],
    target: str,
    provenance: str,
    style_file: str,
) -> str:
    """Draw the curves of one target and one provenance; return the caption."""
    rows = learning_rows([row for row in errors if row["provenance"] == provenance], target)
    fields = curves(rows)
    title = f"Error of predicted {looks.TARGETS[target]}, by how many modes were profiled"
    title += looks.suffix(provenance)
    settings = {"title": title, "width_in": WIDTH_IN, "height_in": HEIGHT_IN}
    n_draws = max((row["n_draws"] for row in rows), default=0)
    note = looks.note(provenance, f"{n_draws} draws; bars: quartiles over draws")
    with style.panel(style_file, settings, note) as (figure, axes):
        if not fields:
            style.notice(figure, f"{title}: no curve of {looks.note(provenance)}.")
            style.save(figure, stem, [])
            return caption(target, provenance)
        known_numbers = numbers if provenance == "simulated" else []
        places = style.facets(figure, axes, len(fields))
        shown = _draw_fields(places, fields, rows, known_numbers)
        entries = list(looks.looks(row["method"] for row in shown).values())
        style.legend(figure, legend_entries(entries, any(map(_is_paper, shown))))
        style.save(figure, stem, [{"provenance": provenance, **row} for row in shown])
    return caption(target, provenance)


def _draw_fields(
    places: Sequence[Axes],
    fields: Sequence[tuple[str, str]],
    rows: Sequence[Cells],
    numbers: Sequence[PaperNumber],
) -> list[Cells]:
    """Draw all fields, with the same ends of their axes; return the rows that are drawn."""
    shown: list[Cells] = []
    names = looks.looks(row["method"] for row in rows)
    target = rows[0]["quantity"].removesuffix("_mape_pct")
    for place, field in zip(places, fields, strict=True):
        mine = [r for r in rows if r["workload"] == field[0] and r["reference"] in ("", field[1])]
        marks = _marks(numbers, target, field[0])
        _draw(place, mine, marks, names)
        title = looks.field_title(field, fields, bool(marks))
        place.set_title(textwrap.fill(title, LETTERS), fontsize="small")
        shown += [*mine, *marks]
    limits = [end for place in places for end in place.get_ylim()]
    for at, place in enumerate(places):
        place.set_ylim(min(limits), max(limits))
        place.set_ylabel("" if at % style.COLUMNS else "mean absolute error (MAPE, %)")
    return shown


def _is_paper(row: Cells) -> bool:
    return bool(row["source"] == "paper")


def _marks(numbers: Sequence[PaperNumber], target: str, name: str) -> list[Cells]:
    """Return the paper's errors for a workload, as rows."""
    return [
        {
            "workload": name,
            "device": number.device,
            "method": number.method,
            "reference": number.reference,
            "n_profiled": number.n_profiled,
            "quantity": f"{target}_mape_pct",
            "value": number.value,
            "source": "paper",
            "published_id": number.id,
            "qualifier": number.qualifier,
            "exactness": number.exactness,
        }
        for number in numbers
        if (number.workload, number.target, number.statistic) == (name, target, "mape_pct")
        and number.group in GROUPS
    ]


def _draw(
    axes: Axes,
    rows: Sequence[Cells],
    marks: Sequence[Cells],
    names: Mapping[str, Look],
) -> None:
    """Draw the curves of one field, and the paper's marks on them."""
    counts = sorted({int(row["n_profiled"]) for row in rows if _has_curve(row, rows)})
    for place, (method, look) in enumerate(names.items()):
        mine = sorted(
            (row for row in rows if row["method"] == method),
            key=lambda r: int(r["n_profiled"] or 0),
        )
        if not mine:
            continue
        if not _has_curve(mine[0], rows):  # learned from all modes: a level
            axes.axhline(mine[0]["value"], color=look.colour, ls=look.line, lw=1.0)
            continue
        shift = SPREAD ** (place - (len(names) - 1) / 2)
        x = [int(row["n_profiled"]) * shift for row in mine]
        axes.plot(x, [row["value"] for row in mine], color=look.colour, ls=look.line, lw=1.1)
        axes.plot(x, [row["value"] for row in mine], look.mark, color=look.colour, ms=3.8)
        axes.vlines(
            x, [r["low"] for r in mine], [r["high"] for r in mine], color=look.colour, lw=0.9
        )
    for mark in marks:
        _draw_mark(axes, int(mark["n_profiled"]), mark, names)
    style.set_log(axes, "x", "y")
    axes.set_xticks(counts, [str(n) for n in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("profiled modes")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _has_curve(row: Cells, rows: Sequence[Cells]) -> bool:
    """Return whether a row's method has several numbers of profiled modes."""
    mine = {other["n_profiled"] for other in rows if other["method"] == row["method"]}
    return bool(row["n_profiled"]) and len(mine) >= LEAST


def _draw_mark(axes: Axes, n: int, mark: Cells, names: Mapping[str, Look]) -> None:
    """Draw one of the paper's errors in black, with its method's shape; a bound has an arrow."""
    look = names.get(mark["method"]) or looks.METHODS[mark["method"]]
    axes.plot(n, mark["value"], look.mark, color=looks.PAPER, mfc="white", ms=5.5, zorder=4)
    if mark["qualifier"] == "less_than":
        arrow = {"arrowstyle": "->", "color": looks.PAPER, "lw": 0.9}
        axes.annotate("", (n, mark["value"] * 0.72), (n, mark["value"]), arrowprops=arrow, zorder=4)


def legend_entries(shown: Sequence[Look], has_paper: bool = False) -> list[Line2D]:
    """Return the legend's entries; `has_paper`: the figure has the paper's marks."""
    entries = [
        Line2D([], [], color=look.colour, marker=look.mark, ls=look.line, ms=4, label=look.title)
        for look in shown
    ]
    if has_paper:
        marks: dict[str, Any] = {"marker": "o", "mfc": "white", "ls": "", "ms": 5}
        entries.append(Line2D([], [], color=looks.PAPER, label=BLACK_MARKS, **marks))
    return entries
