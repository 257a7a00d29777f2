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
    """Return a layer of marks.

    Parameters
    ----------
    where : expressions that keep the rows of these marks, over `datum`
    """
    kept = {"transform": [{"filter": expression} for expression in where]} if where else {}
    return {**kept, "mark": mark, "encoding": encoding}


def multiples(
    by: Spec, layers: Sequence[Spec], width: int, height: int, columns: int, *independent: str
) -> Spec:
    """Return layers as small multiples of a column; `independent` scales differ between them."""
    spec: Spec = {
        "facet": by,
        "columns": columns,
        "spec": {"width": width, "height": height, "layer": list(layers)},
    }
    if independent:
        spec["resolve"] = {"scale": dict.fromkeys(independent, "independent")}
    return spec


def csv_data(rows: Sequence[Mapping[str, object]], numbers: Iterable[str]) -> Spec:
    """Return rows as data in CSV, which is a third of them in JSON."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    kinds = {column: "number" if column in set(numbers) else "string" for column in names}
    return {"values": text.getvalue(), "format": {"type": "csv", "parse": kinds}}


def read_rows(stem: str, numbers: Iterable[str] = ()) -> list[Cells]:
    """Return the rows of `stem`.csv without empty cells; `numbers` are columns that hold some."""
    wanted = set(numbers)
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        return [
            {k: float(v) if k in wanted else v for k, v in row.items() if v != ""}
            for row in csv.DictReader(handle)
        ]


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
