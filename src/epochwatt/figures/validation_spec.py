"""The figure of the cross-validation as a Vega-Lite spec: `validation.vl.json`, from its CSV.

Points are prediction / published over the published number, a field for times, changes, powers and
energies; below them the median errors with their intervals. Hovering shows what a number is of.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.figures.common.interactive import SCHEMA
from epochwatt.figures.validation_points import LEFT_OUT

UNIT_PANELS = {"W": "powers (W)", "Wh": "energies (Wh)"}
CLASS_PANELS = {"time": "times (s)", "change": "changes (ratio of two sides)"}
MEDIANS = "median error (%) by what was left out of the fit, or by other priors"
HIPCW = "hipcw_"
PAPERS = {True: "HiPCW 2021", False: "SIGMETRICS 2023"}
BAND_PCT = 10.0  # the goal
NUMBERS = ("published", "held_out", "error_pct", "section_error_pct", "ratio")
MEDIAN_NUMBERS = ("median_error_pct", "low_pct", "high_pct", "n")
ROWS = {  # names of rows there -> words; others are words
    "take-away": "take-away of the paper",
    "take-away, and what asks nearly the same": "take-away and those that ask nearly the same",
    "board with network": "board with one network",
    "HiPCW: main paper, one parameter": "paper (HiPCW 2021; one parameter fitted to it)",
    "not fitted, priors as chosen": "priors as chosen, nothing fitted",
    "fitted, priors widths doubled": "priors twice as wide, fitted",
    "not fitted, priors shifted 1": "priors shifted at random (1), nothing fitted",
    "fitted, priors shifted 1": "priors shifted at random (1), fitted",
    "not fitted, priors shifted 2": "priors shifted at random (2), nothing fitted",
    "fitted, priors shifted 2": "priors shifted at random (2), fitted",
}
FIELD = {"width": 320, "height": 220}

Row = dict[str, Any]
Spec = dict[str, Any]


def write_validation_spec(
    stem: str,
    title: str,
    note: str,
    palette: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv, which is read again: the same cells.

    Parameters
    ----------
    stem : path of the figure without its suffix
    title, note : of the figure; the note says that it is simulated
    palette : thing -> colour
    names : id -> what a published number is of, in words
    """
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    points = [_point(row, names) for row in rows if row["published_id"]]
    medians = [
        {**row, "of": LEFT_OUT[row["class_"]], "row": ROWS.get(row["left_out"], row["left_out"])}
        for row in rows
        if not row["published_id"]
    ]
    head = {"text": title, "subtitle": note, "anchor": "start"}
    spec = {
        "$schema": SCHEMA,
        "title": head,
        "data": _data(points, NUMBERS),
        "vconcat": [_points(points, palette), _medians(medians, palette)],
    }
    text = json.dumps(spec, indent=1, ensure_ascii=False)
    Path(f"{stem}.vl.json").write_text(text + "\n", encoding="utf-8")


def _point(row: Mapping[str, str], names: Mapping[str, str]) -> Row:
    """Return a point with its field, its paper, what it is of, and its ratio."""
    of_class = row["class"].removeprefix(HIPCW)
    return {
        "field": UNIT_PANELS.get(row["unit"]) or CLASS_PANELS.get(of_class, of_class),
        "paper": PAPERS[row["class"].startswith(HIPCW)],
        "of": names.get(row["published_id"], row["published_id"]),
        "ratio": float(row["held_out"]) / float(row["published"]),
        **{name: row[name] for name in ("published_id", "device", "unit", *NUMBERS[:4])},
    }


def _data(rows: Sequence[Mapping[str, Any]], numbers: Sequence[str]) -> Spec:
    """Return rows as CSV, which is shorter than JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    types = {name: "number" if name in numbers else "string" for name in names}
    return {"values": text.getvalue(), "format": {"type": "csv", "parse": types}}


def _tooltip(names: Sequence[str]) -> list[Spec]:
    return [{"field": name, "type": "nominal", "title": name} for name in names]


def _points(points: Sequence[Row], palette: Mapping[str, str]) -> Spec:
    """Return the fields of points, with the goal as a band."""
    grey, factor = palette["missing"], math.exp(BAND_PCT / 100.0)
    scale: Spec = {"type": "log", "zero": False}
    x = {"field": "published", "type": "quantitative", "scale": scale, "title": "published"}
    y = {"field": "ratio", "type": "quantitative", "scale": scale}
    shape = {"field": "paper", "type": "nominal", "scale": {"range": ["circle", "triangle-up"]}}
    goal = {"y": {"datum": 1.0 / factor}, "y2": {"datum": factor}}
    once: Spec = {"transform": [{"aggregate": [], "groupby": ["field"]}]}  # not for each point
    layers: list[Spec] = [
        {**once, "mark": {"type": "rect", "color": grey, "opacity": 0.25}, "encoding": goal},
        {**once, "mark": {"type": "rule", "color": grey}, "encoding": {"y": {"datum": 1.0}}},
        {
            "mark": {"type": "point", "size": 45, "filled": True, "opacity": 0.9},
            "encoding": {
                "x": x,
                "y": {**y, "title": "simulated / published"},
                "shape": {**shape, "title": None},
                "color": {"value": palette["stall"]},
                "tooltip": _tooltip(("of", "unit", *NUMBERS, "paper", "published_id")),
            },
        },
    ]
    fields = list(dict.fromkeys(point["field"] for point in points))
    return {
        "facet": {"field": "field", "type": "nominal", "title": None, "sort": fields},
        "columns": 2,
        "spec": {**FIELD, "layer": layers},
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }


def _medians(medians: Sequence[Row], palette: Mapping[str, str]) -> Spec:
    """Return the median errors by what was left out, with their intervals."""
    rows = list(dict.fromkeys(row["row"] for row in medians))
    y: Spec = {"field": "row", "type": "nominal", "title": None, "sort": rows}
    y |= {"axis": {"labelLimit": 320}}
    offset = {"field": "of", "type": "nominal"}
    range_ = [palette["compute"], palette["epoch_0"]]
    colour: Spec = {"field": "of", "type": "nominal", "title": None}
    colour |= {"scale": {"domain": list(LEFT_OUT.values()), "range": range_}}
    x = {"type": "quantitative", "scale": {"type": "log"}, "title": MEDIANS}
    place = {"y": y, "yOffset": offset, "color": colour}
    bars = {"x": {**x, "field": "low_pct"}, "x2": {"field": "high_pct"}, **place}
    tooltip = _tooltip(("row", "of", *MEDIAN_NUMBERS))
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": palette["missing"]},
            "encoding": {"x": {"datum": BAND_PCT}},
        },
        {
            "transform": [{"filter": "isValid(datum.low_pct)"}],
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": bars,
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
            "encoding": {"x": {**x, "field": "median_error_pct"}, **place, "tooltip": tooltip},
        },
    ]
    return {"data": _data(medians, MEDIAN_NUMBERS), "width": 460, "layer": layers}
