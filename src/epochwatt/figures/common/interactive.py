"""Write a figure's numbers as a Vega-Lite spec: `{panel}.vl.json`, from the rows of its CSV.

One builder for all figures. It takes the columns that differ, and makes of them bars in small
multiples, points in a plane, lines over time, or a strip for each unit. Hovering shows every column
of a row. Published numbers are marks at their value: filled where the fit has seen them, arrows for
bounds. Ratios and changes between runs have no bar: they are listed in `usermeta`. What
it does not copy is how the drawn panel looks: scales and groups may differ.
"""

import csv
import itertools
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from epochwatt import columns
from epochwatt.figures.common import vega
from epochwatt.figures.common.vega import Spec, layer, name, number
from epochwatt.study.runs import TWIN
from epochwatt.text import label, origin

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
WORDS = {  # factor -> how a small multiple names its value
    **{"num_workers": "{} workers", "batch_size": "batch {}", "dvfs": "DVFS {}"},
    "dataset_scale": "{} × the data",
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
WIDTH, HEIGHT, COLUMNS = 260, 200, 3  # of a small multiple; how many stand beside each other
VERDICT_LETTERS = 90  # of a line of it
FLAT_LETTERS, STEEP = 24, -40  # of all labels below bars; the angle of more, degrees
OURS = ("panel", "shape", "unit")  # columns that the CSV has not

Row = dict[str, str]


def write_spec(
    stem: str,
    title: str,
    backend: str,
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    verdict: str = "",
) -> None:
    """Write `stem`.vl.json from the rows of `stem`.csv; the `verdict` stands red below the title.

    `titles`: model or device -> name for people; `palette`: thing -> colour.
    """
    with open(f"{stem}.csv", newline="", encoding="utf-8") as handle:
        cells = list(csv.DictReader(handle))
    relations = [row for row in cells if row.get("is_relation") == "True"]
    rows = [row for row in cells if row.get("is_relation") != "True"]
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
    red = {"subtitleColor": palette["warning"]} if verdict else {}
    lines = [subtitle, *textwrap.wrap(verdict, VERDICT_LETTERS)]
    vega.write(stem, title, lines if verdict else subtitle, spec, **red)


class Panel:
    """Builds the spec of a panel from its rows and the factors that these differ in."""

    def __init__(
        self, rows: Sequence[Row], titles: Mapping[str, str], palette: Mapping[str, str]
    ) -> None:
        filled = [row for row in rows if any(map(row.get, ("value", "published", "missing")))]
        self.rows = filled or list(rows)
        self.titles, self.palette = titles, palette
        self.black = palette.get("published", "#000000")
        self.red = palette.get("warning", self.black)
        self.quantities = ordered(row["quantity"] for row in self.rows if row.get("quantity"))
        self.units = ordered(map(unit_of, self.quantities))
        self.has_marks = any(row.get("published") for row in self.rows)
        self.differing: list[str] = []  # factors that tell rows apart
        places: list[tuple[str, ...]] = [()] * len(self.rows)  # of each row, by the factors so far
        for factor in DIFFERING:
            if any(factor in row for row in self.rows):
                after = [
                    (*place, row[factor]) for place, row in zip(places, self.rows, strict=True)
                ]
                if len(set(after)) > len(set(places)):
                    self.differing.append(factor)
                    places = after

    def spec(self) -> Spec:
        """Return the spec without its head; the columns decide which of the four kinds it is."""
        names = set(self.rows[0]) if self.rows else set()
        if not names >= {"quantity", "value"}:
            return dict(vega.NOTHING)
        if "on_front" in names:
            return self._plane()
        for time_column in OVER:
            if time_column in names:
                return self._lines(time_column)
        return self._strips() if "epoch" in names else self._bars()

    # -- the four kinds ---------------------------------------------------------------------------

    def _bars(self) -> Spec:
        """Return bars: one factor on the x axis, one side by side, the others and units in panels.

        The x axis has the factor of the most values, of several the first in `ACROSS`.
        """
        is_stack = set(STACK) <= set(self.quantities)
        n_levels = {factor: len({row[factor] for row in self.rows}) for factor in self.differing}
        across = max(self.differing, key=lambda n: (n_levels[n], -ACROSS.index(n)), default="model")
        rest = [factor for factor in self.differing if factor != across]
        beside = next((factor for factor in BESIDE if factor in rest and not is_stack), "")
        if not is_stack and len(self.units) < len(self.quantities):
            beside = "quantity"
        colour = "quantity" if is_stack else beside or ("model" if "model" in rest else across)
        values = self._values(across)
        angle = 0 if max(map(len, values)) * len(values) <= FLAT_LETTERS else STEEP
        axis = {"labelAngle": angle, **self._labels(values)}
        position: Spec = {"x": name(across, columns.label(across), sort=values, axis=axis)}
        if beside:
            position["xOffset"] = {"field": beside, "sort": self._values(beside)}
        drawn = json.dumps(STACK if is_stack else self.quantities)

        def layers(tooltip: list[Spec]) -> Iterable[Spec]:
            is_bar = f"indexof({drawn}, datum.quantity) >= 0 && isValid(datum.value)"
            encoding = {
                **position,
                "y": number("value", "time of an epoch (s)" if is_stack else self._title()),
                "color": self._colour(colour, STACK if is_stack else None),
                "order": {"field": "place"},
            }
            bars = layer({"type": "bar"}, is_bar, **encoding, tooltip=tooltip)
            place = {"calculate": f"indexof({drawn}, datum.quantity)", "as": "place"}
            bars["transform"].append(place)
            yield bars
            yield from self._marks(position, tooltip)
            if any(row.get("missing") for row in self.rows):  # a cross says why there is no number
                cross = {"type": "text", "text": "×", "dy": -8}
                cross["color"] = self.palette.get("missing", "#555555")
                is_missing = "isValid(datum.missing) && datum.missing != ''"
                yield layer(cross, is_missing, x=position["x"], y={"datum": 0}, tooltip=tooltip)

        return self._panels([factor for factor in rest if factor != beside], layers)

    def _plane(self) -> Spec:
        """Return a point for each run in the plane of a quantity and E2E, with Pareto fronts.

        Replaces `rows` by one row per run, which has a column for each quantity.
        """
        axes = next(n for n in self.quantities if n != "e2e_s"), "e2e_s"
        points: list[Row] = []
        for run in ordered(row["run"] for row in self.rows):
            rows = {row["quantity"]: row for row in self.rows if row["run"] == run}
            marked = [row for row in rows.values() if row.get("published")]
            described = marked[0] if marked else next(iter(rows.values()))
            left_out = ("quantity", "value", "missing", "published_id", "published_qualifier")
            point = {key: cell for key, cell in described.items() if key not in left_out}
            point["is_off"] = str(any(row.get("is_off") == "True" for row in marked))
            for axis, row in rows.items():
                printed = row.get("published", "")
                point |= {axis: row["value"], f"published_{axis}": printed}
                # where only one is published the other is ours
                point[f"mark_{axis}"] = (printed or row["value"]) if marked else ""
            points.append(point)
        self.rows = points
        x, y = (number(n, columns.axis_title(n), scale={"zero": False}) for n in axes)
        colour, front = self._colour("model"), {"type": "line", "opacity": 0.6}
        point_mark = {"type": "point", "filled": True, "size": 60, "opacity": 1}
        letter = {"type": "text", "dy": -10, "fontSize": 10}

        def layers(tooltip: list[Spec]) -> Iterable[Spec]:
            order = {"field": axes[0]}
            yield layer(front, "datum.on_front === 'True'", x=x, y=y, color=colour, order=order)
            yield layer(point_mark, x=x, y=y, color=colour, tooltip=tooltip)
            yield layer(letter, x=x, y=y, text={"field": "power_mode"})
            if any(row.get("published") for row in points):
                marks = {
                    "x": {**x, "field": f"mark_{axes[0]}"},
                    "y": {**y, "field": f"mark_{axes[1]}"},
                }
                yield self._mark_layer(marks, f"isValid(datum.mark_{axes[0]})", tooltip)

        numbers = [f"{prefix}{n}" for prefix in ("", "published_", "mark_") for n in axes]
        factors = [factor for factor in self.differing if factor != "power_mode"]
        return self._panels(factors, layers, numbers)

    def _lines(self, over: str) -> Spec:
        """Return lines over the column `over`, coloured by epoch, else model, with their range."""
        x, y = number(over, OVER[over]), number("value", self._title())
        colour = self._colour("epoch" if "epoch" in self.rows[0] else "model")

        def layers(tooltip: list[Spec]) -> Iterable[Spec]:
            if "low" in self.rows[0]:
                ends = {"y": number("low"), "y2": {"field": "high"}}
                yield layer({"type": "area", "opacity": 0.3}, x=x, **ends, color=colour)
            line = {"type": "line", "strokeWidth": 1.2}
            yield layer(line, x=x, y=y, color=colour, tooltip=tooltip)
            if self.has_marks:  # one line for the many rows that repeat a published number
                distinct = [
                    "panel",
                    "published",
                    "published_id",
                    "epoch_set",
                    "seen_by_fit",
                    "is_off",
                ]
                rule = {"type": "rule", "strokeDash": [5, 3]}
                if_off = {"test": "datum.is_off === 'True'", "value": self.red}
                ink = {"condition": if_off, "value": self.black}
                hover, is_marked = vega.tooltip(distinct[1:]), "isValid(datum.published)"
                marks = layer(rule, is_marked, y=number("published"), color=ink, tooltip=hover)
                marks["transform"].append({"aggregate": [], "groupby": distinct})
                yield marks

        factors = [factor for factor in self.differing if factor != "epoch_set"]
        return self._panels(factors, layers, (over, "low", "high"))

    def _strips(self) -> Spec:
        """Return a tick for each epoch, a strip for each board, with a stroke at its median."""
        x = name("instance", columns.label("instance"), axis={"labelAngle": 0})
        y = number("value", self._title(), scale={"zero": False})
        median = {**y, "aggregate": "median"}
        stroke = {"type": "point", "shape": "stroke", "size": 700, "strokeWidth": 2}
        black = {"value": self.palette.get("violin_median", "#000000")}

        def layers(tooltip: list[Spec]) -> Iterable[Spec]:
            tick, colour = {"type": "tick", "opacity": 0.35}, self._colour("model")
            yield layer(tick, x=x, y=y, color=colour, tooltip=tooltip)
            yield layer(stroke, x=x, y=median, color=black, tooltip=[{**median, "title": "median"}])
            yield from self._marks({"x": x}, tooltip)

        return self._panels(
            [factor for factor in self.differing if factor not in ("instance", "epoch_set")], layers
        )

    # -- their parts ------------------------------------------------------------------------------

    def _panels(
        self,
        factors: Sequence[str],
        layers: Callable[[list[Spec]], Iterable[Spec]],
        numbers: Iterable[str] = (),
    ) -> Spec:
        """Return layers with their data, in small multiples of factors and unit if these differ.

        `layers` makes them, given the tooltip's encoding; `numbers` are further numeric columns.
        Gives each row its `panel` and `shape`.
        """
        titles: dict[tuple[str, ...], str] = {}  # quantities of one unit share a multiple
        for row in self.rows:
            words = [WORDS.get(n, "{}").format(self.titles.get(row[n], row[n])) for n in factors]
            if len(self.units) > 1 and "quantity" in row:
                words.append(columns.axis_title(row["quantity"]).removeprefix("predicted "))
                key = (*(row[n] for n in factors), unit_of(row["quantity"]))
                row["panel"] = titles.setdefault(key, " · ".join(words))
            else:
                row["panel"] = " · ".join(words)
            row["shape"] = SHAPES.get(row.get("published_qualifier", ""), "diamond")
        names = ordered(key for row in self.rows for key, cell in row.items() if cell)
        shown = vega.tooltip(n for n in names if n not in OURS and not n.startswith("mark_"))
        drawn, panels = list(layers(shown)), ordered(row["panel"] for row in self.rows)
        data = vega.csv_data(self.rows, ("value", "published", "published_hi", *numbers))
        if len(panels) == 1:
            return {"data": data, "width": "container", "height": 320, "layer": drawn}
        by, n_columns = name("panel", sort=panels), min(COLUMNS, len(panels))
        multiples = vega.multiples(by, drawn, WIDTH, HEIGHT, n_columns, "x", "y", "xOffset")
        return {"data": data, **multiples}

    def _title(self) -> str | None:
        """Return the title of the axis; None where multiples have several units in theirs."""
        return columns.axis_title(self.quantities[0]) if len(self.units) == 1 else None

    def _values(self, column: str) -> list[str]:
        """Return the cells of a column in order: numbers by size, others as they come."""
        values = ordered(row[column] for row in self.rows)
        try:
            return sorted(values, key=float)
        except ValueError:
            return values

    def _colour(self, column: str, values: Sequence[str] | None = None) -> Spec:
        """Return the colour encoding of a column's `values`, by default all, from the palette.

        Values without a colour of their own take those of `OTHERS` in turn.
        """
        values = list(values or self._values(column))
        spare_keys = itertools.cycle(OTHERS)
        colours = []
        for value in values:
            key = COLOURS.get(value, value.removesuffix("_s"))
            if column == "state":
                key = f"state_{value}"
            elif column == "epoch":
                key = "epoch_0" if value == "0" else "epoch_1_plus"
            colours.append(self.palette.get(key) or self.palette.get(next(spare_keys), "#777777"))
        if len(values) == 1:
            return {"value": colours[0]}
        legend: Spec = {"orient": "top", "title": None, **self._labels(values)}
        if column == "state":
            expression = f"{json.dumps(STATES)}[datum.label] || datum.label"
            legend |= {"labelExpr": expression, "labelLimit": 200, "columns": 2}
        scale = {"domain": values, "range": colours}
        return name(column, columns.label(column), scale=scale, legend=legend)

    def _labels(self, values: Sequence[str]) -> Spec:
        """Return the label expression of an axis or legend that maps cells to titles."""
        shown = {value: self.titles.get(value, value) for value in values}
        shown |= {value: columns.axis_title(value) for value in values if value in self.quantities}
        shown |= {"": "–", "null": "–"}
        return {"labelExpr": f"{json.dumps(shown, ensure_ascii=False)}[datum.label] || datum.label"}

    def _marks(self, position: Spec, tooltip: list[Spec]) -> Iterable[Spec]:
        """Yield layers of published numbers: marks at their value, ranges as rules."""
        encoding = {**position, "y": number("published")}
        if self.has_marks:
            yield self._mark_layer(encoding, "isValid(datum.published)", tooltip)
        if any(row.get("published_hi") for row in self.rows):
            ends: Spec = {**encoding, "y2": {"field": "published_hi"}}
            rod = {"type": "rule", "color": self.black}
            yield layer(rod, "isValid(datum.published_hi)", **ends)

    def _mark_layer(self, position: Spec, condition: str, tooltip: list[Spec]) -> Spec:
        """Return a layer of published marks, of the rows that meet a condition over `datum`."""
        is_off, is_seen = "datum.is_off === 'True'", "datum.seen_by_fit === 'True'"
        if_off = {"test": is_off, "value": self.red}
        if_seen_off = {"test": f"{is_seen} && {is_off}", "value": self.red}
        if_seen = {"test": is_seen, "value": self.black}
        return layer(
            {"type": "point", "size": 55, "strokeWidth": 1.6, "opacity": 1},
            condition,
            **position,
            stroke={"condition": if_off, "value": self.black},
            fill={"condition": [if_seen_off, if_seen], "value": "white"},
            shape={"field": "shape", "type": "nominal", "scale": None},
            tooltip=tooltip,
        )


def ordered(values: Iterable[str]) -> list[str]:
    """Return the different values in the order in which they come."""
    return list(dict.fromkeys(values))


def unit_of(quantity: str) -> str:
    """Return a quantity's unit; what has none in columns.py shares that of its name."""
    return columns.unit(quantity) or quantity
