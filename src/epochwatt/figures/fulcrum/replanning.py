"""Draw rates that change: rate and plan, longest latency and training, on one time axis."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.fulcrum.names import FIRST, NOTES, REPLANNING, TITLES
from epochwatt.figures.roofline.look import write_caption
from epochwatt.tables import read_table

TITLE = TITLES[REPLANNING]
WIDTH_IN, HEIGHT_IN = 9.0, 6.5
LOOKS = {  # way of planning -> words, colour, width: lines that lie on one another are all seen
    "oracle": ("oracle: knows all rates", "#000000", 3.6),
    "never": ("never: planned for the peak", "#E69F00", 2.6),
    "always": ("always, for the rate of the minute before", "#56B4E9", 1.6),
    "hysteresis": ("with hysteresis", "#D55E00", 0.7),
}
RATE, BUDGET = "#999999", "#CC0000"
FIELDS = {  # column -> label of its axis
    "rate_per_s": "requests/s",
    "gpu_mhz": "GPU clock (MHz)",
    "worst_s": "longest latency (s)",
    "trained_per_s": "training\n(mini-batches/s)",
}
NUMBERS = ("t_s", "max_latency_s", *FIELDS)
CAPTION = """Across: time. From above: the rate of requests to {infer}; the GPU's clock in the mode
taken; the longest latency of an answered request in each slot, and its budget (red); training of
{train}. Steady arrivals, played one by one.
Clocks take {switch} s to settle, in which nothing is trained. Modes are those that are the best for
some rate; the oracle chooses among the same ones (schedule/changing.py)."""


def draw_replanning(slots: str, style_file: str, stem: str) -> None:
    """Draw results/fulcrum/changing-slots.csv: SVG, PNG, CSV, caption and spec at `stem`.

    The first jobs are drawn, with arrivals that are not random; of the times that clocks may take
    to settle the middle one.
    """
    rows = [_parsed(row) for _, row in read_table(Path(slots)) if row["arrivals"] != "poisson"]
    times = sorted({row["switch_s"] for row in rows}, key=float)
    drawn = rows[0]["train"], rows[0]["infer"], times[len(times) // 2]
    rows = [row for row in rows if (row["train"], row["infer"], row["switch_s"]) == drawn]
    names = list(dict.fromkeys(row["rates"] for row in rows))
    settings = {
        "title": style.titled(TITLE, FIRST["simulated"]),
        "width_in": WIDTH_IN,
        "height_in": HEIGHT_IN,
    }
    with style.panel(style_file, settings, NOTES["simulated"]) as (figure, axes):
        axes.remove()
        grid = figure.subplots(len(FIELDS), len(names), squeeze=False, sharex="col", sharey="row")
        for column, name in enumerate(names):
            some = [row for row in rows if row["rates"] == name]
            for place, field in enumerate(FIELDS):
                _field(grid[place][column], some, field)
            grid[0][column].set_title(name, fontsize="small")
            grid[-1][column].set_xlabel("time (min)")
        for place, label in enumerate(FIELDS.values()):
            grid[place][0].set_ylabel(label)
            grid[place][0].set_ylim(bottom=0)  # of the whole row
        style.legend(figure, list(_handles()))
        style.save(figure, stem, rows)
    train, infer, switch_s = drawn
    caption = CAPTION.format(train=train, infer=infer, switch=f"{float(switch_s):g}")
    write_caption(stem, TITLE, caption, "simulated boards, not measured")
    _write_spec(stem, rows)


def _parsed(row: Mapping[str, str]) -> Cells:
    return {name: float(cell) if name in NUMBERS else cell for name, cell in row.items()}


def _field(axes: Axes, rows: Sequence[Cells], column: str) -> None:
    """Draw a column over time, a line for each way of planning."""
    for policy, (_, colour, width) in LOOKS.items():
        some = [row for row in rows if row["policy"] == policy]
        minutes = [row["t_s"] / 60 for row in some]
        if column == "rate_per_s":
            colour = RATE  # it is the same whoever plans
        if column == "worst_s" and policy == "oracle":
            axes.axhline(some[0]["max_latency_s"], color=BUDGET, linewidth=0.8)
        values = [row[column] for row in some]
        axes.step(minutes, values, where="post", color=colour, linewidth=width)
    axes.grid(visible=True, axis="both")


def _handles() -> Iterator[Line2D]:
    yield Line2D([], [], color=RATE, linewidth=2.5, label="rate of requests")
    yield Line2D([], [], color=BUDGET, label="budget of latency")
    for words, colour, width in LOOKS.values():
        yield Line2D([], [], color=colour, linewidth=width, label=words)


def _write_spec(stem: str, rows: Sequence[Cells]) -> None:
    """Write the interactive form: training over time, with what else is known of the slot."""
    lines = vega.layer(
        {"type": "line", "interpolate": "step-after", "point": True},
        x=vega.number("t_s", "time (s)"),
        y=vega.number("trained_per_s", "training (mini-batches/s)"),
        color={"field": "policy", "type": "nominal"},
        tooltip=vega.tooltip(("policy", *NUMBERS)),
    )
    fields = vega.multiples(vega.name("rates"), [lines], 640, 200, 1, "x")
    vega.write(stem, TITLE, NOTES["simulated"], {"data": {"values": list(rows)}, **fields})
