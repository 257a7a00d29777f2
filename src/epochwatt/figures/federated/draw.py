"""Draw the figures of the study of rounds: one round, deadlines, and savings beside waiting."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Spec
from epochwatt.figures.federated.names import RULES, TITLES, data_title
from epochwatt.figures.frames import Words, caption, numbers, read_texts, records, study_figure

WIDTH_IN = 9.0
AROUND, END = "#999999", "#333333"
KINDS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_RULE = vega.name("rule")


def draw_rounds(tables: Iterable[str], style_file: str, stems: Iterable[str]) -> None:
    """Draw figures of tables: SVG, PNG, CSV, caption and interactive form of each.

    A stem is results/figures/twin/{name in `TITLES`}; tables are those of results/federated/.
    """
    by_name = {Path(table).stem: table for table in tables}
    for stem in stems:
        table, draw = DRAW[Path(stem).name]
        draw(read_texts(by_name[table]), stem, style_file)


def _opened(
    stem: str, style_file: str, height_in: float, rows: pd.DataFrame, spec: Spec, **told: str
) -> AbstractContextManager[tuple[Figure, Axes]]:
    name = Path(stem).name
    words = Words(TITLES[name], "simulated", "simulated boards", caption(name, **told), "simulated")
    return study_figure(stem, style_file, words, (WIDTH_IN, height_in), records(rows), lambda: spec)


def draw_timeline(timeline: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/federated/timeline.csv: when each board fits and waits, before and after."""
    rows = timeline.copy()
    for name in ("around_s", "fit_s", "end_s"):
        rows[name] = numbers(rows[name])
    # half of the time around a fit lies before it
    rows["begin_s"] = rows["around_s"] / 2
    rows["done_s"] = rows["begin_s"] + rows["fit_s"]
    rules, boards = list(rows.rule.unique()), list(rows.board.unique())
    colours = dict(zip(rows.device.unique(), KINDS * 9, strict=False))
    x, y = vega.number("done_s", "time (s)"), vega.name("board", sort=None)
    rod = ("begin_s", "done_s")
    spec = vega.plane(records(rows), x, y, vega.name("device"), field="rule", rod=rod)
    height_in = 1.2 + 0.2 * max(len(boards), 3)
    with _opened(stem, style_file, height_in, rows, spec) as (figure, axes):
        places = style.side_by_side(figure, axes, max(len(rules), 1))
        for place, rule in zip(places, rules, strict=False):
            for row in records(rows[rows.rule.eq(rule)]):
                at = boards.index(row["board"])
                parts = (
                    (0.0, row["begin_s"], AROUND),
                    (row["begin_s"], row["fit_s"], colours[row["device"]]),
                    (row["done_s"], row["around_s"] - row["begin_s"], AROUND),
                )
                for begin_s, width_s, colour in parts:
                    place.barh(at, width_s, 0.75, begin_s, color=colour)
                done_s = row["fit_s"] + row["around_s"]
                pale = style.pale(style.pale(colours[row["device"]]))
                place.barh(at, max(row["end_s"] - done_s, 0.0), 0.75, done_s, color=pale)
            place.axvline(rows[rows.rule.eq(rule)].end_s.max(), color=END, linestyle=":")
            place.set_title(RULES[rule][0], fontsize="small")
            place.set_xlim(0, 1.02 * rows.end_s.max())
            place.set_xlabel("time (s)")
            place.set_yticks(range(len(boards)), boards if place is places[0] else [])
            place.set_ylim(len(boards) - 0.4, -0.6)
            place.grid(visible=True, axis="x")
        handles: list[Patch | Line2D] = [
            Patch(color=c, label=f"fit, {n}") for n, c in colours.items()
        ]
        handles.append(Patch(color=AROUND, label="weights and engine"))
        handles.append(Patch(color=style.pale(style.pale(END)), label="waits (pale)"))
        handles.append(Line2D([], [], color=END, linestyle=":", label="end of the round"))
        style.legend(figure, handles)


def _quantile(share: float) -> Callable[["pd.Series[float]"], float]:
    return lambda values: float(values.quantile(share))


def draw_deadlines(deadlines: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/federated/deadlines.csv: energy of a sample by deadline, median and spread."""
    rows = deadlines.copy()
    for name in ("deadline", "energy_pct"):
        rows[name] = numbers(rows[name])
    keys = ["provenance", "boards", "data", "waiting", "rule", "deadline"]
    energy = rows.groupby(keys, sort=False).energy_pct
    spread = energy.agg(low_pct=_quantile(0.1), energy_pct="median", high_pct=_quantile(0.9))
    rows = pd.DataFrame(spread).reset_index()
    rows["field"] = [f"{data_title(d)}, {w}" for d, w in zip(rows.data, rows.waiting, strict=True)]
    x = vega.number("deadline", "deadline (times the end in the strongest modes)")
    y = vega.number("energy_pct", "energy of a sample (% of the strongest modes)")
    rod = ("low_pct", "high_pct")
    spec = vega.plane(records(rows), x, y, _RULE, field="field", line="rule", rod=rod)
    rules = [name for name in RULES if rows.rule.eq(name).any()]
    fields = list(rows.field.unique())
    with _opened(stem, style_file, 5.6, rows, spec) as (figure, axes):
        places = style.facets(figure, axes, max(len(fields), 1), max(rows.data.nunique(), 1))
        for place, name in zip(places, fields, strict=False):
            for rule in rules:
                line = rows[rows.field.eq(name) & rows.rule.eq(rule)].sort_values("deadline")
                look: style.Look = {"color": RULES[rule][1]}
                place.plot(line.deadline, line.energy_pct, marker="", **look)
                band = (line.deadline, line.low_pct, line.high_pct)
                place.fill_between(*band, alpha=0.15, linewidth=0, **look)
            place.axhline(100, color=RULES["maxn"][1], linewidth=0.8, linestyle="--")
            place.axvline(1, color=RULES["maxn"][1], linewidth=0.8, linestyle="--")
            place.set_title(name, fontsize="small")
            place.set_xlabel("deadline (times the end\nin the strongest modes)")
            place.set_ylabel("energy of a sample\n(% of the strongest modes)")
            place.grid(visible=True, axis="both")
        handles = [Line2D([], [], color=RULES[r][1], label=RULES[r][0]) for r in rules]
        handles.append(
            Line2D([], [], color=RULES["maxn"][1], linestyle="--", linewidth=0.8,
                   label=RULES["maxn"][0])
        )  # fmt: skip
        style.legend(figure, handles)


FIELDS = {  # columns of the summary -> label of its axis
    "saved_pct": "energy saved\nper sample (%)",
    "waiting_time_pct": "share of the round\nthat boards wait (%)",
}


def draw_waiting(summary: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/federated/summary.csv: savings and waiting of each rule, by data and fleet."""
    rows = summary[summary.waiting_factor.eq("1")].copy() if len(summary) else summary
    spans = {
        name: [f"{name.removesuffix('_pct')}{end}_pct" for end in ("_p10", "_p90")]
        for name in FIELDS
    }
    for name, ends in spans.items():
        for column in (name, *ends):
            rows[column] = numbers(rows[column])
    rows["fleet"] = [f"{b} boards, {w}" for b, w in zip(rows.boards, rows.waiting, strict=True)]
    data, fleets = list(rows.data.unique()), list(rows.fleet.unique())
    rules = [name for name in RULES if rows.rule.eq(name).any()]
    x, y = vega.name("data", sort=None), vega.number("saved_pct", "energy saved (%)")
    spec = vega.plane(records(rows), x, y, _RULE, field="fleet")
    with _opened(stem, style_file, 7.0, rows, spec) as (figure, axes):
        axes.remove()
        shape: style.Look = {"squeeze": False, "sharex": "row", "sharey": True}
        grid = figure.subplots(len(FIELDS), max(len(fleets), 1), **shape)
        for places, (column, label) in zip(grid, FIELDS.items(), strict=True):
            for place, fleet in zip(places, fleets, strict=False):
                for k, rule in enumerate(rules):
                    part = rows[rows.fleet.eq(fleet) & rows.rule.eq(rule)]
                    _, colour, mark = RULES[rule]
                    at = [data.index(d) + 0.8 * ((k + 0.5) / len(rules) - 0.5) for d in part.data]
                    place.hlines(at, *(part[name] for name in spans[column]), color=colour)
                    place.plot(part[column], at, mark, color=colour, markersize=3.5)
                place.set_xlabel(label)
                place.grid(visible=True, axis="x")
                place.grid(visible=False, axis="y")
        grid[0][0].set_yticks(range(len(data)), [data_title(name) for name in data])
        grid[0][0].set_ylim(max(len(data), 1) - 0.5, -0.5)
        for place, fleet in zip(grid[0], fleets, strict=False):
            place.set_title(fleet, fontsize="small")
        looks = [RULES[name] for name in rules]
        style.legend(
            figure, [Line2D([], [], color=c, marker=m, linestyle="", label=w) for w, c, m in looks]
        )


DRAW = {  # figure -> table, and what draws it
    "federated_timeline": ("timeline", draw_timeline),
    "federated_deadlines": ("deadlines", draw_deadlines),
    "federated_waiting": ("summary", draw_waiting),
}
