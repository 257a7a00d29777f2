"""Show how methods learn on real sweeps: drawings, and sweep_scores.html with them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.prediction.evaluation.sweep_scores import (
    BROKEN,
    LEFT_OUT,
    MEDIAN,
    N_PROFILED,
    NOTE,
    RANDOM,
    RECOMMENDED,
    REGRET_P90,
    TITLES,
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
UNIT = ["sweep", "device", "workload"]
DRAWN = [*UNIT, "provenance", "target", "method", "n_profiled", "statistic", "value", "low", "high"]
Looks = Mapping[str, tuple[str, str]]


class Curve(NamedTuple):
    """Content of a drawing of curves."""

    title: str
    target: str
    statistic: str
    label: str  # of its axis


LEARNING = "Error of predicted {} of new modes, by how many modes were profiled"
LOST = "Time that the fastest predicted mode loses, at most, in nine of ten answers"
BREAKS = "Power budgets that the fastest predicted mode breaks"
CURVES = {
    f"learning_{title}": Curve(LEARNING.format(title), target, MEDIAN, "median error (%)")
    for target, title in TITLES.items()
}
CURVES["broken_budgets"] = Curve(BREAKS, RECOMMENDED, BROKEN, "broken budgets (%)")
CURVES["regret"] = Curve(LOST, RECOMMENDED, REGRET_P90, "90th percentile of regret (%)")
FOUR = "four_modes"
DRAWINGS = (*CURVES, FOUR)  # each results/figures/public/sweep_{name}.svg, .png, .csv


def draw_sweep_scores(rows: Sequence[Row], folder: Path, style_file: str) -> None:
    """Draw all of `DRAWINGS`."""
    scores = pd.DataFrame(list(rows), columns=None if rows else [*DRAWN, "n_draws", "learned_from"])
    scored = scores[scores.statistic.ne(LEFT_OUT)]
    methods = scored[scored.target.isin(TITLES)].method.unique()
    looks = dict(zip(methods, LOOKS * len(methods), strict=False))
    drawn = scored[scored.learned_from.eq(RANDOM)]
    ends = {name: drawn[name].replace("", "nan").astype(float) for name in ("value", "low", "high")}
    drawn = drawn.assign(n_profiled=drawn.n_profiled.astype(int), **ends)
    n_columns = drawn.groupby(UNIT).n_profiled.transform("nunique")
    for name, curve in CURVES.items():
        stem = f"{folder}/sweep_{name}"
        of_target = drawn[n_columns.ge(LEARNED) & drawn.target.eq(curve.target)]
        _draw_curves(stem, style_file, curve, of_target, scored, looks)
    _draw_four_modes(f"{folder}/sweep_{FOUR}", style_file, drawn, scores, looks)


def _words(scores: pd.DataFrame) -> tuple[str, str]:
    """Return where modes are from that predictions are held against, and the corner note."""
    names = {"public": "measured by others", "measured": "measured here"}
    origins = scores.provenance.unique()
    whose = ", ".join(names.get(name, f"{name}, not measured") for name in origins) or "no sweep"
    scored = scores[scores.statistic.ne(LEFT_OUT)]
    n_draws = scored.n_draws.astype(int).max() if len(scored) else 0
    return whose, f"{whose}; {n_draws} draws of profiled modes; bars: bootstrap, 95 %"


def _in_order(rows: pd.DataFrame, statistic: str) -> list[Cells]:
    """Return the rows of a statistic by sweep, each method's together, with the columns drawn."""
    groups = [rows[rows.statistic.eq(statistic)] for _, rows in rows.groupby(UNIT, sort=False)]
    parts = [part for group in groups for _, part in group.groupby("method", sort=False)]
    return [row for part in parts for row in part[DRAWN].to_dict("records")]  # type: ignore[misc]


def _draw_curves(
    stem: str, style_file: str, curve: Curve, rows: pd.DataFrame, scored: pd.DataFrame, looks: Looks
) -> None:
    """Draw a field for each sweep, by how many modes were profiled."""
    units = list(rows.groupby(UNIT, sort=False))
    keys = pd.MultiIndex.from_tuples([key for key, _ in units], names=UNIT) if units else ()
    whose, note = _words(scored[pd.MultiIndex.from_frame(scored[UNIT]).isin(keys)])
    settings = {"title": style.titled(curve.title, whose), "width_in": WIDTH_IN}
    with style.panel(style_file, {**settings, "height_in": FACETS_IN}, note) as (figure, axes):
        if not units:
            style.notice(figure, f"{curve.title}: no sweep has enough modes.")
            style.save(figure, stem, [])
            return
        facets = style.facets(figure, axes, len(units))
        for facet, ((sweep, _, workload), unit) in zip(facets, units, strict=True):
            _draw_unit(facet, unit, curve.statistic, looks)
            facet.set_title(f"{sweep}\n{workload}", fontsize="small")
            facet.set_ylabel(curve.label)
            facet.set_xlabel("profiled modes")
        _legend(figure, rows.method.unique(), looks)
        style.save(figure, stem, _in_order(rows, curve.statistic))


def _draw_unit(facet: Axes, unit: pd.DataFrame, statistic: str, looks: Looks) -> None:
    """Draw a statistic, in per cent, of each method over profiled modes, with intervals.

    `unit`: the rows of one sweep, device and workload
    """
    methods = unit.method.unique()
    shown = unit[unit.statistic.eq(statistic)]
    for n, method in enumerate(methods):
        colour, mark = looks.get(method, BASE)
        mine = shown[shown.method.eq(method)]
        # 3 % apart on the logarithmic axis, so that no method hides another
        x = mine.n_profiled * 1.03 ** (n - (len(methods) - 1) / 2)
        facet.plot(x, mine.value, marker=mark, markersize=3.5, color=colour, linewidth=1.0)
        facet.vlines(x, mine.low, mine.high, color=colour, linewidth=0.8)
    style.set_log(facet, "x")
    facet.set_xticks(N_PROFILED, [str(n) for n in N_PROFILED])
    facet.xaxis.set_minor_locator(NullLocator())
    if statistic == BROKEN:
        facet.set_ylim(-3, 103)  # marks at 0 and 100 % stay whole
        return
    if statistic == MEDIAN:
        style.set_log(facet, "y")
        style.label_log(facet.yaxis)
    else:  # a regret: it may be zero or below
        facet.set_yscale("symlog", linthresh=1)
        facet.set_ylim(bottom=np.fmin(LEAST_REGRET_PCT, 1.2 * shown.low.min()))
        facet.yaxis.set_major_formatter("{x:g}")


def _legend(figure: Figure, names: Iterable[str], looks: Looks) -> None:
    shown = ((name, *looks.get(name, BASE)) for name in names)
    look: style.Look = {"markersize": 4, "linewidth": 1.0}
    handles = [Line2D([], [], color=c, marker=mark, label=n, **look) for n, c, mark in shown]
    style.legend(figure, handles)


def _draw_four_modes(
    stem: str, style_file: str, drawn: pd.DataFrame, scores: pd.DataFrame, looks: Looks
) -> None:
    """Draw errors of all sweeps from four random modes: median with its bootstrap."""
    title = "Error of new modes from four random ones, on every sweep"
    cells = scores[UNIT].drop_duplicates().astype(str)
    units = [(unit.sweep, unit.device, unit.workload) for unit in cells.itertuples()]
    places: dict[object, int] = {unit: n for n, unit in enumerate(units)}
    whose, note = _words(scores)
    settings = {"title": style.titled(title, whose), "width_in": WIDTH_IN}
    settings["height_in"] = 1.6 + ROW_IN * max(len(units), 1)
    rows = list[Cells]()
    with style.panel(style_file, settings, note) as (figure, axes):
        axes.remove()
        facets = figure.subplots(1, len(TITLES), sharey=True)
        for facet, (target, words) in zip(facets, TITLES.items(), strict=True):
            of_target = drawn[drawn.target.eq(target)]
            for key, unit in of_target.groupby(UNIT, sort=False):
                methods = unit.method.unique()
                medians = unit[unit.statistic.eq(MEDIAN) & unit.n_profiled.eq(N_PROFILED[0])]
                for n, method in enumerate(methods):
                    colour, mark = looks.get(method, BASE)
                    y = places[key] + 0.7 * ((n + 0.5) / len(methods) - 0.5)
                    for cell in medians[medians.method.eq(method)].itertuples():
                        facet.hlines(y, cell.low, cell.high, color=colour, linewidth=0.8)
                        facet.plot([cell.value], [y], mark, color=colour, markersize=3.5)
            rows += _in_order(of_target[of_target.n_profiled.eq(N_PROFILED[0])], MEDIAN)
            style.set_log(facet, "x")
            low, high = facet.get_xlim()
            style.label_log(facet.xaxis, *((1, 3) if high < WIDE * low else (1,)))
            facet.set_xlabel(f"error of {words} (%)")
            facet.set_ylim(max(len(units), 1) - 0.5, -0.5)
            facet.grid(visible=True, axis="x")
            for line in np.arange(len(units) - 1) + 0.5:
                facet.axhline(line, color="#dddddd", linewidth=0.6)
        names = [f"{sweep}\n{workload}" for sweep, _, workload in units]
        facets[0].set_yticks(range(len(units)), names, fontsize="x-small")
        _legend(figure, list(looks), looks)
        style.save(figure, stem, rows)


def write_page(rows: Sequence[Row], drawings: Path, path: Path) -> None:
    """Write the page."""

    def named(table: list[list[str]]) -> list[dict[str, str]]:
        return [dict(zip(table[0], row, strict=True)) for row in table[1:]]

    units = judged(rows)
    folder = os.path.relpath(drawings, path.parent)
    titles = {name: CURVES[name].title if name in CURVES else name for name in DRAWINGS}
    text = render(
        "sweep_scores.html",
        title="Prediction on real sweeps",
        note=NOTE,
        summary=named(summary_table(units)),
        drawings=[
            {"path": f"{folder}/sweep_{name}.svg", "title": title} for name, title in titles.items()
        ],
        units=[
            {
                "heading": f"{unit.title} ({unit.shared['provenance']})",
                "tables": [named(table) for table in unit.tables()],
                "left_out": unit.left_out_lines(),
            }
            for unit in units
        ],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
