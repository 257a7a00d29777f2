"""Write the study's figures as Vega-Lite, from the rows of their CSV; how they look is not copied.

Hovering shows every column of a row.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from epochwatt.figures.common import vega
from epochwatt.figures.common.vega import Cells, Spec, layer, name, number
from epochwatt.figures.powertrain import looks

AROUND_W, AROUND = 8.0, 1.4  # what an example shows: watts, and a factor in time, around the best
NUMBERS = {
    *("value", "low", "high", "n_profiled", "n_draws", "p5", "p25", "p50", "p75", "p95"),
    *("over_pct", "over_1w_pct", "unanswered_pct", "excess_area_pct", "penalty_pct", "over_w"),
    *("epoch_s", "power_w", "predicted_epoch_s", "predicted_power_w", "limit_w"),
}
OURS, PAPER = "!datum.is_paper", "datum.is_paper"
ERRORS = {"time_s_mape_pct": "error of time", "power_w_mape_pct": "error of power"}
WORKLOADS = name("workload_name")
BLACK = {"type": "point", "shape": "diamond", "color": looks.PAPER, "size": 70}


class Methods(NamedTuple):
    """Encodings of methods, so that one legend has colour and shape, and what hovering shows."""

    colour: Spec
    shape: Spec
    tooltip: list[Spec]


Kind = Callable[[list[Cells], Methods], Spec]


def spec_of(rows: Sequence[Cells], kind: Kind) -> Spec:
    """Return the interactive form of the rows of a figure's CSV."""
    shown: list[Cells] = [
        {k: float(v) if k in NUMBERS else v for k, v in row.items() if v not in ("", None)}
        for row in rows
    ]
    if not shown:
        return vega.NOTHING
    methods = list(looks.looks(row["method"] for row in shown).values())
    domain = [look.title for look in methods]
    colours = {"domain": domain, "range": [look.colour for look in methods]}
    columns = dict.fromkeys(column for row in shown for column in row)
    hover = [number(n, n) if n in NUMBERS else name(n, n) for n in columns]
    encoded = Methods(name("name", scale=colours), name("name", scale={"domain": domain}), hover)
    for row in shown:
        row["name"] = looks.looks([row["method"]])[row["method"]].title
        for column in {"workload", "reference"} & row.keys():
            row[f"{column}_name"] = looks.workload(row[column])
        row["is_paper"] = "paper" in (row.get("source"), row.get("what"))
        row["is_level"] = row["method"] == "powertrain_all"  # learned from all modes
        row["error"] = ERRORS.get(row.get("quantity", ""), row.get("quantity"))
    return {"data": {"values": shown}, **kind(shown, encoded)}


def learning(_: list[Cells], methods: Methods) -> Spec:
    """Return lines over profiled modes, a field for each workload."""
    x = number("n_profiled", "profiled modes", scale={"type": "log"})
    y = number("value", "mean absolute error (MAPE, %)", scale={"type": "log"})
    curve = "!datum.is_paper && !datum.is_level"
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    level = {"type": "rule", "strokeDash": [2, 2]}
    filled, black = ({"type": "point", "filled": True, "size": 55}, {**BLACK, "size": 90})
    del black["shape"]  # that of its method
    look: Spec = {"shape": methods.shape, "tooltip": methods.tooltip}
    layers = [
        layer(level, "datum.is_level", y=y, color=methods.colour, tooltip=methods.tooltip),
        layer("line", curve, x=x, y=y, color=methods.colour, detail={"field": "reference"}),
        layer("rule", curve, x=x, **ends, color=methods.colour),
        layer(filled, curve, x=x, y=y, color=methods.colour, **look),
        layer(black, PAPER, x=x, y=y, **look),
    ]
    return vega.multiples(WORKLOADS, layers, 300, 220, 2)


def limits(_: list[Cells], methods: Methods) -> Spec:
    """Return boxes of penalties, and beside them the shares of broken limits."""
    y, title = name("name"), "time over the best mode within the limit (%)"
    shown: Spec = {"y": y, "color": methods.colour, "tooltip": methods.tooltip}
    marks: Spec = {"y": y, "tooltip": methods.tooltip}
    box, tick = {"type": "bar", "size": 9, "opacity": 0.6}, {"type": "tick", "thickness": 3}
    wide, slim = {"type": "bar", "size": 14, "opacity": 0.4}, {"type": "bar", "size": 6}
    penalty, share = (f"datum.quantity === '{name}_pct'" for name in ("penalty", "over_1w"))
    broken = "broken; dark: by more than 1 W (%)"
    boxes = [
        layer({"type": "rule", "color": "#777777"}, x={"datum": 0}),
        layer("rule", OURS, y=y, x=number("p5", title), x2={"field": "p95"}, color=methods.colour),
        layer(box, OURS, x=number("p25", title), x2={"field": "p75"}, **shown),
        layer(tick, OURS, x=number("p50", title), **shown),
        layer(BLACK, PAPER, penalty, x=number("value", title), **marks),
    ]
    shares = [
        layer(wide, OURS, x=number("over_pct", broken), **shown),
        layer(slim, OURS, x=number("over_1w_pct"), **shown),
        layer(BLACK, PAPER, share, x=number("value"), **marks),
    ]
    both = [{"layer": boxes, "width": 280}, {"layer": shares, "width": 180}]
    return {"hconcat": [{"facet": {"row": WORKLOADS}, "spec": part} for part in both]}


def matrix(_: list[Cells], methods: Methods) -> Spec:
    """Return squares by reference and target, ours beside the paper's."""
    x, y = (name(f"{n}_name", t, sort=None) for n, t in
            (("workload", "target"), ("reference", "reference")))  # fmt: skip
    value = number("value", "MAPE (%)")
    tones = {**value, "scale": {"range": ["#FFFFFF", "#9DC3E0"]}}  # text stays readable on them
    layers = [
        layer("rect", x=x, y=y, color=tones, tooltip=methods.tooltip),
        layer("text", x=x, y=y, text={**value, "format": ".3~g"}),
    ]
    facet = {"row": name("error"), "column": name("source")}
    return {"facet": facet, "spec": {"layer": layers, "width": 240, "height": 200}}


def example(rows: list[Cells], methods: Methods) -> Spec:
    """Return the fronts that methods expect, and what they chose."""
    best = next(row for row in rows if (row["what"], row["method"]) == ("choice", "observed"))
    watts = {"domain": [best["power_w"] - AROUND_W, best["power_w"] + AROUND_W]}
    seconds = {"domain": [best["epoch_s"] / AROUND, best["epoch_s"] * AROUND]}
    observed, expected = (
        {
            "x": number(f"{prefix}power_w", "power (W)", scale=watts),
            "y": number(f"{prefix}epoch_s", "time of an epoch (s)", scale=seconds),
        }
        for prefix in ("", "predicted_")
    )
    line = {"type": "line", "clip": True}
    red = {"type": "rule", "color": "#B2182B", "strokeDash": [4, 3]}
    point = {"type": "point", "filled": True, "size": 110, "clip": True}
    front, choice = "datum.what === 'front'", "datum.what === 'choice'"
    is_best, is_other = "datum.method === 'observed'", "datum.method !== 'observed'"
    look: Spec = {"color": methods.colour, "shape": methods.shape, "tooltip": methods.tooltip}
    layers = [
        layer(red, choice, is_best, x=number("limit_w", scale=watts)),
        layer(line, front, is_best, **observed, color=methods.colour),
        layer(line, front, is_other, **expected, color=methods.colour),
        layer(point, choice, **observed, **look),
    ]
    return {"width": 560, "height": 320, "layer": layers}
