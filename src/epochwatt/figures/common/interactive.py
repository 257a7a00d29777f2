"""A figure's numbers as a Vega-Lite spec: `{panel}.vl.json`, from the rows of its CSV.

One builder for all figures. It takes the columns that differ, and makes of them bars in small
multiples, points in a plane, lines over time, or a strip for each unit. Hovering shows every column
of a row. Published numbers are marks at their value: filled where the fit has seen them, arrows for
bounds. Ratios and changes between runs have no bar: they are listed in `usermeta`. What
it does not copy is how the drawn panel looks: scales and groups may differ.
"""

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.study.runs import TWIN
from epochwatt.text import label, origin

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is loaded from there
PARTS = ("stall_s", "compute_s", "overhead_s")  # of a stack, from below
FACTORS = (  # in which bars may differ; what follows from those before it counts as one with them
    *("device", "model", "instance", "num_workers", "storage", "batch_size", "power_mode"),
    *("dvfs", "state", "clock", "dataset_scale", "epoch_set", "method", "cache_policy"),
)
ACROSS = (  # which of them stands below the bars, where several have as many values
    *("clock", "state", "power_mode", "num_workers", "storage", "batch_size", "model", "device"),
    *("dataset_scale", "dvfs", "instance", "epoch_set", "method", "cache_policy"),
)
BESIDE = ("epoch_set", "dvfs")  # bars that differ in it stand beside each other
OVER = ("t_s", "minibatch")  # columns that a line is drawn over
WORDS = {
    "num_workers": "loader workers",
    "batch_size": "mini-batch size",
    "power_mode": "power mode",
    "t_s": "training time (s)",
    "minibatch": "mini-batch",
    "dataset_scale": "size of the data set",
    "epoch_set": "epochs",
    "clock": "clock, of the power mode's",
    "model": "network",
    "device": "board",
}
UNITS = {"wh": "Wh", "w": "W", "pct": "%", "iops": "1/s", "mhz": "MHz"}
NAMES = {  # of quantities, where the name of the column does not say it
    "n_epochs_in_15h": "epochs in 15 h",
    "read_iops": "disk reads (1/s)",
    "e2e_s_linear": "E2E, if it grew as the data do (s)",
    "cpu_below_peak_time_pct": "share of time below 90 % (%)",
}
STATES = {  # of an idle board: SIGMETRICS 2023, section 5.6
    "i": "(i) metrics logged, DVFS off",
    "ii": "(ii) nothing logged, DVFS off",
    "iii": "(iii) nothing logged, DVFS on",
    "iv": "(iv) asleep (Wake-on-LAN)",
}
COLOURS = {"0": "epoch_0", "1+": "epoch_1_plus", "all": "epoch_1_plus"}  # cell -> of the palette
OTHERS = ("clock_class_1", "hdd", "disk", "above_baseload", "overhead", "ssd")
SHAPES = {"less_than": "triangle-down", "at_most": "triangle-down", "at_least": "triangle-up"}
SUBTITLE_CHARACTERS = 110  # of a line below the title
WIDTH, HEIGHT, COLUMNS = 260, 200, 3  # of a small multiple; how many stand beside each other
LEFT_OUT = ("panel", "shape", "unit")  # ours, not of the CSV

Row = dict[str, str]
Spec = dict[str, Any]


def write_spec(
    stem: str,
    title: str,
    backend: str,
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    wrong: Sequence[str] = (),
) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv, which is read again: the same cells.

    Parameters
    ----------
    stem : path of the panel without its suffix
    title, backend : of the panel; the subtitle says whether it was measured
    titles : model or device -> name for people
    palette : thing -> colour
    wrong : claims of the panel that do not hold, a line each: red below the title
    """
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    relations = [row for row in rows if row.get("is_relation") == "True"]
    rows = [row for row in rows if row not in relations]
    spec = Panel(rows, titles, palette).spec()
    if relations:
        filled = [{name: cell for name, cell in row.items() if cell} for row in relations]
        spec["usermeta"] = {"relations": filled}
    is_measured = backend != TWIN and "not measured" not in label(backend)
    subtitle = label(backend) if is_measured else origin([backend]).rstrip(":")
    if marked := [row for row in rows if row.get("published")]:
        is_stack = {row.get("quantity") for row in rows} >= set(PARTS)
        bounds = all(row.get("published_qualifier") in SHAPES for row in marked)
        marks = "arrows: published bounds" if bounds else "marks: published"
        subtitle += f"; black {marks}" + (", from 0" if is_stack else "")
    heading: Spec = {"text": title, "subtitle": subtitle, "anchor": "start"}
    if wrong:
        lines = [line for one in wrong for line in textwrap.wrap(one, SUBTITLE_CHARACTERS)]
        heading |= {"subtitle": [subtitle, *lines], "subtitleColor": palette["warning"]}
    head = {"$schema": SCHEMA, "title": heading}
    text = json.dumps({**head, **spec}, indent=1, ensure_ascii=False)
    Path(f"{stem}.vl.json").write_text(text + "\n", encoding="utf-8")


class Panel:
    """The rows of a panel and what they differ in.

    Parameters
    ----------
    rows : of its CSV
    titles, palette : as for `write_spec`
    """

    def __init__(
        self, rows: Sequence[Row], titles: Mapping[str, str], palette: Mapping[str, str]
    ) -> None:
        self.rows = [
            row for row in rows if any(row.get(k) for k in ("value", "published", "missing"))
        ]
        self.rows = self.rows or list(rows)
        self.titles, self.palette = titles, palette
        self.differing = self._differing()

    def spec(self) -> Spec:
        """Return the spec without its head."""
        names = set(self.rows[0]) if self.rows else set()
        if not names >= {"quantity", "value"}:
            return self._notice()
        if "on_front" in names:
            return self._plane()
        if over := [name for name in OVER if name in names]:
            return self._lines(over[0])
        if "epoch" in names:
            return self._strips()
        return self._bars()

    def _notice(self) -> Spec:
        values = [{"text": "no numbers"}]
        return {"data": {"values": values}, "mark": "text", "encoding": {"text": {"field": "text"}}}

    def _differing(self) -> list[str]:
        """Return the factors that tell rows apart; none that follows from the ones before it."""
        chosen: list[str] = []
        for name in FACTORS:
            if any(name in row for row in self.rows):
                before = {tuple(row[n] for n in chosen) for row in self.rows}
                after = {tuple(row[n] for n in (*chosen, name)) for row in self.rows}
                chosen += [name] if len(after) > len(before) else []
        return chosen

    # -- the four kinds ---------------------------------------------------------------------------

    def _bars(self) -> Spec:
        """Return bars: one factor below them, one beside, the others and the unit in panels."""
        quantities = ordered(row["quantity"] for row in self.rows)
        is_stack = set(PARTS) <= set(quantities)
        n_levels = {name: len({row[name] for row in self.rows}) for name in self.differing}
        across = max(self.differing, key=lambda n: (n_levels[n], -ACROSS.index(n)), default="model")
        rest = [name for name in self.differing if name != across]
        beside = next((name for name in BESIDE if name in rest and not is_stack), "")
        if not is_stack and len({unit_of(q) for q in quantities}) < len(quantities):
            beside = "quantity"
        colour = "quantity" if is_stack else beside or ("model" if "model" in rest else across)
        self._set_panels([name for name in rest if name != beside])
        x: Spec = {"field": across, "type": "nominal", "title": word(across), "sort": None}
        values = self._values(across)
        letters = max(map(len, values)) * len(values)
        x |= {"axis": {"labelAngle": 0 if letters <= 24 else -40, **self._labels(values)}}
        x["sort"] = values
        offset = {"xOffset": {"field": beside, "sort": self._values(beside)}} if beside else {}
        drawn = list(PARTS) if is_stack else quantities
        shown = f"indexof({json.dumps(drawn)}, datum.quantity) >= 0 && isValid(datum.value)"
        layers: list[Spec] = [
            {
                "transform": [
                    {"filter": shown},
                    {"calculate": f"indexof({json.dumps(drawn)}, datum.quantity)", "as": "place"},
                ],
                "mark": {"type": "bar"},
                "encoding": {
                    "x": x,
                    **offset,
                    "y": {"field": "value", "type": "quantitative", "title": self._title()},
                    "color": self._colour(colour, drawn if colour == "quantity" else None),
                    "order": {"field": "place"},
                    "tooltip": self._tooltip(),
                },
            }
        ]
        layers += self._marks({"x": x, **offset})
        layers += self._missing(x)
        return self._panels(layers)

    def _plane(self) -> Spec:
        """Return points of two quantities, with the front of each network."""
        names = ordered(row["quantity"] for row in self.rows)
        first, second = next(n for n in names if n != "e2e_s"), "e2e_s"
        by_run: dict[str, Row] = {}
        for row in self.rows:
            point = by_run.setdefault(row["run"], dict(row))
            point[row["quantity"]] = row["value"]
            point[f"published_{row['quantity']}"] = row.get("published", "")
            if not point.get("published"):
                point["published"] = row.get("published", "")
                point["seen_by_fit"] = row.get("seen_by_fit", "")
        for point in by_run.values():
            for name in ("quantity", "value", "missing", "published_id", "published_qualifier"):
                point.pop(name, None)
            for name in (first, second):  # where only one is published the other is ours
                is_there = point["published"]
                point[f"mark_{name}"] = is_there and (point[f"published_{name}"] or point[name])
        self.rows = list(by_run.values())
        self._set_panels([name for name in self.differing if name != "power_mode"])
        x, y = (
            {"field": n, "type": "quantitative", "title": axis_title(n), "scale": {"zero": False}}
            for n in (first, second)
        )
        colour = self._colour("model")
        layers: list[Spec] = [
            {
                "transform": [{"filter": "datum.on_front === 'True'"}],
                "mark": {"type": "line", "opacity": 0.6},
                "encoding": {"x": x, "y": y, "color": colour, "order": {"field": first}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": self._tooltip()},
            },
            {
                "mark": {"type": "text", "dy": -10, "fontSize": 10},
                "encoding": {"x": x, "y": y, "text": {"field": "power_mode"}},
            },
        ]
        if any(row["published"] for row in self.rows):
            at = {
                "x": {**x, "field": f"mark_{first}"},
                "y": {**y, "field": f"mark_{second}"},
            }
            layers.append(self._mark_layer(at, f"isValid(datum.mark_{first})"))
        numbers = [f"{a}{n}" for a in ("", "published_", "mark_") for n in (first, second)]
        return self._panels(layers, numbers)

    def _lines(self, over: str) -> Spec:
        """Return lines over time or mini-batches, broken between epochs, with their range."""
        self._set_panels([name for name in self.differing if name != "epoch_set"])
        x = {"field": over, "type": "quantitative", "title": word(over)}
        y = {"field": "value", "type": "quantitative", "title": self._title()}
        colour = self._colour("epoch" if "epoch" in self.rows[0] else "model")
        layers: list[Spec] = [
            {
                "mark": {"type": "line", "strokeWidth": 1.2},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": self._tooltip()},
            }
        ]
        if "low" in self.rows[0]:
            ends = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
            band = {"mark": {"type": "area", "opacity": 0.3}}
            layers.insert(0, {**band, "encoding": {"x": x, **ends, "color": colour}})
        if any(row.get("published") for row in self.rows):  # one line for the same of many rows
            of_it = ["panel", "published", "published_id", "epoch_set", "seen_by_fit"]
            kept = [{"filter": "isValid(datum.published)"}, {"aggregate": [], "groupby": of_it}]
            y = {"field": "published", "type": "quantitative"}
            shown = [{"field": name, "type": "nominal", "title": name} for name in of_it[1:]]
            rule = {"type": "rule", "strokeDash": [5, 3], "color": self.palette["published"]}
            layers.append({"transform": kept, "mark": rule, "encoding": {"y": y, "tooltip": shown}})
        return self._panels(layers, (over, "low", "high"))

    def _strips(self) -> Spec:
        """Return a stroke for each epoch, a strip for each unit, and the medians."""
        rest = [name for name in self.differing if name not in ("instance", "epoch_set")]
        self._set_panels(rest)
        x = {"field": "instance", "type": "nominal", "title": "unit", "axis": {"labelAngle": 0}}
        y: Spec = {"field": "value", "type": "quantitative", "title": self._title()}
        y["scale"] = {"zero": False}
        layers: list[Spec] = [
            {
                "mark": {"type": "tick", "opacity": 0.35},
                "encoding": {
                    "x": x, "y": y, "color": self._colour("model"), "tooltip": self._tooltip()
                },
            },
            {
                "mark": {"type": "point", "shape": "stroke", "size": 700, "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": {**y, "aggregate": "median"},
                    "color": {"value": self.palette.get("violin_median", "#000000")},
                    "tooltip": [{**y, "aggregate": "median", "title": "median"}],
                },
            },
        ]  # fmt: skip
        return self._panels([*layers, *self._marks({"x": x})])

    # -- their parts ------------------------------------------------------------------------------

    def _set_panels(self, names: Sequence[str]) -> None:
        """Write into each row to which small multiple it belongs: these factors, and the unit."""
        several = len({unit_of(row["quantity"]) for row in self.rows if "quantity" in row}) > 1
        for row in self.rows:
            words = [self._cell(name, row[name]) for name in names]
            if several and "quantity" in row:
                words.append(axis_title(row["quantity"]).removeprefix("predicted "))
            row["panel"] = " · ".join(words)
            row["shape"] = SHAPES.get(row.get("published_qualifier", ""), "diamond")
        if several:  # quantities of one unit share a multiple, which bears the first one's name
            first: dict[tuple[str, ...], str] = {}
            for row in self.rows:
                key = (*(row[name] for name in names), unit_of(row.get("quantity", "")))
                row["panel"] = first.setdefault(key, row["panel"])

    def _cell(self, name: str, value: str) -> str:
        plain = {"num_workers": f"{value} workers", "batch_size": f"batch {value}"}
        plain |= {"dvfs": f"DVFS {value}", "dataset_scale": f"{value} × the data"}
        return plain.get(name, self.titles.get(value, value))

    def _panels(self, layers: list[Spec], numbers: Iterable[str] = ()) -> Spec:
        """Return the layers in small multiples, or alone where there is one."""
        panels = ordered(row.get("panel", "") for row in self.rows)
        data = self._data(("value", "published", "published_hi", *numbers))
        if len(panels) == 1:
            return {"data": data, "width": "container", "height": 320, "layer": layers}
        return {
            "data": data,
            "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
            "columns": min(COLUMNS, len(panels)),
            "spec": {"width": WIDTH, "height": HEIGHT, "layer": layers},
            "resolve": {"scale": dict.fromkeys(("x", "y", "xOffset"), "independent")},
        }

    def _data(self, numbers: Iterable[str]) -> Spec:
        """Return the rows as CSV, which is a third of them as JSON."""
        names = ordered(name for row in self.rows for name in row)
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        types = {name: "number" if name in set(numbers) else "string" for name in names}
        return {"values": text.getvalue(), "format": {"type": "csv", "parse": types}}

    def _title(self) -> str:
        """Return the title of the axis; of several units each multiple says its own."""
        names = ordered(row["quantity"] for row in self.rows)
        units = {unit_of(name) for name in names}
        if set(PARTS) <= set(names):
            return "time of an epoch (s)"
        return axis_title(names[0]) if len(units) == 1 else ""

    def _tooltip(self) -> list[Spec]:
        """Return all columns that have something in them."""
        names = ordered(name for row in self.rows for name in row if row[name] not in ("", None))
        shown = [name for name in names if name not in LEFT_OUT and not name.startswith("mark_")]
        return [{"field": name, "type": "nominal", "title": name} for name in shown]

    def _values(self, name: str) -> list[str]:
        """Return the cells of a column in order: numbers by size, others as they come."""
        values = ordered(row[name] for row in self.rows)
        try:
            return sorted(values, key=float)
        except ValueError:
            return values

    def _colour(self, name: str, values: Sequence[str] | None = None) -> Spec:
        """Return the encoding of colour by a column, in the colours of the palette."""
        values = list(values or self._values(name))
        spare = iter(OTHERS * (1 + len(values) // len(OTHERS)))
        colours = []
        for value in values:
            key = COLOURS.get(value, value.removesuffix("_s"))
            key = key if name != "state" else f"state_{value}"
            if name == "epoch":
                key = "epoch_0" if value == "0" else "epoch_1_plus"
            colours.append(self.palette.get(key) or self.palette.get(next(spare), "#777777"))
        encoding: Spec = {"field": name, "type": "nominal", "title": word(name)}
        encoding["scale"] = {"domain": values, "range": colours}
        encoding["legend"] = {"orient": "top", "title": None, **self._labels(values)}
        if name == "state":
            said = f"{json.dumps(STATES)}[datum.label] || datum.label"
            encoding["legend"] |= {"labelExpr": said, "labelLimit": 200, "columns": 2}
        if len(values) == 1:
            return {"value": colours[0]}
        return encoding

    def _labels(self, values: Sequence[str]) -> Spec:
        """Return how a column's cells are shown to people."""
        shown = {value: self.titles.get(value, value) for value in values}
        shown |= {value: axis_title(value) for value in values if value in self._quantities()}
        shown |= {"": "–", "null": "–"}
        return {"labelExpr": f"{json.dumps(shown, ensure_ascii=False)}[datum.label] || datum.label"}

    def _quantities(self) -> set[str]:
        return {row.get("quantity", "") for row in self.rows} - {""}

    def _marks(self, at: Spec) -> list[Spec]:
        """Return the published numbers as marks at their value; ranges as rods."""
        if not any(row.get("published") for row in self.rows):
            return []
        y = {"field": "published", "type": "quantitative"}
        layers = [self._mark_layer({**at, "y": y}, "isValid(datum.published)")]
        if any(row.get("published_hi") for row in self.rows):
            ends = {"y": y, "y2": {"field": "published_hi"}}
            rod = {"type": "rule", "color": self.palette.get("published", "#000000")}
            keep = [{"filter": "isValid(datum.published_hi)"}]
            layers.append({"transform": keep, "mark": rod, "encoding": {**at, **ends}})
        return layers

    def _mark_layer(self, at: Spec, keep: str) -> Spec:
        black = self.palette.get("published", "#000000")
        seen = {"condition": {"test": "datum.seen_by_fit === 'True'", "value": black}}
        return {
            "transform": [{"filter": keep}],
            "mark": {"type": "point", "size": 55, "strokeWidth": 1.6, "opacity": 1},
            "encoding": {
                **at,
                "stroke": {"value": black},
                "fill": {**seen, "value": "white"},
                "shape": {"field": "shape", "type": "nominal", "scale": None},
                "tooltip": self._tooltip(),
            },
        }

    def _missing(self, x: Spec) -> list[Spec]:
        """Return a cross below what has no number; its tooltip says why."""
        if not any(row.get("missing") for row in self.rows):
            return []
        colour = self.palette.get("missing", "#555555")
        return [
            {
                "transform": [{"filter": "isValid(datum.missing) && datum.missing != ''"}],
                "mark": {"type": "text", "text": "×", "dy": -8, "color": colour},
                "encoding": {"x": x, "y": {"datum": 0}, "tooltip": self._tooltip()},
            }
        ]


def ordered(values: Iterable[str]) -> list[str]:
    """Return the different values in the order in which they come."""
    return list(dict.fromkeys(values))


def word(name: str) -> str:
    """Return a column's name for people."""
    return WORDS.get(name, name.replace("_", " "))


def unit_of(quantity: str) -> str:
    """Return the last part of a quantity's name, its unit; what it is predicted as shares it."""
    return quantity.removesuffix("_linear").rpartition("_")[2]


def axis_title(quantity: str) -> str:
    """Return a quantity with its unit: `energy (Wh)`."""
    if quantity in NAMES:
        return NAMES[quantity]
    unit = unit_of(quantity)
    name = quantity.removesuffix(f"_{unit}").removesuffix("_paper")
    if name.endswith("_ms_per"):
        name, unit = f"{name.removesuffix('_ms_per')} of a mini-batch", "ms"
    name = name.replace("_", " ").replace("e2e", "E2E").replace("mape", "mean error")
    return f"{name} ({UNITS.get(unit, unit)})"
