"""The study's figures as Vega-Lite specs: `{figure}.vl.json`, from the rows of their CSV.

Hovering shows every column of a row. How the drawn figures look is not copied.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epochwatt.figures.common.interactive import SCHEMA
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.example import AROUND, AROUND_W

NUMBERS = (
    *("value", "low", "high", "n_profiled", "n_draws", "p5", "p25", "p50", "p75", "p95"),
    *("over_pct", "over_1w_pct", "unanswered_pct", "excess_area_pct", "penalty_pct", "over_w"),
    *("epoch_s", "power_w", "predicted_epoch_s", "predicted_power_w", "limit_w"),
)
FIELD = {"width": 300, "height": 220}
TONES = ("#FFFFFF", "#9DC3E0")  # text on them stays readable
TITLES = {"time_s_mape_pct": "error of time", "power_w_mape_pct": "error of power"}

Row = dict[str, Any]
Spec = dict[str, Any]


def write_spec(stem: str, title: str, note: str) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv.

    Parameters
    ----------
    stem : path of the figure without its suffix; its end says which kind it is
    title, note : of the figure; the note says where its numbers are from
    """
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        rows = [_typed(row) for row in csv.DictReader(handle)]
    kind = next((make for end, make in KINDS.items() if stem.endswith(end)), _learning)
    body = kind(rows) if rows else _nothing()
    head = {"text": title, "subtitle": note, "anchor": "start"}
    spec = {"$schema": SCHEMA, "title": head, "data": {"values": rows}, **body}
    if not rows:
        spec["data"] = {"values": [{"text": "no numbers"}]}
    Path(f"{stem}.vl.json").write_text(json.dumps(spec, ensure_ascii=False) + "\n", "utf-8")


def _typed(row: dict[str, str]) -> Row:
    """Return a row with its numbers, without empty cells, and with names for people."""
    cells: Row = {
        name: float(cell) if name in NUMBERS else cell for name, cell in row.items() if cell != ""
    }
    cells["name"] = looks.looks([row["method"]])[row["method"]].title
    for column in ("workload", "reference"):
        if row.get(column):
            cells[f"{column}_name"] = looks.workload(row[column])
    cells["is_paper"] = "paper" in (row.get("source"), row.get("what"))
    cells["is_level"] = row["method"] == "powertrain_all"  # learned from all modes
    return cells


def _tooltip(rows: Sequence[Row]) -> list[Spec]:
    hidden = ("is_paper", "is_level", "name", "workload_name", "reference_name")
    names = [name for name in dict.fromkeys(n for row in rows for n in row) if name not in hidden]
    kinds = {name: "quantitative" if name in NUMBERS else "nominal" for name in names}
    return [{"field": name, "type": kind, "title": name} for name, kind in kinds.items()]


def _colour(rows: Sequence[Row]) -> Spec:
    """Return the colour of methods."""
    known_looks = looks.looks(row["method"] for row in rows).values()
    scale = {"domain": [x.title for x in known_looks], "range": [x.colour for x in known_looks]}
    return {"field": "name", "type": "nominal", "title": None, "scale": scale}


def _shape(rows: Sequence[Row]) -> Spec:
    """Return the shape of methods, in the order of their colours, so that one legend has both."""
    titles = [look.title for look in looks.looks(row["method"] for row in rows).values()]
    return {"field": "name", "type": "nominal", "title": None, "scale": {"domain": titles}}


def _nothing() -> Spec:
    return {"mark": "text", "encoding": {"text": {"field": "text"}}}


def _learning(rows: Sequence[Row]) -> Spec:
    """Return lines over profiled modes, a field for each workload."""
    log = {"type": "log"}
    x = {"field": "n_profiled", "type": "quantitative", "title": "profiled modes", "scale": log}
    title = "mean absolute error (MAPE, %)"
    y = {"field": "value", "type": "quantitative", "title": title, "scale": log}
    colour, tooltip = _colour(rows), _tooltip(rows)
    shape = _shape(rows)
    ours = {"filter": "!datum.is_paper && !datum.is_level"}
    layers: list[Spec] = [
        {"transform": [{"filter": "datum.is_level"}],
         "mark": {"type": "rule", "strokeDash": [2, 2]},
         "encoding": {"y": y, "color": colour, "tooltip": tooltip}},
        {"transform": [ours], "mark": "line",
         "encoding": {"x": x, "y": y, "color": colour, "detail": {"field": "reference"}}},
        {"transform": [ours], "mark": "rule",
         "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"},
                      "color": colour}},
        {"transform": [ours], "mark": {"type": "point", "filled": True, "size": 55},
         "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip}},
        {"transform": [{"filter": "datum.is_paper"}],
         "mark": {"type": "point", "size": 90, "color": looks.PAPER},
         "encoding": {"x": x, "y": y, "shape": shape, "tooltip": tooltip}},
    ]  # fmt: skip
    facet = {"field": "workload_name", "type": "nominal", "title": None}
    return {"facet": facet, "columns": 2, "spec": {**FIELD, "layer": layers}}


def _limits(rows: Sequence[Row]) -> Spec:
    """Return boxes of penalties, and beside them the shares of broken limits."""
    y = {"field": "name", "type": "nominal", "title": None}
    colour, tooltip = _colour(rows), _tooltip(rows)

    def numbers(column: str, title: str) -> Spec:
        return {"field": column, "type": "quantitative", "title": title}

    title = "time over the best mode within the limit (%)"
    ours, paper = {"filter": "!datum.is_paper"}, {"filter": "datum.is_paper"}
    of_penalty = {"filter": "datum.quantity === 'penalty_pct'"}
    of_share = {"filter": "datum.quantity === 'over_1w_pct'"}
    black = {"type": "point", "shape": "diamond", "color": looks.PAPER, "size": 70}
    boxes: list[Spec] = [
        {"mark": {"type": "rule", "color": "#777777"}, "encoding": {"x": {"datum": 0}}},
        {"transform": [ours], "mark": "rule",
         "encoding": {"y": y, "x": numbers("p5", title), "x2": {"field": "p95"}, "color": colour}},
        {"transform": [ours], "mark": {"type": "bar", "size": 9, "opacity": 0.6},
         "encoding": {"y": y, "x": numbers("p25", title), "x2": {"field": "p75"}, "color": colour,
                      "tooltip": tooltip}},
        {"transform": [ours], "mark": {"type": "tick", "thickness": 3},
         "encoding": {"y": y, "x": numbers("p50", title), "color": colour, "tooltip": tooltip}},
        {"transform": [paper, of_penalty], "mark": black,
         "encoding": {"y": y, "x": numbers("value", title), "tooltip": tooltip}},
    ]  # fmt: skip
    shares: list[Spec] = [
        {"transform": [ours], "mark": {"type": "bar", "size": 14, "opacity": 0.4},
         "encoding": {"y": y, "x": numbers("over_pct", "broken; dark: by more than 1 W (%)"),
                      "color": colour, "tooltip": tooltip}},
        {"transform": [ours], "mark": {"type": "bar", "size": 6},
         "encoding": {"y": y, "x": numbers("over_1w_pct", ""), "color": colour,
                      "tooltip": tooltip}},
        {"transform": [paper, of_share], "mark": black,
         "encoding": {"y": y, "x": numbers("value", ""), "tooltip": tooltip}},
    ]  # fmt: skip
    both = [{"layer": boxes, "width": 280}, {"layer": shares, "width": 180}]
    facet = {"row": {"field": "workload_name", "type": "nominal", "title": None}}
    return {"hconcat": [{"facet": facet, "spec": part} for part in both]}


def _matrix(rows: Sequence[Row]) -> Spec:
    """Return squares by reference and target, ours beside the paper's."""
    x = {"field": "workload_name", "type": "nominal", "title": "target", "sort": None}
    y = {"field": "reference_name", "type": "nominal", "title": "reference", "sort": None}
    value: Spec = {"field": "value", "type": "quantitative", "title": "MAPE (%)"}
    tones = {**value, "scale": {"range": list(TONES)}}
    layers = [
        {"mark": "rect", "encoding": {"x": x, "y": y, "color": tones, "tooltip": _tooltip(rows)}},
        {"mark": "text", "encoding": {"x": x, "y": y, "text": {**value, "format": ".3~g"}}},
    ]
    for row in rows:
        row["error"] = TITLES.get(row["quantity"], row["quantity"])
    facet = {
        "row": {"field": "error", "type": "nominal", "title": None},
        "column": {"field": "source", "type": "nominal", "title": None},
    }
    return {"facet": facet, "spec": {"layer": layers, "width": 240, "height": 200}}


def _example(rows: Sequence[Row]) -> Spec:
    """Return the fronts that methods expect, and what they chose."""
    best = next(row for row in rows if (row["what"], row["method"]) == ("choice", "observed"))
    watts = {"domain": [best["power_w"] - AROUND_W, best["power_w"] + AROUND_W]}
    seconds = {"domain": [best["epoch_s"] / AROUND, best["epoch_s"] * AROUND]}
    colour, tooltip = _colour(rows), _tooltip(rows)

    def at(prefix: str) -> Spec:
        x: Spec = {"field": f"{prefix}power_w", "type": "quantitative", "scale": watts}
        y: Spec = {"field": f"{prefix}epoch_s", "type": "quantitative", "scale": seconds}
        return {"x": {**x, "title": "power (W)"}, "y": {**y, "title": "time of an epoch (s)"}}

    line = {"type": "line", "clip": True}
    front = {"filter": "datum.what === 'front'"}
    choice = {"filter": "datum.what === 'choice'"}
    limit = {"filter": "datum.what === 'choice' && datum.method === 'observed'"}
    layers: list[Spec] = [
        {"transform": [limit], "mark": {"type": "rule", "color": "#B2182B", "strokeDash": [4, 3]},
         "encoding": {"x": {"field": "limit_w", "type": "quantitative", "scale": watts}}},
        {"transform": [front, {"filter": "datum.method === 'observed'"}], "mark": line,
         "encoding": {**at(""), "color": colour}},
        {"transform": [front, {"filter": "datum.method !== 'observed'"}], "mark": line,
         "encoding": {**at("predicted_"), "color": colour}},
        {"transform": [choice],
         "mark": {"type": "point", "filled": True, "size": 110, "clip": True},
         "encoding": {**at(""), "color": colour, "tooltip": tooltip,
                      "shape": _shape(rows)}},
    ]  # fmt: skip
    return {"width": 560, "height": 320, "layer": layers}


KINDS = {"_limits": _limits, "_transfer": _matrix, "_example": _example}
