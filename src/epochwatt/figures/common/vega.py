"""Write Vega-Lite specs in few words: encodings, layers, small multiples, the file of a figure.

By hand and not with `altair`: its import takes 0.3 s of every figure's job, and the logic that
chooses marks would stay.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is loaded from there
WIDTH, HEIGHT = 300, 230  # of a small multiple
Spec = dict[str, Any]
Cells = dict[str, Any]  # of a mark that a figure draws, by column of its CSV


def number(field: str, title: str | None = "", **more: Any) -> Spec:
    """Return the encoding of a column of numbers; without a title where it is empty."""
    head = {} if title == "" else {"title": title}
    return {"field": field, "type": "quantitative", **head, **more}


def name(field: str, title: str | None = None, **more: Any) -> Spec:
    """Return the encoding of a column of names."""
    return {"field": field, "type": "nominal", "title": title, **more}


def tooltip(columns: Iterable[str]) -> list[Spec]:
    """Return what hovering shows: columns with their names."""
    return [name(column, column) for column in columns]


def layer(mark: str | Spec, *where: str, **encoding: Any) -> Spec:
    """Return a layer of marks, of the rows for which expressions over `datum` hold."""
    kept = {"transform": [{"filter": expression} for expression in where]} if where else {}
    return {**kept, "mark": mark, "encoding": encoding}


def multiples(
    by: Spec, layers: Sequence[Spec], width: int, height: int, columns: int, *independent: str
) -> Spec:
    """Return layers as small multiples by the column of encoding `by`, in rows of `columns`.

    `independent` names the scales (`x`, `y`) that each multiple has for itself.
    """
    spec: Spec = {
        "facet": by,
        "columns": columns,
        "spec": {"width": width, "height": height, "layer": list(layers)},
    }
    if independent:
        spec["resolve"] = {"scale": dict.fromkeys(independent, "independent")}
    return spec


def plane(
    rows: Sequence[Cells],
    x: Spec,
    y: Spec,
    colour: Spec | None = None,
    *,
    field: str = "",
    line: str = "",
    rod: tuple[str, str] | None = None,
    columns: int = 2,
    behind: Sequence[Spec] = (),
) -> Spec:
    """Return a scatter plot of rows: encodings `x`, `y` and `colour`, multiples by column `field`.

    Rows that share a value of the column `line` are joined. `rod` names the columns of both ends of
    an interval, drawn along the quantitative axis. Layers `behind` come first. Hovering shows every
    column. Without rows: `NOTHING`.
    """
    numeric = {axis["field"] for axis in (x, y) if axis["type"] == "quantitative"} | set(rod or ())
    filled = [{k: v for k, v in row.items() if v is not None and v != ""} for row in rows]
    shown = [{k: float(v) if k in numeric else v for k, v in row.items()} for row in filled]
    if not shown:
        return dict(NOTHING)
    encoding: Spec = {"x": x, "y": y} | ({"color": colour} if colour else {})
    layers = list(behind)
    if rod:
        axis = "x" if x["type"] == "quantitative" and y["type"] == "nominal" else "y"
        ends = {axis: {**encoding[axis], "field": rod[0]}, f"{axis}2": {"field": rod[1]}}
        rule = {"type": "rule", "size": 2}
        layers.append(layer(rule, f"isValid(datum.{rod[0]})", **{**encoding, **ends}))
    if line:
        layers.append(layer("line", f"isValid(datum.{line})", **encoding, detail={"field": line}))
    point = {"type": "point", "filled": True, "size": 60, "opacity": 0.9}
    hover = tooltip(dict.fromkeys(column for row in shown for column in row))
    layers.append(layer(point, **encoding, tooltip=hover))
    data: Spec = {"data": {"values": shown}}
    if not field:
        return {**data, "width": "container", "height": HEIGHT, "layer": layers}
    return data | multiples(name(field, sort=None), layers, WIDTH, HEIGHT, columns, "x", "y")


def csv_data(rows: Sequence[Mapping[str, object]], numbers: Iterable[str]) -> Spec:
    """Return rows as inline CSV data, a third of the size of JSON; columns `numbers` are parsed."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    kinds = {column: "number" if column in set(numbers) else "string" for column in names}
    return {"values": text.getvalue(), "format": {"type": "csv", "parse": kinds}}


NOTHING: Spec = {
    "data": {"values": [{"text": "no numbers"}]},
    "mark": "text",
    "encoding": {"text": {"field": "text"}},
}


def write(stem: str, title: str, subtitle: str | Sequence[str], body: Spec, **head: Any) -> None:
    """Write `stem`.vl.json; `head`: further keys of its title."""
    heading = {"text": title, "subtitle": subtitle, "anchor": "start", **head}
    spec = {"$schema": SCHEMA, "title": heading, **body}
    Path(f"{stem}.vl.json").write_text(json.dumps(spec, ensure_ascii=False) + "\n", "utf-8")
