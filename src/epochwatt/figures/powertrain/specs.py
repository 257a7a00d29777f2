"""Write the study's figures as Vega-Lite specs: `{figure}.vl.json`, from the rows of their CSV.

Hovering shows every column of a row. How the drawn figures look is not copied.
"""

from collections.abc import Sequence

from epochwatt.figures.common import vega
from epochwatt.figures.common.vega import Spec, layer, name, number
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.example import AROUND, AROUND_W

NUMBERS = (
    *("value", "low", "high", "n_profiled", "n_draws", "p5", "p25", "p50", "p75", "p95"),
    *("over_pct", "over_1w_pct", "unanswered_pct", "excess_area_pct", "penalty_pct", "over_w"),
    *("epoch_s", "power_w", "predicted_epoch_s", "predicted_power_w", "limit_w"),
)
OURS, PAPER = "!datum.is_paper", "datum.is_paper"
HIDDEN = ("is_paper", "is_level", "name", "workload_name", "reference_name")  # ours, not the CSV's
TITLES = {"time_s_mape_pct": "error of time", "power_w_mape_pct": "error of power"}
WORKLOADS = name("workload_name")


def write_spec(stem: str, title: str, note: str) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv."""
    rows = vega.read_rows(stem, NUMBERS)
    for row in rows:
        row["name"] = looks.looks([row["method"]])[row["method"]].title
        for column in ("workload", "reference"):
            if column in row:
                row[f"{column}_name"] = looks.workload(row[column])
        row["is_paper"] = "paper" in (row.get("source"), row.get("what"))
        row["is_level"] = row["method"] == "powertrain_all"  # learned from all modes
        if "quantity" in row:
            row["error"] = TITLES.get(row["quantity"], row["quantity"])
    kind = next((make for end, make in KINDS.items() if stem.endswith(end)), _learning)
    body = {"data": {"values": rows}, **kind(rows, *_methods(rows))} if rows else vega.NOTHING
    vega.write(stem, title, note, body)


def _methods(rows: Sequence[Spec]) -> tuple[Spec, Spec, list[Spec]]:
    """Return colour and shape of methods, so that one legend has both, and what hovering shows."""
    shown = list(looks.looks(row["method"] for row in rows).values())
    domain = [look.title for look in shown]
    colour = name("name", scale={"domain": domain, "range": [look.colour for look in shown]})
    columns = dict.fromkeys(n for row in rows for n in row if n not in (*HIDDEN, "error"))
    hover = [number(n, n) if n in NUMBERS else name(n, n) for n in columns]
    return colour, name("name", scale={"domain": domain}), hover


def _learning(rows: Sequence[Spec], colour: Spec, shape: Spec, tooltip: list[Spec]) -> Spec:
    """Return lines over profiled modes, a field for each workload."""
    log = {"type": "log"}
    x = number("n_profiled", "profiled modes", scale=log)
    y = number("value", "mean absolute error (MAPE, %)", scale=log)
    curve = "!datum.is_paper && !datum.is_level"
    level = {"type": "rule", "strokeDash": [2, 2]}
    filled = {"type": "point", "filled": True, "size": 55}
    black = {"type": "point", "size": 90, "color": looks.PAPER}
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        layer(level, "datum.is_level", y=y, color=colour, tooltip=tooltip),
        layer("line", curve, x=x, y=y, color=colour, detail={"field": "reference"}),
        layer("rule", curve, x=x, **ends, color=colour),
        layer(filled, curve, x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        layer(black, PAPER, x=x, y=y, shape=shape, tooltip=tooltip),
    ]
    return vega.multiples(WORKLOADS, layers, 300, 220, 2)


def _limits(rows: Sequence[Spec], colour: Spec, _: Spec, tooltip: list[Spec]) -> Spec:
    """Return boxes of penalties, and beside them the shares of broken limits."""
    y, title = name("name"), "time over the best mode within the limit (%)"
    shown = {"y": y, "color": colour, "tooltip": tooltip}
    black = {"type": "point", "shape": "diamond", "color": looks.PAPER, "size": 70}
    box, tick = {"type": "bar", "size": 9, "opacity": 0.6}, {"type": "tick", "thickness": 3}
    wide, slim = {"type": "bar", "size": 14, "opacity": 0.4}, {"type": "bar", "size": 6}
    penalty = "datum.quantity === 'penalty_pct'"
    share = "datum.quantity === 'over_1w_pct'"
    broken = "broken; dark: by more than 1 W (%)"
    boxes = [
        layer({"type": "rule", "color": "#777777"}, x={"datum": 0}),
        layer("rule", OURS, y=y, x=number("p5", title), x2={"field": "p95"}, color=colour),
        layer(box, OURS, x=number("p25", title), x2={"field": "p75"}, **shown),
        layer(tick, OURS, x=number("p50", title), **shown),
        layer(black, PAPER, penalty, y=y, x=number("value", title), tooltip=tooltip),
    ]
    shares = [
        layer(wide, OURS, x=number("over_pct", broken), **shown),
        layer(slim, OURS, x=number("over_1w_pct"), **shown),
        layer(black, PAPER, share, y=y, x=number("value"), tooltip=tooltip),
    ]
    both = [{"layer": boxes, "width": 280}, {"layer": shares, "width": 180}]
    return {"hconcat": [{"facet": {"row": WORKLOADS}, "spec": part} for part in both]}


def _matrix(rows: Sequence[Spec], _: Spec, __: Spec, tooltip: list[Spec]) -> Spec:
    """Return squares by reference and target, ours beside the paper's."""
    x, y = (
        name("workload_name", "target", sort=None),
        name("reference_name", "reference", sort=None),
    )
    value = number("value", "MAPE (%)")
    tones = {**value, "scale": {"range": ["#FFFFFF", "#9DC3E0"]}}  # text stays readable on them
    layers = [
        layer("rect", x=x, y=y, color=tones, tooltip=tooltip),
        layer("text", x=x, y=y, text={**value, "format": ".3~g"}),
    ]
    facet = {"row": name("error"), "column": name("source")}
    return {"facet": facet, "spec": {"layer": layers, "width": 240, "height": 200}}


def _example(rows: Sequence[Spec], colour: Spec, shape: Spec, tooltip: list[Spec]) -> Spec:
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
    layers = [
        layer(red, choice, is_best, x=number("limit_w", scale=watts)),
        layer(line, front, is_best, **observed, color=colour),
        layer(line, front, is_other, **expected, color=colour),
        layer(point, choice, **observed, color=colour, tooltip=tooltip, shape=shape),
    ]
    return {"width": 560, "height": 320, "layer": layers}


KINDS = {"_limits": _limits, "_transfer": _matrix, "_example": _example}
