"""Figure 5: how epochs of 15 hours and boards of one type spread, in time (a) and energy (b).

Source: SIGMETRICS 2023, section 5.4. Violins are distributions over the valid epochs after the
first, with the median inside. The paper does not say whether its violins hold epoch 0. The number
of epochs in 15 h on the right axis is 15 h divided by the mean E2E of all valid epochs.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, legend, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import cells, draw_mark
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.study.runs import TWIN

HOURS_S = 15 * 3600.0
FACETS_APART = 0.06  # of a facet's width: the numbers of the axes between two stay apart
PUT_IN = "; how much units differ is put in as the paper prints it, not predicted"
PANELS = (
    ("fig05a", "e2e_s", "E2E per epoch (s)"),
    ("fig05b", "energy_paper_wh", "energy per epoch (Wh)"),
)


def draw(job: Job) -> None:
    """Draw the panels."""
    types = [[run for run in job.runs if _type_of(run) == t] for t in map(_type_of, job.runs)]
    types = [of_type for n, of_type in enumerate(types) if of_type not in types[:n]]
    for panel, quantity, y_label in PANELS:
        rows: list[dict[str, Any]] = []
        with job.panel(panel) as (figure, axes):
            facets = style.side_by_side(figure, axes, len(types))
            for facet, of_type in zip(facets, types, strict=True):
                right = facet.twinx()
                rows += draw_units(of_type, facet, right, job, quantity)
                first = of_type[0].factors
                facet.set_title(f"{job.title(first['device'])}\n{job.title(first['model'])}")
            facets[0].set_ylabel(y_label)
            right.set_ylabel("epochs in 15 h, dots (all right axes)")
            layout = figure.get_layout_engine()
            if isinstance(layout, ConstrainedLayoutEngine):
                layout.set(wspace=FACETS_APART)
            if job.backend == TWIN:
                style.add_to_note(figure, PUT_IN)
            legend(facets[0], rows, job.palette["published"])
            job.save(figure, panel, rows)


def _type_of(run: RunData) -> tuple[str, str]:
    return run.factors["device"], run.factors["model"]


def draw_units(
    runs: list[RunData], axes: Axes, right: Axes, job: Job, quantity: str
) -> list[dict[str, Any]]:
    """Draw the boards of one type, a violin and a dot each; return the CSV's rows."""
    runs = sorted(runs, key=lambda run: run.factors["instance"])
    colour = job.colours("missing", "published", "violin_median", runs[0].factors["model"])
    rows, missing = [], []
    for at, run in enumerate(runs):
        values = run.values(quantity)
        _violin(values, at, axes, colour[run.factors["model"]], colour["violin_median"])
        rows += [
            {**csv_row(run, quantity, Number(value, 1), "1+", epoch=epoch), **cells(None)}
            for epoch, value in _by_epoch(run, quantity)
        ]
        missing.append((at, run.number(quantity).missing))
        rows.append(_count(run, job))
        if rows[-1]["value"] is not None:
            dot = colour[run.factors["model"]]
            right.plot(at, rows[-1]["value"], "o", markersize=4.5, color=dot, markeredgewidth=0)
        draw_mark(right, at + 0.25, rows[-1], colour["published"])
    draw_missing(missing, axes, colour["missing"])
    axes.set_xlim(-0.6, len(runs) - 0.3)
    axes.set_xticks(range(len(runs)), [run.factors["instance"] for run in runs])
    axes.grid(visible=False, axis="x")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.5 * (high - low))  # violins below, dots above
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    right.set_ylim(0, max([1.05 * right.get_ylim()[1], 1.0]))
    return rows


def _by_epoch(run: RunData, quantity: str) -> list[tuple[int, float]]:
    pairs = [(cells["epoch"], cells[quantity]) for cells in run.valid("1+")]
    return [(epoch, value) for epoch, value in pairs if value is not None]


def _count(run: RunData, job: Job) -> dict[str, Any]:
    """Return the CSV's row of the epochs in 15 h; the paper's number is that of each board."""
    number = run.number("e2e_s", "all")
    if number.value is not None:
        number = number._replace(value=HOURS_S / number.value)
    any_unit = RunData(run.id, {**run.factors, "instance": "d1"}, run.epochs)
    row = marked_row(any_unit, "n_epochs_in_15h", number, job, "all", epoch=None)
    return {**row, "instance": run.factors["instance"]}


def _violin(values: NDArray[np.floating], at: float, axes: Axes, colour: str, inner: str) -> None:
    """Draw one violin; a line where all values are one."""
    if np.unique(values).size > 1:
        drawn = axes.violinplot(values, [at], widths=0.8, showextrema=False)
        for body in drawn["bodies"]:  # type: ignore[attr-defined]
            body.set(facecolor=colour, edgecolor="none", alpha=0.8)
    if values.size:
        axes.hlines(np.median(values), at - 0.2, at + 0.2, color=inner, linewidth=1.2)
