"""Show how methods learn on real sweeps: drawings, and sweep_scores.html with them."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from epochwatt.figures.common import style
from epochwatt.prediction.evaluation.sweep_scores import (
    BROKEN,
    MEDIAN,
    N_PROFILED,
    NOTE,
    RANDOM,
    RECOMMENDED,
    REGRET_P90,
    TITLES,
    Judged,
    Row,
    judged,
    summary_table,
)
from epochwatt.templates import render

WIDTH_IN, FACETS_IN, ROW_IN = 7.0, 5.6, 0.45
# (colour, mark) of methods in the order of the table: the first, in grey, is the paper's
LOOKS = (
    *(("#777777", "s"), ("#E69F00", "x"), ("#0072B2", "o"), ("#009E73", "D")),
    *(("#CC79A7", "^"), ("#882255", "v"), ("#56B4E9", "P"), ("#D55E00", "*")),
)
BASE = ("#000000", ".")  # of what is no method
WIDE = 1000.0  # from the lowest to the highest error: beyond it every power of ten is labelled
LEAST_REGRET_PCT = -0.3  # where its axis begins, unless a mode was faster than the best allowed
LEARNED = 2  # numbers of profiled modes that make a curve

# name of a drawing -> title, target, statistic, label of its axis
Curve = tuple[str, str, str, str]
CURVES: dict[str, Curve] = {
    f"learning_{title}": (
        f"Error of predicted {title} of new modes, by how many modes were profiled",
        target,
        MEDIAN,
        "median error (%)",
    )
    for target, title in TITLES.items()
} | {
    "broken_budgets": (
        "Power budgets that the fastest predicted mode breaks",
        RECOMMENDED,
        BROKEN,
        "broken budgets (%)",
    ),
    "regret": (
        "Time that the fastest predicted mode loses, at most, in nine of ten answers",
        RECOMMENDED,
        REGRET_P90,
        "90th percentile of regret (%)",
    ),
}
FOUR = "four_modes"
DRAWINGS = (*CURVES, FOUR)  # each results/figures/public/sweep_{name}.svg, .png, .csv

Look = Mapping[str, tuple[str, str]]


def draw_sweep_scores(rows: Sequence[Row], folder: Path, style_file: str) -> None:
    """Draw all of `DRAWINGS`."""
    units = judged(rows)
    methods = list(dict.fromkeys(row["method"] for row in rows if row["target"] in TITLES))
    looks = dict(zip(methods, LOOKS * len(methods), strict=False))
    curved = [unit for unit in units if len(_random(unit)) >= LEARNED]
    for name, (title, target, statistic, label) in CURVES.items():
        shown = [unit for unit in curved if unit.methods(target)]

        def draw(facet: Axes, unit: Judged, target: str = target, what: str = statistic) -> None:
            _curve(facet, unit, target, what, looks)

        _facets(f"{folder}/sweep_{name}", style_file, title, label, shown, draw, target, looks)
    _four_modes(f"{folder}/sweep_{FOUR}", style_file, units, looks)


def _random(unit: Judged) -> list[tuple[str, int]]:
    return [column for column in unit.columns if column[0] == RANDOM]


def _whose(units: Sequence[Judged]) -> str:
    """Return where the modes are from that predictions are held against."""
    origins = dict.fromkeys(unit.shared["provenance"] for unit in units)
    words = {"public": "measured by others", "measured": "measured here"}
    return ", ".join(words.get(name, f"{name}, not measured") for name in origins) or "no sweep"


def _note(units: Sequence[Judged]) -> str:
    n_draws = max((unit.n_draws for unit in units), default=0)
    return f"{_whose(units)}; {n_draws} draws of profiled modes; bars: bootstrap, 95 %"


def _facets(
    stem: str,
    style_file: str,
    title: str,
    label: str,
    units: Sequence[Judged],
    draw: Callable[[Axes, Judged], None],
    target: str,
    looks: Look,
) -> None:
    """Draw one facet of each unit, and store what is drawn."""
    shown = style.titled(title, _whose(units))
    settings = {"title": shown, "width_in": WIDTH_IN, "height_in": FACETS_IN}
    with style.panel(style_file, settings, _note(units)) as (figure, axes):
        if not units:
            style.notice(figure, f"{title}: no sweep has enough modes.")
            style.save(figure, stem, [])
            return
        facets = style.facets(figure, axes, len(units))
        for facet, unit in zip(facets, units, strict=True):
            draw(facet, unit)
            facet.set_title(f"{unit.key[0]}\n{unit.key[2]}", fontsize="small")
            facet.set_ylabel(label)
            facet.set_xlabel("profiled modes")
        names = list(dict.fromkeys(name for unit in units for name in unit.methods(target)))
        _legend(figure, names, looks)
        statistic = next(c[2] for c in CURVES.values() if c[0] == title)
        style.save(figure, stem, _numbers(units, target, statistic))


def _curve(facet: Axes, unit: Judged, target: str, statistic: str, looks: Look) -> None:
    methods = unit.methods(target)
    bottom = 0.0
    for place, method in enumerate(methods):
        colour, mark = looks.get(method, BASE)
        cells = [
            (column[1], cell)
            for column in _random(unit)
            if (cell := unit.cell(column, method, target, statistic))
        ]
        shift = 1.03 ** (place - (len(methods) - 1) / 2)
        x = [n * shift for n, _ in cells]
        y = [cell.value for _, cell in cells]
        facet.plot(x, y, marker=mark, markersize=3.5, color=colour, linewidth=1.0)
        lows, highs = ([getattr(cell, end) for _, cell in cells] for end in ("low", "high"))
        facet.vlines(x, lows, highs, color=colour, linewidth=0.8)
        bottom = min([bottom, *lows])
    style.set_log(facet, "x")
    facet.set_xticks(N_PROFILED, [str(n) for n in N_PROFILED])
    facet.xaxis.set_minor_locator(NullLocator())
    if statistic == BROKEN:
        facet.set_ylim(-3, 103)
        return
    if statistic == MEDIAN:
        style.set_log(facet, "y")
        facet.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        facet.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        facet.yaxis.set_minor_formatter(NullFormatter())
        return
    facet.set_yscale("symlog", linthresh=1)
    facet.set_ylim(bottom=min(LEAST_REGRET_PCT, 1.2 * bottom))
    facet.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend(figure: Figure, names: Sequence[str], looks: Look) -> None:
    style.legend(
        figure,
        [
            Line2D([], [], color=colour, marker=mark, markersize=4, linewidth=1.0, label=name)
            for name in names
            for colour, mark in [looks.get(name, BASE)]
        ],
    )


def _four_modes(stem: str, style_file: str, units: Sequence[Judged], looks: Look) -> None:
    """Draw errors of all units from four random modes: median with its bootstrap."""
    title = "Error of new modes from four random ones, on every sweep"
    height = 1.6 + ROW_IN * max(len(units), 1)
    shown = style.titled(title, _whose(units))
    settings = {"title": shown, "width_in": WIDTH_IN, "height_in": height}
    column = (RANDOM, N_PROFILED[0])
    with style.panel(style_file, settings, _note(units)) as (figure, axes):
        axes.remove()
        facets = figure.subplots(1, len(TITLES), sharey=True)
        for facet, (target, words) in zip(facets, TITLES.items(), strict=True):
            for row, unit in enumerate(units):
                methods = unit.methods(target)
                for place, method in enumerate(methods):
                    if cell := unit.cell(column, method, target, MEDIAN):
                        colour, mark = looks.get(method, BASE)
                        y = row + 0.7 * ((place + 0.5) / len(methods) - 0.5)
                        facet.hlines(y, cell.low, cell.high, color=colour, linewidth=0.8)
                        facet.plot([cell.value], [y], mark, color=colour, markersize=3.5)
            style.set_log(facet, "x")
            low, high = facet.get_xlim()
            facet.xaxis.set_major_locator(LogLocator(subs=(1, 3) if high < WIDE * low else (1,)))
            facet.xaxis.set_minor_locator(NullLocator())
            facet.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            facet.set_xlabel(f"error of {words} (%)")
            facet.set_ylim(max(len(units), 1) - 0.5, -0.5)
            facet.grid(visible=True, axis="x")
            for line in np.arange(len(units) - 1) + 0.5:
                facet.axhline(line, color="#dddddd", linewidth=0.6)
        names = [f"{unit.key[0]}\n{unit.key[2]}" for unit in units]
        facets[0].set_yticks(range(len(units)), names, fontsize="x-small")
        _legend(figure, list(looks), looks)
        rows = [row for target in TITLES for row in _numbers(units, target, MEDIAN, [column])]
        style.save(figure, stem, rows)


def _numbers(
    units: Sequence[Judged],
    target: str,
    statistic: str,
    columns: Sequence[tuple[str, int]] | None = None,
) -> list[dict[str, object]]:
    """Return what is drawn, a row for each mark."""
    return [
        {
            **dict(zip(("sweep", "device", "workload"), unit.key, strict=True)),
            **{"provenance": unit.shared["provenance"], "target": target, "method": method},
            **{"n_profiled": column[1], "statistic": statistic},
            **cell._asdict(),
        }
        for unit in units
        for method in unit.methods(target)
        for column in (columns or _random(unit))
        if (cell := unit.cell(column, method, target, statistic))
    ]


TITLE = "Prediction on real sweeps"


def write_page(rows: Sequence[Row], drawings: Path, path: Path) -> None:
    """Write the page."""
    units = judged(rows)
    folder = os.path.relpath(drawings, path.parent)
    text = render(
        "sweep_scores.html",
        title=TITLE,
        note=NOTE,
        summary=_rows(summary_table(units)),
        drawings=[
            {
                "path": f"{folder}/sweep_{name}.svg",
                "title": CURVES[name][0] if name in CURVES else name,
            }
            for name in DRAWINGS
        ],
        units=[_shown(unit) for unit in units],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _shown(unit: Judged) -> dict[str, Any]:
    return {
        "heading": f"{unit.title} ({unit.shared['provenance']})",
        "tables": [_rows(table) for table in unit.tables()],
        "left_out": unit.left_out_lines(),
    }


def _rows(table: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(table[0], row, strict=True)) for row in table[1:]]
