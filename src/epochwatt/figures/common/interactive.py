"""Write a figure's numbers as a Vega-Lite spec: `{panel}.vl.json`, from the rows of its CSV.

One builder for all figures. It takes the columns that differ, and makes of them bars in small
multiples, points in a plane, lines over time, or a strip for each unit. Hovering shows every column
of a row. Published numbers are marks at their value: filled where the fit has seen them, arrows for
bounds. Ratios and changes between runs have no bar: they are listed in `usermeta`. What
it does not copy is how the drawn panel looks: scales and groups may differ.
"""

import csv
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from epochwatt import columns
from epochwatt.figures.common import vega
from epochwatt.figures.common.vega import Spec, layer, name, number
from epochwatt.study.runs import TWIN
from epochwatt.text import label, origin

SCHEMA = vega.SCHEMA
STACK = ("stall_s", "compute_s", "overhead_s")  # from below
# in which bars may differ; what follows from those before it counts as one with them
DIFFERING = (
    *("device", "model", "instance", "num_workers", "storage", "batch_size", "power_mode"),
    *("dvfs", "state", "clock", "dataset_scale", "epoch_set", "method", "cache_policy"),
)
ACROSS = (  # which of them stands below the bars, where several have as many values
    *("clock", "state", "power_mode", "num_workers", "storage", "batch_size", "model", "device"),
    *("dataset_scale", "dvfs", "instance", "epoch_set", "method", "cache_policy"),
)
BESIDE = ("epoch_set", "dvfs")  # bars that differ in it stand beside each other
OVER = {"t_s": "training time (s)", "minibatch": "mini-batch"}  # columns that lines are drawn over
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


def write_spec(
    stem: str,
    title: str,
    backend: str,
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    verdict: str = "",
) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv, which is read again: the same cells.

    Parameters
    ----------
    stem : path of the panel without its suffix
    title, backend : of the panel; the subtitle says whether it was measured
    titles : model or device -> name for people
    palette : thing -> colour
    verdict : what of the panel does not hold: red below the title
    """
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    relations = [row for row in rows if row.get("is_relation") == "True"]
    rows = [row for row in rows if row not in relations]
    spec = Panel(rows, titles, palette).spec()
    if relations:
        filled = [{key: cell for key, cell in row.items() if cell} for row in relations]
        spec["usermeta"] = {"relations": filled}
    is_measured = backend != TWIN and "not measured" not in label(backend)
    subtitle = label(backend) if is_measured else origin([backend]).rstrip(":")
    if marked := [row for row in rows if row.get("published")]:
        bounds = all(row.get("published_qualifier") in SHAPES for row in marked)
        subtitle += "; black arrows: published bounds" if bounds else "; black marks: published"
        if {row.get("quantity") for row in rows} >= set(STACK):
            subtitle += ", from 0"
    if verdict:
        lines = textwrap.wrap(verdict, SUBTITLE_CHARACTERS)
        red = palette["warning"]
        vega.write(stem, title, [subtitle, *lines], spec, subtitleColor=red)
    else:
        vega.write(stem, title, subtitle, spec)


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
        filled = [row for row in rows if any(map(row.get, ("value", "published", "missing")))]
        self.rows = filled or list(rows)
        self.titles, self.palette = titles, palette
        self.black = palette.get("published", "#000000")
        self.quantities = ordered(row["quantity"] for row in self.rows if row.get("quantity"))
        self.has_marks = any(row.get("published") for row in self.rows)
        self.differing: list[str] = []  # factors that tell rows apart
        for factor in DIFFERING:
            if any(factor in row for row in self.rows):
                before = {tuple(row[n] for n in self.differing) for row in self.rows}
                after = {tuple(row[n] for n in (*self.differing, factor)) for row in self.rows}
                if len(after) > len(before):
                    self.differing.append(factor)

    def spec(self) -> Spec:
        """Return the spec without its head."""
        names = set(self.rows[0]) if self.rows else set()
        if not names >= {"quantity", "value"}:
            return dict(vega.NOTHING)
        if "on_front" in names:
            return self._plane()
        if over := [column for column in OVER if column in names]:
            return self._lines(over[0])
        return self._strips() if "epoch" in names else self._bars()

    # -- the four kinds ---------------------------------------------------------------------------

    def _bars(self) -> Spec:
        """Return bars: one factor below them, one beside, the others and the unit in panels."""
        is_stack = set(STACK) <= set(self.quantities)
        n_levels = {factor: len({row[factor] for row in self.rows}) for factor in self.differing}
        across = max(self.differing, key=lambda n: (n_levels[n], -ACROSS.index(n)), default="model")
        rest = [factor for factor in self.differing if factor != across]
        beside = next((factor for factor in BESIDE if factor in rest and not is_stack), "")
        if not is_stack and len({unit_of(q) for q in self.quantities}) < len(self.quantities):
            beside = "quantity"
        colour = "quantity" if is_stack else beside or ("model" if "model" in rest else across)
        self._set_panels([factor for factor in rest if factor != beside])
        values = self._values(across)
        angle = 0 if max(map(len, values)) * len(values) <= 24 else -40
        axis = {"labelAngle": angle, **self._labels(values)}
        at: Spec = {"x": name(across, columns.label(across), sort=values, axis=axis)}
        if beside:
            at["xOffset"] = {"field": beside, "sort": self._values(beside)}
        drawn = json.dumps(STACK if is_stack else self.quantities)
        bars = layer(
            {"type": "bar"},
            f"indexof({drawn}, datum.quantity) >= 0 && isValid(datum.value)",
            **at,
            y=number("value", self._title()),
            color=self._colour(colour, STACK if is_stack else None),
            order={"field": "place"},
            tooltip=self._tooltip(),
        )
        place = {"calculate": f"indexof({drawn}, datum.quantity)", "as": "place"}
        bars["transform"].append(place)
        layers = [bars, *self._marks(at)]
        if any(row.get("missing") for row in self.rows):  # a cross says why there is no number
            cross = {"type": "text", "text": "×", "dy": -8}
            cross["color"] = self.palette.get("missing", "#555555")
            kept = "isValid(datum.missing) && datum.missing != ''"
            tooltip = self._tooltip()
            layers.append(layer(cross, kept, x=at["x"], y={"datum": 0}, tooltip=tooltip))
        return self._panels(layers)

    def _plane(self) -> Spec:
        """Return points of two quantities, with the front of each network."""
        first, second = next(n for n in self.quantities if n != "e2e_s"), "e2e_s"
        by_run: dict[str, Row] = {}
        for row in self.rows:
            point = by_run.setdefault(row["run"], dict(row))
            point[row["quantity"]] = row["value"]
            point[f"published_{row['quantity']}"] = row.get("published", "")
            if not point.get("published"):
                point["published"] = row.get("published", "")
                point["seen_by_fit"] = row.get("seen_by_fit", "")
        for point in by_run.values():
            for column in ("quantity", "value", "missing", "published_id", "published_qualifier"):
                point.pop(column, None)
            for column in (first, second):  # where only one is published the other is ours
                is_there = point["published"]
                point[f"mark_{column}"] = is_there and (
                    point[f"published_{column}"] or point[column]
                )
        self.rows = list(by_run.values())
        self._set_panels([factor for factor in self.differing if factor != "power_mode"])
        plane = {"zero": False}
        x, y = (number(n, columns.axis_title(n), scale=plane) for n in (first, second))
        colour = self._colour("model")
        layers = [
            layer(
                {"type": "line", "opacity": 0.6},
                "datum.on_front === 'True'",
                x=x,
                y=y,
                color=colour,
                order={"field": first},
            ),
            layer(
                {"type": "point", "filled": True, "size": 60, "opacity": 1},
                x=x,
                y=y,
                color=colour,
                tooltip=self._tooltip(),
            ),
            layer(
                {"type": "text", "dy": -10, "fontSize": 10}, x=x, y=y, text={"field": "power_mode"}
            ),
        ]
        if any(row["published"] for row in self.rows):
            at = {"x": {**x, "field": f"mark_{first}"}, "y": {**y, "field": f"mark_{second}"}}
            layers.append(self._mark_layer(at, f"isValid(datum.mark_{first})"))
        numbers = [f"{a}{n}" for a in ("", "published_", "mark_") for n in (first, second)]
        return self._panels(layers, numbers)

    def _lines(self, over: str) -> Spec:
        """Return lines over time or mini-batches, broken between epochs, with their range."""
        self._set_panels([factor for factor in self.differing if factor != "epoch_set"])
        x = number(over, OVER[over])
        colour = self._colour("epoch" if "epoch" in self.rows[0] else "model")
        layers = []
        if "low" in self.rows[0]:
            ends = {"y": number("low"), "y2": {"field": "high"}}
            layers.append(layer({"type": "area", "opacity": 0.3}, x=x, **ends, color=colour))
        line = {"type": "line", "strokeWidth": 1.2}
        y = number("value", self._title())
        layers.append(layer(line, x=x, y=y, color=colour, tooltip=self._tooltip()))
        if self.has_marks:  # one line for the same of many rows
            once = ["panel", "published", "published_id", "epoch_set", "seen_by_fit"]
            rule = {"type": "rule", "strokeDash": [5, 3], "color": self.black}
            kept = "isValid(datum.published)"
            marks = layer(rule, kept, y=number("published"), tooltip=vega.tooltip(once[1:]))
            marks["transform"].append({"aggregate": [], "groupby": once})
            layers.append(marks)
        return self._panels(layers, (over, "low", "high"))

    def _strips(self) -> Spec:
        """Return a stroke for each epoch, a strip for each unit, and the medians."""
        self._set_panels([n for n in self.differing if n not in ("instance", "epoch_set")])
        x = name("instance", columns.label("instance"), axis={"labelAngle": 0})
        y = number("value", self._title(), scale={"zero": False})
        median = {**y, "aggregate": "median"}
        layers = [
            layer(
                {"type": "tick", "opacity": 0.35},
                x=x,
                y=y,
                color=self._colour("model"),
                tooltip=self._tooltip(),
            ),
            layer(
                {"type": "point", "shape": "stroke", "size": 700, "strokeWidth": 2},
                x=x,
                y=median,
                color={"value": self.palette.get("violin_median", "#000000")},
                tooltip=[{**median, "title": "median"}],
            ),
        ]
        return self._panels([*layers, *self._marks({"x": x})])

    # -- their parts ------------------------------------------------------------------------------

    def _set_panels(self, factors: Sequence[str]) -> None:
        """Write into each row to which small multiple it belongs: these factors, and the unit."""
        plain = {"num_workers": "{} workers", "batch_size": "batch {}"}
        plain |= {"dvfs": "DVFS {}", "dataset_scale": "{} × the data"}
        has_units = len({unit_of(quantity) for quantity in self.quantities}) > 1
        first: dict[tuple[str, ...], str] = {}  # quantities of one unit share a multiple
        for row in self.rows:
            words = [
                plain[n].format(row[n]) if n in plain else self.titles.get(row[n], row[n])
                for n in factors
            ]
            if has_units and "quantity" in row:
                words.append(columns.axis_title(row["quantity"]).removeprefix("predicted "))
                key = (*(row[n] for n in factors), unit_of(row["quantity"]))
                row["panel"] = first.setdefault(key, " · ".join(words))
            else:
                row["panel"] = " · ".join(words)
            row["shape"] = SHAPES.get(row.get("published_qualifier", ""), "diamond")

    def _panels(self, layers: list[Spec], numbers: Iterable[str] = ()) -> Spec:
        """Return the layers in small multiples, or alone where there is one."""
        panels = ordered(row.get("panel", "") for row in self.rows)
        data = vega.csv_data(self.rows, ("value", "published", "published_hi", *numbers))
        if len(panels) == 1:
            return {"data": data, "width": "container", "height": 320, "layer": layers}
        by, n_columns = name("panel", sort=panels), min(COLUMNS, len(panels))
        shown = vega.multiples(by, layers, WIDTH, HEIGHT, n_columns, "x", "y", "xOffset")
        return {"data": data, **shown}

    def _title(self) -> str | None:
        """Return the title of the axis; of several units each multiple says its own."""
        if set(STACK) <= set(self.quantities):
            return "time of an epoch (s)"
        units = {unit_of(quantity) for quantity in self.quantities}
        return columns.axis_title(self.quantities[0]) if len(units) == 1 else None

    def _tooltip(self) -> list[Spec]:
        """Return all columns that have something in them."""
        names = ordered(key for row in self.rows for key, cell in row.items() if cell)
        return vega.tooltip(n for n in names if n not in LEFT_OUT and not n.startswith("mark_"))

    def _values(self, column: str) -> list[str]:
        """Return the cells of a column in order: numbers by size, others as they come."""
        values = ordered(row[column] for row in self.rows)
        try:
            return sorted(values, key=float)
        except ValueError:
            return values

    def _colour(self, column: str, values: Sequence[str] | None = None) -> Spec:
        """Return the encoding of colour by a column, in the colours of the palette."""
        values = list(values or self._values(column))
        spare = iter(OTHERS * (1 + len(values) // len(OTHERS)))
        colours = []
        for value in values:
            key = COLOURS.get(value, value.removesuffix("_s"))
            if column == "state":
                key = f"state_{value}"
            elif column == "epoch":
                key = "epoch_0" if value == "0" else "epoch_1_plus"
            colours.append(self.palette.get(key) or self.palette.get(next(spare), "#777777"))
        if len(values) == 1:
            return {"value": colours[0]}
        legend: Spec = {"orient": "top", "title": None, **self._labels(values)}
        if column == "state":
            expression = f"{json.dumps(STATES)}[datum.label] || datum.label"
            legend |= {"labelExpr": expression, "labelLimit": 200, "columns": 2}
        scale = {"domain": values, "range": colours}
        return name(column, columns.label(column), scale=scale, legend=legend)

    def _labels(self, values: Sequence[str]) -> Spec:
        """Return how a column's cells are shown to people."""
        shown = {value: self.titles.get(value, value) for value in values}
        shown |= {value: columns.axis_title(value) for value in values if value in self.quantities}
        shown |= {"": "–", "null": "–"}
        return {"labelExpr": f"{json.dumps(shown, ensure_ascii=False)}[datum.label] || datum.label"}

    def _marks(self, at: Spec) -> list[Spec]:
        """Return the published numbers as marks at their value; ranges as rods."""
        if not self.has_marks:
            return []
        at = {**at, "y": number("published")}
        layers = [self._mark_layer(at, "isValid(datum.published)")]
        if any(row.get("published_hi") for row in self.rows):
            rod = {"type": "rule", "color": self.black}
            ends: dict[str, Any] = {**at, "y2": {"field": "published_hi"}}
            layers.append(layer(rod, "isValid(datum.published_hi)", **ends))
        return layers

    def _mark_layer(self, at: Spec, where: str) -> Spec:
        seen = {"condition": {"test": "datum.seen_by_fit === 'True'", "value": self.black}}
        return layer(
            {"type": "point", "size": 55, "strokeWidth": 1.6, "opacity": 1},
            where,
            **at,
            stroke={"value": self.black},
            fill={**seen, "value": "white"},
            shape={"field": "shape", "type": "nominal", "scale": None},
            tooltip=self._tooltip(),
        )


def ordered(values: Iterable[str]) -> list[str]:
    """Return the different values in the order in which they come."""
    return list(dict.fromkeys(values))


def unit_of(quantity: str) -> str:
    """Return a quantity's unit; what has none in columns.py shares that of its name."""
    return columns.unit(quantity) or quantity
