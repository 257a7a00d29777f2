"""Share a field for each pair of networks between figures: rows, titles, the interactive form."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.fulcrum.names import NOTES

WIDTH_IN, HEIGHT_IN = 9.0, 5.4
SHORT = {"resnet50-imagenet-adadelta": "resnet50", "shufflenetv2-cifar100-adadelta": "shufflenetv2"}


def by_field(rows: Sequence[Cells]) -> dict[str, list[Cells]]:
    """Return title -> rows of a field, which has a pair of networks on a device, or one plan."""
    fields: dict[str, list[Cells]] = {}
    devices = {row["device"] for row in rows}
    for row in rows:
        train, infer = (SHORT.get(row[name], row[name]) for name in ("train", "infer"))
        where = f"\n{row['device']}" if len(devices) > 1 else ""
        when = f"\n{row['plan']}" if row.get("plan") else ""
        fields.setdefault(f"{train} trains, {infer} serves{where}{when}", []).append(row)
    return fields


def places(figure: Figure, axes: Axes, n: int) -> list[Axes]:
    """Return axes for n fields, at least one, in rows of two or three."""
    return style.facets(figure, axes, max(n, 1), 2 if n in (2, 4) else 3)


def label_rows(drawn: Sequence[Axes], label: str) -> None:
    """Label the vertical axis of the first field of each row."""
    for place in drawn:
        spec = place.get_subplotspec()
        if spec is not None and spec.is_first_col():
            place.set_ylabel(label)


def write_spec(stem: str, title: str, provenance: str, rows: Sequence[Cells], **axes: Any) -> None:
    """Write the interactive form: lines by `color` in a field for each pair."""
    shown = [{**row, "field": title} for title, some in by_field(rows).items() for row in some]
    line = {"type": "line", "point": True}
    lines = vega.layer(line, **axes, tooltip=vega.tooltip(shown[0] if shown else ()))
    fields = vega.multiples(vega.name("field"), [lines], 300, 220, 2, "x", "y")
    vega.write(stem, title, NOTES[provenance], {"data": {"values": shown}, **fields})
