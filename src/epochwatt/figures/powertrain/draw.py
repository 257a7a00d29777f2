"""Draw the figures of the study: learning curves, power limits, the transfer matrix, an example."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Cells, Spec
from epochwatt.figures.frames import (
    Words,
    caption,
    numbers,
    read_texts,
    records,
    study_figure,
)
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.looks import Look
from epochwatt.figures.powertrain.rows import MATRIX, SHARES, learning_rows, limit_rows
from epochwatt.published.numbers import PaperNumber, load_paper_numbers

TARGETS = {"time": "time_s", "power": "power_w"}
WIDTH_IN = 7.2
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
Field = tuple[str, str]  # of a figure: workload and reference of the methods that have one


def draw_powertrain(
    tables: Iterable[str], numbers: str, modes: str, style_file: str, folder: str
) -> None:
    """Draw `looks.FIGURES`: SVG, PNG, CSV, caption (.txt), Vega-Lite (.vl.json).

    Of tables without rows it says so. `numbers` are the paper's, `modes` those of the example.
    """
    frames = {Path(path).stem: read_texts(path) for path in tables}
    columns = [field.name for field in fields(PaperNumber)]
    paper = pd.DataFrame(map(asdict, load_paper_numbers(Path(numbers))), columns=columns)
    paper = paper.rename(columns={"id": "published_id"}).assign(source="paper")
    for provenance, place in looks.FOLDERS.items():
        stem = f"{folder}/{place}/powertrain_"
        # the paper's numbers stand beside those of its board alone
        beside = paper if provenance == "simulated" else paper[:0]
        errors, choices, penalties = (
            frames[name][frames[name].provenance.eq(provenance)]
            for name in ("errors", "choices", "penalties")
        )
        for name, target in TARGETS.items():
            draw_learning(f"{stem}learning_{name}", errors, beside, target, style_file)
        draw_limits(f"{stem}limits", choices, penalties, beside, style_file)
    stem = f"{folder}/{looks.FOLDERS['simulated']}/powertrain_"
    transfer = frames["transfer"]
    transfer = transfer[transfer.provenance.eq("simulated")]
    draw_matrix(f"{stem}transfer", transfer, paper, style_file)
    example = frames["example"]  # of a method the first row counts, where its last one stands
    order = example.method.drop_duplicates(keep="last")
    example = example.drop_duplicates("method").set_index("method", drop=False).loc[order]
    draw_example(f"{stem}example", read_texts(modes), frames["fronts"], example, paper, style_file)


def _provenance(stem: str) -> str:
    folder = Path(stem).parent.name
    return next(key for key, place in looks.FOLDERS.items() if place == folder)


def _opened(
    stem: str,
    style_file: str,
    height_in: float,
    rows: Sequence[Cells],
    spec: Callable[[list[Cells], Spec], Spec],
    *notes: str,
    **told: str,
) -> AbstractContextManager[tuple[Figure, Axes]]:
    """Open a figure, with notes in its corner; its caption is told what is special of the rows."""
    folder, name = Path(stem).parts[-2:]
    provenance = _provenance(stem)
    kind = name.removesuffix("_time").removesuffix("_power")
    words = Words(
        looks.FIGURES[f"{folder}/{name}"],
        looks.SHORT[provenance],
        looks.note(provenance, *notes),
        caption(kind, provenance=provenance, **told),
        looks.PROVENANCES[provenance],
    )
    size_in = WIDTH_IN, max(height_in, 2.0)
    return study_figure(stem, style_file, words, size_in, rows, lambda: _spec_of(rows, spec))


def _spec_of(rows: Sequence[Cells], kind: Callable[[list[Cells], Spec], Spec]) -> Spec:
    """Return the interactive form of a CSV's rows, which get names for people."""
    shown: list[Cells] = []
    for row in rows:
        is_paper = "paper" in (row.get("source"), row.get("what"))
        method = looks.looks([row["method"]])[row["method"]].title
        names = {n: looks.workload(row[n]) for n in ("workload", "reference") if row.get(n)}
        shown.append({**row, **names, "name": f"{method}, the paper" if is_paper else method})
    found = looks.looks(row["method"] for row in rows).values()
    colours = {look.title: look.colour for look in found}
    colours |= {row["name"]: looks.PAPER for row in shown if row["name"] not in colours}
    scale = {"domain": list(colours), "range": list(colours.values())}
    return kind(shown, vega.name("name", scale=scale)) if shown else dict(vega.NOTHING)


def _fields(rows: pd.DataFrame) -> list[Field]:
    pairs = rows[rows.reference.ne("")][["workload", "reference"]].drop_duplicates()
    found = [(str(pair.workload), str(pair.reference)) for pair in pairs.itertuples()]
    order = _ordered(name for name, _ in found)
    return sorted(found, key=lambda field: (order.index(field[0]), field[1]))


def _ordered(names: Iterable[str]) -> list[str]:
    """Return workloads in the order of `looks.WORKLOADS`, others after them."""
    places = {name: n for n, name in enumerate(looks.WORKLOADS)}
    return sorted(dict.fromkeys(names), key=lambda name: (places.get(name, len(places)), name))


def _of_field(rows: pd.DataFrame, field: Field) -> pd.DataFrame:
    """Return the rows of a workload, of methods with this reference or with none."""
    return rows[rows.workload.eq(field[0]) & rows.reference.isin(["", field[1]])]


def _title(field: Field, every: Sequence[Field], is_marked: bool) -> str:
    """Return a field's workload, with the paper's where it is marked; of several its reference."""
    name, reference = field
    title = looks.workload(name)
    if is_marked and name in looks.STAND_INS:
        title += f" (paper: {looks.STAND_INS[name]})"
    has_several = len({other for _, other in every}) > 1
    return f"{title}, from {looks.workload(reference)}" if has_several else title


def _method_handles(shown: Iterable[Look]) -> list[Line2D]:
    return [
        Line2D([], [], color=look.colour, marker=look.mark, ls=look.line, ms=4, label=look.title)
        for look in shown
    ]


# -- learning curves: error of new modes by how many were profiled --------------------------------

GROUPS = ["learning-curve", "other-workloads"]  # of the paper's numbers on one board
MARK_COLUMNS = ["workload", "device", "method", "reference", "n_profiled", "quantity", "value"]
MARK_COLUMNS += ["source", "published_id", "qualifier", "exactness"]
LETTERS = 30  # of a line of a field's title
LEAST = 2  # numbers of profiled modes that make a curve
SPREAD = 1.035  # methods stand beside each other


def draw_learning(
    stem: str, errors: pd.DataFrame, paper: pd.DataFrame, target: str, style_file: str
) -> None:
    """Draw the curves of one target, a field for each workload and reference with a curve."""
    ours = learning_rows(errors, target)
    marks = paper[paper.group.isin(GROUPS) & paper.target.eq(target)]
    marks = marks[marks.statistic.eq("mape_pct")].assign(quantity=f"{target}_mape_pct")
    n_numbers = ours.groupby(["workload", "reference"]).n_profiled.nunique()
    shown = [field for field in _fields(ours) if n_numbers[field] >= LEAST]
    drawn = [(_of_field(ours, f), marks[marks.workload.eq(f[0])][MARK_COLUMNS]) for f in shown]
    rows = [
        {"provenance": _provenance(stem), **row}
        for pair in drawn
        for part in pair
        for row in records(part)
    ]
    note = f"{int(ours.n_draws.max()) if len(ours) else 0} draws; bars: quartiles over draws"
    if any(row["source"] == "paper" for row in rows):
        note += "; black, open: the paper's, on a real board"
    word = looks.TARGETS[target]
    with _opened(stem, style_file, 6.0, rows, _learning_spec, note, target=word) as opened:
        figure, axes = opened
        if not shown:
            style.notice(figure, f"No curve of {looks.note(_provenance(stem))}.")
            return
        names = looks.looks(ours.method)
        places = style.facets(figure, axes, len(shown))
        for place, field, (mine, of_paper) in zip(places, shown, drawn, strict=True):
            _draw_curves(place, mine, of_paper, names)
            title = _title(field, shown, len(of_paper) > 0)
            place.set_title(textwrap.fill(title, LETTERS), fontsize="small")
        limits = [end for place in places for end in place.get_ylim()]
        for n, place in enumerate(places):
            place.set_ylim(min(limits), max(limits))
            place.set_ylabel("" if n % style.COLUMNS else "mean absolute error (MAPE, %)")
        handles = _method_handles(looks.looks(row["method"] for row in rows).values())
        style.legend(figure, handles)


def _learning_spec(rows: list[Cells], colour: Spec) -> Spec:
    for row in rows:  # one that learned from all modes is a level
        if row["source"] != "paper" and row["method"] != "powertrain_all":
            row["line"] = f"{row['name']} {row.get('reference', '')}"
    x = vega.number("n_profiled", "profiled modes", scale={"type": "log"})
    y = vega.number("value", "mean absolute error (MAPE, %)", scale={"type": "log"})
    return vega.plane(rows, x, y, colour, field="workload", line="line", rod=("low", "high"))


def _draw_curves(
    axes: Axes, rows: pd.DataFrame, marks: pd.DataFrame, names: dict[str, Look]
) -> None:
    """Draw the curves of one field, and the paper's marks on them; a bound has an arrow."""
    counts = set[int]()
    rows = rows.assign(n=numbers(rows.n_profiled).fillna(0).astype(int))
    for nth, (method, look) in enumerate(names.items()):
        mine = rows[rows.method.eq(method)].sort_values("n", kind="stable")
        if mine.empty:
            continue
        if mine.n_profiled.iloc[0] == "" or mine.n_profiled.nunique() < LEAST:  # a level
            axes.axhline(mine.value.iloc[0], color=look.colour, ls=look.line, lw=1.0)
            continue
        counts |= {*mine.n}
        x = mine.n * SPREAD ** (nth - (len(names) - 1) / 2)
        axes.plot(x, mine.value, color=look.colour, ls=look.line, lw=1.1)
        axes.plot(x, mine.value, look.mark, color=look.colour, ms=3.8)
        axes.vlines(x, mine.low, mine.high, color=look.colour, lw=0.9)
    for mark in marks.itertuples():
        look = names.get(str(mark.method)) or looks.METHODS[str(mark.method)]
        at = int(str(mark.n_profiled)), float(str(mark.value))
        axes.plot(*at, look.mark, color=looks.PAPER, mfc="white", ms=5.5, zorder=4)
        if mark.qualifier == "less_than":
            arrow = {"arrowstyle": "->", "color": looks.PAPER, "lw": 0.9}
            axes.annotate("", (at[0], 0.72 * at[1]), at, arrowprops=arrow, zorder=4)
    style.set_log(axes, "x", "y")
    axes.set_xticks(sorted(counts), [str(n) for n in sorted(counts)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("profiled modes")
    style.label_log(axes.yaxis)


# -- power limits: time penalty of the fastest mode, beside the limits that it breaks --------------

LINE_IN, FIELD_IN, HEAD_IN = 0.2, 0.5, 1.6
MARK, NUMBER = 2.0, 16.0  # half of a mark, and a number beside a bar, in points of the axis
BAR = 0.36  # height of a share's bar
GREY = "#777777"
BROKEN = "#F7E3DE"  # where a penalty says that the mode broke its limit
PENALTY = "time over the best mode within the limit"
BOX = "box: quartiles, thick line: median, whiskers: 5 to 95 %"
EDGE_PCT = (-45.0, 75.0)  # of the penalties' axis; what lies outside is told
LIMIT_COLUMNS = ["workload", "device", "method", "quantity", "value", "source", "published_id"]


def draw_limits(
    stem: str, choices: pd.DataFrame, penalties: pd.DataFrame, paper: pd.DataFrame, style_file: str
) -> None:
    """Draw penalties and broken limits, a row of two axes for each workload and reference."""
    ours = limit_rows(*(frame[frame.group.ne(MATRIX)] for frame in (choices, penalties)))
    shown = _fields(ours)
    drawn = {field: _of_field(ours, field) for field in shown}
    marks = paper[paper.group.eq("limits") & paper.workload.isin([name for name, _ in shown])]
    marks = marks.assign(quantity=marks.statistic)[[*LIMIT_COLUMNS, "exactness"]]
    rows = [{"provenance": _provenance(stem), **row} for row in (*records(ours), *records(marks))]
    height_in = HEAD_IN + len(drawn) * FIELD_IN + LINE_IN * sum(map(len, drawn.values()))
    watts = numbers(choices.limit_w)
    note = f"limits of {watts.min():.3g} to {watts.max():.3g} W; {BOX}" if len(watts) else ""
    with _opened(stem, style_file, height_in, rows if shown else [], _limits_spec, note) as (
        figure,
        axes,
    ):
        if not shown:
            style.notice(figure, f"No choice of {looks.note(_provenance(stem))}.")
            return
        axes.remove()
        shape: style.Look = {"sharex": "col", "sharey": "row", "width_ratios": (1.5, 1)}
        shape["height_ratios"] = [len(mine) + FIELD_IN / LINE_IN for mine in drawn.values()]
        grid = figure.subplots(len(drawn), 2, squeeze=False, **shape)
        for (left, right), (field, mine) in zip(grid, drawn.items(), strict=True):
            of_paper = marks[marks.workload.eq(field[0])]
            _draw_limits(left, right, mine, of_paper)
            title = _title(field, shown, len(of_paper) > 0)
            left.set_title(title, fontsize="small", loc="left")
        grid[-1][0].set_xlabel(f"{PENALTY} (%)")
        grid[-1][1].set_xlabel("share of the limits asked for (%)")
        handles: list[Any] = [
            Patch(facecolor=style.pale(GREY), label="pale bar: answers that break the limit"),
            Patch(facecolor=GREY, label="dark bar: by more than 1 W"),
            Patch(facecolor=BROKEN, label="faster than the best allowed: limit broken"),
        ]
        if len(marks):
            diamond: style.Look = {"color": looks.PAPER, "mfc": "white", "ms": 4, "ls": ""}
            handles.append(
                Line2D([], [], marker="D", label="the paper's, on a real board", **diamond)
            )
        style.legend(figure, handles)


def _limits_spec(rows: list[Cells], colour: Spec) -> Spec:
    """Return penalties, and shares of broken limits, in small multiples."""
    titles = {"penalty_pct": PENALTY, **SHARES}
    shares = [{**row, "quantity": n, "value": row[n]} for row in rows for n in SHARES if n in row]
    both = [
        {**row, "field": f"{row['workload']}: {titles[row['quantity']]}"}
        for row in (*rows, *shares)
    ]
    x, y = vega.number("value", "%"), vega.name("name")
    return vega.plane([row for row in both if row["value"] != ""], x, y, colour, field="field")


def _draw_limits(left: Axes, right: Axes, rows: pd.DataFrame, marks: pd.DataFrame) -> None:
    """Draw a workload: a line for each method, boxes on the left, shares on the right."""
    names = looks.looks(rows.method)
    lines = {method: y for y, method in enumerate(names)}
    steps = {column: (n - 0.5) * BAR for n, column in enumerate(SHARES)}
    left.axvspan(EDGE_PCT[0], 0, color=BROKEN, zorder=0)
    left.axvline(0, color=GREY, lw=0.8)
    for row in records(rows):
        y, look = lines[row["method"]], names[row["method"]]
        if row["value"] != "":
            _draw_box(left, y, row, look)
        for column, step in steps.items():
            if row[column] == "":
                continue
            colour = look.colour if step > 0 else style.pale(look.colour)
            right.barh(y + step, row[column], BAR, color=colour)
            hiding = marks[marks.method.eq(row["method"]) & marks.quantity.eq(column)].value
            hiding = hiding[(hiding - row[column]).between(-MARK, NUMBER, inclusive="neither")]
            at = max([row[column], *(hiding + MARK)]) + 1
            right.text(at, y + step, f"{row[column]:.3g}", va="center", fontsize=6)
        if row["unanswered_pct"] not in ("", 0.0):
            words = f"no answer: {row['unanswered_pct']:.2g} %"
            look_of_text: style.Look = {"ha": "right", "va": "center", "fontsize": 6}
            right.text(100, y + BAR / 2, words, color="#555555", **look_of_text)
    for mark in records(marks[marks.method.isin(lines)]):
        axes = left if mark["quantity"] == "penalty_pct" else right
        at = mark["value"], lines[mark["method"]] + steps.get(mark["quantity"], 0.0)
        axes.plot(*at, "D", color=looks.PAPER, mfc="white", ms=4, zorder=5)
    titles = [look.title for look in names.values()]
    left.set_yticks(list(lines.values()), titles, fontsize="x-small")
    left.set_ylim(len(lines) - 0.4, -0.6)
    left.set_xlim(*EDGE_PCT)
    right.set_xlim(0, 100)
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.tick_params(axis="y", length=0)


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
    if low <= row["value"] <= high:
        return
    side: style.Look = {"color": look.colour, "va": "center", "fontsize": 6}
    side["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
    words = f"median {row['value']:.3g} %"
    if row["value"] < low:
        axes.text(low + 1, y, f"\u2190 {words}", ha="left", **side)
    else:
        axes.text(high - 1, y, f"{words} \u2192", ha="right", **side)


# -- transfer matrix: error from each reference to each workload, ours beside the paper's ----------

ROW_IN, MATRIX_HEAD_IN = 0.62, 1.3  # of a row of cells; of title, axis and note of each matrix
TONES = LinearSegmentedColormap.from_list("tones", ["#FFFFFF", "#9DC3E0"])  # text stays readable
CELL_COLUMNS = ["reference", "workload", "quantity", "device", "method", "n_profiled"]


def draw_matrix(stem: str, transfer: pd.DataFrame, paper: pd.DataFrame, style_file: str) -> None:
    """Draw our matrices of time and power, and the paper's beside them."""
    ours = transfer[transfer.mape_pct.ne("")].rename(columns={"low_pct": "low", "high_pct": "high"})
    ours = ours.assign(value=numbers(ours.mape_pct), source="ours")
    theirs = paper[paper.group.eq(MATRIX)]
    cells = [
        frame[frame.target.eq(target)].assign(quantity=f"{target}_mape_pct")[[*CELL_COLUMNS, *more]]
        for frame, more in (
            (ours, ["n_draws", "value", "low", "high", "source"]),
            (theirs, ["value", "source", "published_id", "exactness"]),
        )
        for target in looks.TARGETS
    ]
    names = _ordered([*theirs.reference, *theirs.workload]) if len(ours) else []
    rows = [
        {"provenance": "simulated", **row}
        for row in records(pd.concat(cells))
        if {row["reference"], row["workload"]} <= {*names}
    ]
    height_in = 0.8 + len(looks.TARGETS) * (MATRIX_HEAD_IN + ROW_IN * max(len(names), 1))
    notes = ("the paper's is of a real AGX Orin", "framed: no transfer, all modes")
    with _opened(stem, style_file, height_in, rows, _matrix_spec, *notes) as opened:
        figure, axes = opened
        if not names:
            style.notice(figure, "From which workload to which: no pair of workloads.")
            return
        axes.remove()
        grid = figure.subplots(len(looks.TARGETS), 2, squeeze=False)
        for line, (target, words) in zip(grid, looks.TARGETS.items(), strict=True):
            of_target = [row for row in rows if row["quantity"] == f"{target}_mape_pct"]
            most = max((row["value"] for row in of_target), default=1.0)
            for place, source in zip(line, ("ours", "paper"), strict=True):
                mine = [row for row in of_target if row["source"] == source]
                _draw_cells(place, mine, names, most, source == "paper")
                whose = "the paper, real board" if source == "paper" else "ours, simulated"
                title = f"error of {words} (MAPE, %): {whose}"
                place.set_title(title, fontsize="small")
            line[0].set_ylabel("reference")


def _matrix_spec(rows: list[Cells], _: Spec) -> Spec:
    for row in rows:
        row["field"] = f"{row['quantity']}, {row['source']}"
    x, y = (
        vega.name("workload", "target", sort=None),
        vega.name("reference", "reference", sort=None),
    )
    value = vega.number("value", "MAPE (%)")
    tones = {**value, "scale": {"range": ["#FFFFFF", "#9DC3E0"]}}  # text stays readable on them
    cells = vega.layer("rect", x=x, y=y, color=tones)
    text = vega.layer({"type": "text", "dy": 12}, x=x, y=y, text={**value, "format": ".3~g"})
    return vega.plane(rows, x, y, field="field", behind=[cells, text])


def _draw_cells(
    axes: Axes, rows: Sequence[Cells], names: Sequence[str], most: float, is_paper: bool
) -> None:
    """Draw a matrix: a square for each pair, with its number."""
    cells = {(row["reference"], row["workload"]): row for row in rows}
    centred: style.Look = {"ha": "center", "va": "center"}
    for y, reference in enumerate(names):
        for x, name in enumerate(names):
            cell = cells.get((reference, name))
            tone = TONES(cell["value"] / most) if cell else "#FFFFFF"
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=tone, edgecolor="#DDDDDD"))
            if not cell:
                axes.text(x + 0.5, y + 0.5, "–", color="#555555", **centred)
                continue
            has_quartiles = cell["low"] not in ("", cell["high"])
            digits = f"{cell['value']:{'g' if is_paper else '.3g'}}"
            axes.text(x + 0.5, y + (0.38 if has_quartiles else 0.5), digits, **centred)
            if has_quartiles:
                quartiles = f"{float(cell['low']):.3g} to {float(cell['high']):.3g}"
                axes.text(x + 0.5, y + 0.74, quartiles, fontsize="x-small", **centred)
            if cell["method"] != "powertrain":
                corner = (x + 0.03, y + 0.03)
                axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, lw=1.2, zorder=3))
    axes.set_xlim(0, len(names))
    axes.set_ylim(len(names), 0)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    titles = [_in_two_lines(name, is_paper) for name in names]
    at = [n + 0.5 for n in range(len(names))]
    axes.set_xticks(at, titles, fontsize="x-small")
    axes.set_yticks(at, titles, fontsize="x-small")
    axes.set_xlabel("target")
    for side in axes.spines.values():
        side.set_visible(False)


def _in_two_lines(name: str, is_paper: bool) -> str:
    """Return a workload's name; the paper's where it ran another network."""
    words = looks.workload(name)
    if is_paper and name in looks.STAND_INS:
        words = f"{looks.STAND_INS[name]} on {words.partition(' on ')[2]}"
    return words.replace(" on ", "\non ").replace(", ", ",\n")


# -- one power limit: all modes, the fronts that methods predict, their choices --------------------

LIMIT = "#B2182B"
AROUND_W, AROUND = 8.0, 1.4  # what is shown around the best: watts, and a factor in time
DRAW = ["workload", "method", "n_profiled", "draw"]
TAKEN = ["predicted_epoch_s", "predicted_power_w", "epoch_s", "power_w"]
CHOICE = [*TAKEN, "provenance", "workload", "method", "draw", "limit_w", "penalty_pct", "over_w"]


def draw_example(
    stem: str,
    modes: pd.DataFrame,
    fronts: pd.DataFrame,
    example: pd.DataFrame,
    paper: pd.DataFrame,
    style_file: str,
) -> None:
    """Draw the example; of a method `example` has one choice.

    The paper's choices are in the CSV alone, since another board's seconds are no place on these
    axes.
    """
    optima = example[example.method.eq("observed") & example.epoch_s.ne("")]
    rows, notes = list[Cells](), list[str]()
    best = optima.iloc[0] if len(optima) else None
    if best is not None:
        n_minibatches = float(best.minibatches)
        rows = example_rows(fronts, example, n_minibatches)
        notes = [looks.workload(best.workload)]
        of_paper = paper[paper.group.eq("example")]
        for method, theirs in of_paper.groupby("method", sort=False):
            row = {"what": "paper", "provenance": "paper", "method": method}
            rows.append(row | dict(zip(theirs.statistic, theirs.value, strict=True)))
    with _opened(stem, style_file, 4.6, rows, _example_spec, *notes) as (figure, axes):
        if best is None:
            style.notice(figure, "No mode keeps the limit, or none was asked for.")
            return
        ours = [row for row in rows if row["what"] != "paper"]
        names = looks.looks(row["method"] for row in ours)
        if len(modes):
            known = modes[modes.power_w.ne("") & modes.time_s.ne("")]
            times_s = numbers(known.time_s) * n_minibatches
            axes.plot(numbers(known.power_w), times_s, ".", color=looks.CONTEXT, ms=2)
        watts, seconds = float(best.power_w), float(best.epoch_s)
        style.set_log(axes, "y")
        axes.set_xlim(watts - AROUND_W, watts + AROUND_W)
        if seconds > 0.0:
            axes.set_ylim(seconds / AROUND, seconds * AROUND)
        axes.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(PLAIN)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(visible=True, axis="both")
        for method, look in names.items():
            _draw_choice(axes, [row for row in ours if row["method"] == method], look)
        limit_w = float(best.limit_w)
        axes.axvline(limit_w, color=LIMIT, ls=(0, (3, 2)), lw=1.1, zorder=1)
        axes.annotate(
            f"limit {limit_w:g} W", (limit_w, 0.99), xycoords=("data", "axes fraction"),
            xytext=(-3, 0), textcoords="offset points", ha="right", va="top", color=LIMIT,
            fontsize="small", rotation=90,
        )  # fmt: skip
        axes.set_xlabel("mean power (W)")
        axes.set_ylabel("time of an epoch (s)")
        style.legend(figure, _method_handles(names.values()))


def _example_spec(rows: list[Cells], colour: Spec) -> Spec:
    """Return the fronts that methods expect, and what they chose."""
    for row in rows:
        is_expected = row["what"] == "front" and row["method"] != "observed"
        prefix = "predicted_" if is_expected else ""
        row |= {"watts": row.get(f"{prefix}power_w"), "seconds": row.get(f"{prefix}epoch_s")}
        if row["what"] == "front":
            row["line"] = row["name"]
    shown = [row for row in rows if row["what"] != "paper" and row["watts"] and row["seconds"]]
    x, y = vega.number("watts", "power (W)"), vega.number("seconds", "time of an epoch (s)")
    return vega.plane(shown, x, y, colour, line="line")


def example_rows(fronts: pd.DataFrame, example: pd.DataFrame, n_minibatches: float) -> list[Cells]:
    """Return points of fronts, whose seconds are of a mini-batch, and choices: of an epoch both."""

    def of_epoch(cells: "pd.Series[str]") -> "pd.Series[str]":
        return cells.map(lambda cell: f"{float(cell) * n_minibatches:.5g}" if cell else "")

    chosen = pd.MultiIndex.from_frame(example[DRAW])
    is_chosen = pd.MultiIndex.from_frame(fronts[DRAW]).isin(chosen) & fronts.group.ne(MATRIX)
    is_observed = fronts.method.eq("observed") & fronts.workload.isin(example.workload)
    shown = fronts[is_chosen | is_observed]
    shown = shown.assign(
        what="front",
        predicted_epoch_s=of_epoch(shown.predicted_time_s),
        epoch_s=of_epoch(shown.time_s),
    )
    columns = ["what", "provenance", "workload", "method", "draw", *TAKEN]
    return records(shown[columns]) + records(example.assign(what="choice")[["what", *CHOICE]])


def _point(row: Cells, prefix: str = "") -> tuple[float, float] | None:
    watts, seconds = row[f"{prefix}power_w"], row[f"{prefix}epoch_s"]
    return (float(watts), float(seconds)) if watts and seconds else None


def _draw_choice(axes: Axes, rows: Sequence[Cells], look: Look) -> None:
    """Draw a method's front, and where its choice was expected and is, or that it lies outside."""
    is_observed = look is looks.METHODS["observed"]
    prefix = "" if is_observed else "predicted_"
    front = sorted(filter(None, (_point(r, prefix) for r in rows if r["what"] == "front")))
    if front:
        axes.plot(*zip(*front, strict=True), color=look.colour, ls=look.line, lw=1.1, zorder=2)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for row in (row for row in rows if row["what"] == "choice"):
        expected, taken = _point(row, "predicted_"), _point(row)
        if taken is None:
            continue
        watts, seconds = taken
        if not (left <= watts <= right and low <= seconds <= high):
            words = f"{look.title}: {watts:.3g} W, {seconds:.3g} s"
            at: style.Look = {"xycoords": "axes fraction", "ha": "right"}
            words = f"{words} \u2192" if watts > right else words
            axes.annotate(words, (0.99, 0.03), fontsize="x-small", color=look.colour, **at)
            continue
        if expected is not None:
            axes.plot(*expected, look.mark, color=look.colour, ms=4, mfc="white", zorder=4)
            arrow = {"arrowstyle": "->", "color": look.colour, "lw": 1.1}
            axes.annotate("", taken, expected, arrowprops=arrow, zorder=4)
        size = 11 if is_observed else 8
        axes.plot(*taken, look.mark, color=look.colour, ms=size, mec="white", zorder=5)
