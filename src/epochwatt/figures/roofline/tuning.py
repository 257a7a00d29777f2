"""Draw what a tuned mode saves and costs in time: each workload's choices, by origin."""

import itertools
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from epochwatt import columns
from epochwatt.figures.common import style, vega
from epochwatt.figures.frames import (
    Words,
    caption,
    numbers,
    read_texts,
    records,
    study_figure,
)
from epochwatt.figures.roofline.rooflines import COLOURS, MARKS, PEAK, TASKS
from epochwatt.text import PROVENANCES

TITLE = "Energy saved by tuning the mode, and what it costs in time"
FIELDS = ("simulated", "public")  # a field each
WIDTH_IN, HEIGHT_IN = 7.0, 3.9
PAPER_PCT = 15.0  # Pagoda, abstract: up to 15 % less energy of inference
LEAST = "least_energy"
KEPT = ["aim", "against", "cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "power_scope"]
KEPT += ["slower_pct", "saved_pct"]  # columns of the CSV, as the table has them
DASHES = {"train": "-", "infer": "--"}
SLOWER_PCT = (0, 2, 5, 10, 20, 50, 100, 200)  # labelled; from LINEAR_PCT on logarithmic
LINEAR_PCT = 5.0
AXES = {"simulated": "slower than MAXN (%)", "public": "slower than MAXN, else the fastest (%)"}


def draw_tuning(table: str, style_file: str, stem: str) -> None:
    """Draw results/pagoda/tuning.csv: SVG, PNG, CSV, caption and interactive spec at `stem`."""
    choices = read_texts(table)
    choices = choices[choices.aim.str.startswith(LEAST)]
    names = [name_of(row) for row in records(choices)]
    choices = choices.assign(mode=names, slower=numbers(choices.slower_pct))
    parts = []
    for origin in FIELDS:
        mine = choices[choices.provenance.eq(origin)]
        groups = [group for _, group in mine.groupby("mode", sort=False)]
        parts += [group.sort_values("slower", kind="stable") for group in groups]
    shown = pd.concat([choices[:0], *parts])
    shown = shown.assign(field=shown.provenance.map(PROVENANCES), what=shown.task)
    rows = records(shown[["provenance", "field", "mode", "what", *KEPT]])
    ending = "simulated boards, and boards that others measured"
    words = Words(
        TITLE,
        "simulated; measured by others",
        "left: simulated; right: measured by others",
        caption("tuning"),
        ending,
    )
    x, y = (vega.number(name, columns.axis_title(name)) for name in ("slower_pct", "saved_pct"))

    def spec() -> vega.Spec:
        return vega.plane(rows, x, y, vega.name("mode"), field="field")

    with study_figure(stem, style_file, words, (WIDTH_IN, HEIGHT_IN), rows, spec) as opened:
        figure, axes = opened
        places = style.side_by_side(figure, axes, len(FIELDS))
        top = numbers(shown.saved_pct).max() if len(shown) else PAPER_PCT
        for place, origin in zip(places, FIELDS, strict=True):
            _draw_origin(place, shown[shown.provenance.eq(origin)], origin)
            place.set_ylim(-2, 1.05 * top + 2)
        grey: style.Look = {"color": "#555555", "markersize": 4, "linewidth": 1}
        tasks = [
            Line2D([], [], marker=MARKS[task], ls=DASHES[task], label=word, **grey)
            for task, word in TASKS.items()
        ]
        label = "Pagoda, inference: up to 15 %"
        style.legend(figure, [*tasks, Line2D([], [], color=PEAK, linestyle=":", label=label)])


def _draw_origin(axes: Axes, rows: pd.DataFrame, origin: str) -> None:
    """Draw the choices of one origin, a colour for each network, or table of others."""
    networks = rows.workload if origin == "simulated" else rows["mode"]
    shades = dict(zip(networks.unique(), itertools.cycle(COLOURS), strict=False))
    for _, line in rows.assign(shade=networks.map(shades)).groupby("mode", sort=False):
        task = str(line.task.iloc[0])
        axes.plot(
            line.slower, numbers(line.saved_pct), MARKS[task], linestyle=DASHES[task],
            drawstyle="steps-post", color=line["shade"].iloc[0], markersize=3.5, linewidth=1,
        )  # fmt: skip
    axes.axhline(PAPER_PCT, color=PEAK, linestyle=":", linewidth=1)
    axes.set_xscale("symlog", linthresh=LINEAR_PCT)
    axes.set_xlim(-0.5, SLOWER_PCT[-1] * 1.1)
    axes.set_xticks(SLOWER_PCT, [str(pct) for pct in SLOWER_PCT])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES[origin])
    axes.set_ylabel("energy saved (%)")
    axes.grid(visible=True, axis="both")
    handles = [Line2D([], [], color=c, linewidth=3, label=name) for name, c in shades.items()]
    style.legend_above(axes, PROVENANCES[origin], handles, ncols=2, columnspacing=1.0)


def name_of(row: Mapping[str, str]) -> str:
    """Return what tells a line apart: the network with its task, or the others' table."""
    if row["provenance"] == "simulated":
        return f"{row['workload']}, {TASKS[row['task']]}"
    scope = ", GPU rail" if row["power_scope"] == "gpu" else ""
    board, size = row["device"].upper(), row["sweep"].rpartition("-")[2]
    amount = f", {int(size):,} pictures" if size.isdigit() else f", {row['workload']}"
    return f"{board}{amount}{scope}"
