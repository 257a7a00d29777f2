"""Draw the fastest mode under power limits: its time penalty, beside the limits it breaks."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.looks import Look
from epochwatt.figures.powertrain.rows import MATRIX, SHARES, limit_rows
from epochwatt.published.paper_numbers import PaperNumber

Row = Mapping[str, str]
WIDTH_IN, LINE_IN, FIELD_IN, HEAD_IN = 7.2, 0.2, 0.5, 1.6
TITLE = "Fastest mode under power limits: time lost, and limits broken"
MARK, NUMBER = 2.0, 16.0  # half of a mark, and a number beside a bar, in points of the axis
BAR = 0.36  # height of a share's bar
BROKEN = "#F7E3DE"  # where a penalty says that the mode broke its limit
EDGE_PCT = (-45.0, 75.0)  # of the penalties' axis; what lies outside is told
CAPTION = """For each power limit a method takes the fastest mode that it expects to keep it. Left:
time of these modes over the fastest mode that keeps the limit, all limits of all draws; the box has
the quartiles, the whiskers the 5th and 95th percentiles. A penalty below zero (shaded) is no gain:
the mode broke its limit. Right: share of the limits with an answer that were broken at all, and by
more than 1 W, by the power that was observed: median over draws. Fifty random modes
were profiled."""
BESIDE = """The boards are simulated. Black, open: the paper's medians and shares on a real AGX
Orin, limits of 17 to 50 W; our detector is SSDLite320 in place of YOLOv8n."""


def caption(provenance: str) -> str:
    """Return the caption of a figure."""
    text = f"{CAPTION} {BESIDE}" if provenance == "simulated" else CAPTION
    return " ".join(text.split())


def draw_limits(
    stem: str,
    choices: Sequence[Row],
    penalties: Sequence[Row],
    numbers: Sequence[PaperNumber],
    provenance: str,
    style_file: str,
) -> str:
    """Draw penalties and broken limits of one provenance; return the caption."""
    tables = [
        [r for r in rows if r["provenance"] == provenance and r["group"] != MATRIX]
        for rows in (choices, penalties)
    ]
    rows = limit_rows(*tables)
    fields = looks.fields(rows)
    of_field = {
        field: [r for r in rows if r["workload"] == field[0] and r["reference"] in ("", field[1])]
        for field in fields
    }
    marks = _marks(numbers, {name for name, _ in fields}) if provenance == "simulated" else []
    title = "Fastest mode under power limits: time lost, and limits broken" + looks.suffix(
        provenance
    )
    height = HEAD_IN + len(fields) * FIELD_IN + LINE_IN * sum(map(len, of_field.values()))
    settings = {"title": title, "width_in": WIDTH_IN, "height_in": max(height, 2.0)}
    note = looks.note(provenance, _limits(choices, provenance))
    with style.panel(style_file, settings, note) as (figure, axes):
        if not fields:
            style.notice(figure, f"{title}: no choice of {looks.note(provenance)}.")
            style.save(figure, stem, [])
            return caption(provenance)
        axes.remove()
        _draw_fields(figure, of_field, marks)
        style.legend(figure, _handles(bool(marks)))
        style.save(figure, stem, [{"provenance": provenance, **row} for row in (*rows, *marks)])
    return caption(provenance)


def _draw_fields(
    figure: Figure,
    of_field: Mapping[tuple[str, str], Sequence[Cells]],
    marks: Sequence[Cells],
) -> None:
    """Draw a row of two axes for each field, as high as it has methods."""
    shape: dict[str, Any] = {"sharex": "col", "sharey": "row", "width_ratios": (1.5, 1)}
    shape["height_ratios"] = [len(mine) + FIELD_IN / LINE_IN for mine in of_field.values()]
    grid = figure.subplots(len(of_field), 2, squeeze=False, **shape)
    for (left, right), (field, mine) in zip(grid, of_field.items(), strict=True):
        of_paper = [mark for mark in marks if mark["workload"] == field[0]]
        _draw(left, right, mine, of_paper)
        words = looks.field_title(field, list(of_field), bool(of_paper))
        left.set_title(words, fontsize="small", loc="left")
    grid[-1][0].set_xlabel("time over the best mode within the limit (%)")
    grid[-1][1].set_xlabel("share of limits (%)")


def _limits(choices: Sequence[Row], provenance: str) -> str:
    watts = [float(row["limit_w"]) for row in choices if row["provenance"] == provenance]
    return f"limits of {min(watts):.3g} to {max(watts):.3g} W" if watts else ""


def _marks(numbers: Sequence[PaperNumber], names: set[str]) -> list[Cells]:
    """Return the paper's medians and shares, a row for each."""
    return [
        {
            **{"workload": number.workload, "device": number.device, "method": number.method},
            **{"quantity": number.statistic, "value": number.value, "source": "paper"},
            **{"published_id": number.id, "exactness": number.exactness},
        }
        for number in numbers
        if number.group == "limits" and number.workload in names
    ]


def _draw(
    left: Axes,
    right: Axes,
    rows: Sequence[Cells],
    marks: Sequence[Cells],
) -> None:
    """Draw a workload: a line for each method, boxes on the left, shares on the right."""
    names = looks.looks(row["method"] for row in rows)
    left.axvspan(EDGE_PCT[0], 0, color=BROKEN, zorder=0)
    left.axvline(0, color="#777777", lw=0.8)
    lines = {method: y for y, method in enumerate(names)}
    for row in rows:
        y, look = lines[row["method"]], names[row["method"]]
        if row["value"] != "":
            _draw_box(left, y, row, look)
        for step, column in enumerate(SHARES):
            if row[column] != "":
                height = y + (step - 0.5) * BAR
                colour = look.colour if step else style.pale(look.colour)
                right.barh(height, row[column], BAR, color=colour)
                at = max([row[column], *_beside(marks, row["method"], column, row[column])]) + 1
                right.text(at, height, f"{row[column]:.3g}", va="center", fontsize=6)
        if row["unanswered_pct"] not in ("", 0.0):
            words = f"no answer: {row['unanswered_pct']:.2g} %"
            right.text(
                100, y + BAR / 2, words, ha="right", va="center", fontsize=6, color="#555555"
            )
    for mark in marks:
        axes = left if mark["quantity"] == "penalty_pct" else right
        y = lines.get(mark["method"], -1)
        if y >= 0:
            shift = 0.0 if axes is left else (list(SHARES).index(mark["quantity"]) - 0.5) * BAR
            axes.plot(mark["value"], y + shift, "D", color=looks.PAPER, mfc="white", ms=4, zorder=5)
    left.set_yticks(
        list(lines.values()), [look.title for look in names.values()], fontsize="x-small"
    )
    left.set_ylim(len(lines) - 0.4, -0.6)
    left.set_xlim(*EDGE_PCT)
    right.set_xlim(0, 100)
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.tick_params(axis="y", length=0)


def _beside(marks: Sequence[Cells], method: str, column: str, value: float) -> list[float]:
    """Return how far marks reach that would hide the number beside a bar."""
    return [
        mark["value"] + MARK
        for mark in marks
        if (mark["method"], mark["quantity"]) == (method, column)
        and -MARK < mark["value"] - value < NUMBER
    ]


def _draw_box(axes: Axes, y: float, row: Cells, look: Look) -> None:
    """Draw a box of penalties; say where its median lies if the axis does not reach."""
    stats = {"med": row["p50"], "q1": row["p25"], "q3": row["p75"]}
    stats |= {"whislo": row["p5"], "whishi": row["p95"], "fliers": []}
    axes.bxp(
        [stats], positions=[y], widths=0.62, orientation="horizontal", manage_ticks=False,
        patch_artist=True, showfliers=False,
        boxprops={"facecolor": style.pale(look.colour), "edgecolor": look.colour},
        medianprops={"color": look.colour, "lw": 2.0},
        whiskerprops={"color": look.colour}, capprops={"color": look.colour},
    )  # fmt: skip
    low, high = EDGE_PCT
    if not low <= row["value"] <= high:
        is_low = row["value"] < low
        words = (
            f"\u2190 median {row['value']:.3g} %"
            if is_low
            else f"median {row['value']:.3g} % \u2192"
        )
        side: dict[str, Any] = {"ha": "left" if is_low else "right", "va": "center", "fontsize": 6}
        side["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        axes.text(low + 1 if is_low else high - 1, y, words, color=look.colour, **side)


def _handles(has_marks: bool) -> list[Any]:
    grey = "#777777"
    handles: list[Any] = [
        Patch(facecolor=style.pale(grey), label=f"right, upper: {SHARES['over_pct']}"),
        Patch(facecolor=grey, label=f"right, lower: {SHARES['over_1w_pct']}"),
        Patch(facecolor=BROKEN, label="below zero: only by breaking the limit"),
    ]
    if has_marks:
        looked: dict[str, Any] = {"color": looks.PAPER, "mfc": "white", "ms": 4, "ls": ""}
        handles.append(Line2D([], [], marker="D", label="the paper's, on a real board", **looked))
    return handles
