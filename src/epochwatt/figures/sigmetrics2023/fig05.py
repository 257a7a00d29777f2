"""Figure 5: how epochs of 15 hours and boards of one type spread, in time (a) and energy (b).

Source: SIGMETRICS 2023, section 5.4. Epochs in 15 h are 15 h over the mean E2E. The spread is of
the boards' medians in time (5.4.2), of all epochs of all boards in energy, as 5.4.3 reads; that of
the medians is in the CSV, too. "Over time" is the epoch farthest from its board's median (5.4.1).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing
from epochwatt.figures.common.job import Job, Row
from epochwatt.figures.common.published import (
    COLUMNS,
    Plotted,
    Related,
    draw_mark,
    mark,
    spread_pct,
)
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.published.numbers import SPREADS

HOURS_S = 15 * 3600.0
SPREAD_AT = 0.9, 1.45  # of our spread and of the published one, right of the last board
PUT_IN = " (put in, not predicted)"  # of spreads of simulated boards
OVER_TIME = "e2e_s"  # metric of the relations of section 5.4.1
SPREAD_LINE: style.Look = {"linewidth": 1.6}
DOT: style.Look = {"marker": "o", "markersize": 4.5, "linestyle": "none", "markeredgewidth": 0}
NUMBER: style.Look = {  # above a dot
    **{"xytext": (0.0, 3.5), "textcoords": "offset points", "fontsize": "x-small"},
    **{"ha": "center", "va": "bottom"},
}


class Panel(NamedTuple):
    """Content of a panel."""

    name: str
    quantity: str
    factor: float  # from the unit of the CSV to that of the axis
    unit: str
    metric: str  # of the printed spread


PANELS = (
    Panel("fig05a", "e2e_s", 1.0, "s", "median_e2e_s"),
    Panel("fig05b", "energy_paper_wh", 1e3, "mWh", "energy_wh"),
)


def draw(job: Job) -> None:
    """Draw the panels."""
    types: dict[tuple[str, str], list[RunData]] = {}
    for run in job.runs:
        types.setdefault((run.factors["device"], run.factors["model"]), []).append(run)
    for runs in types.values():
        runs.sort(key=lambda run: run.factors["instance"])
    later = [replace(r, epochs=[row for row in r.epochs if row["epoch"]]) for r in job.runs]
    for panel in PANELS:
        counts = panel.name == "fig05a"
        with job.panel(panel.name, job.runs if counts else later) as (figure, axes):
            axes.remove()
            ratios = (2.2, 1.0) if counts else (1.0,)
            shape = len(ratios), max(len(types), 1)
            grid = figure.subplots(*shape, squeeze=False, height_ratios=ratios)
            rows: list[Row] = []
            for (top, *others), ((device, model), runs) in zip(grid.T, types.items(), strict=False):
                rows += draw_violins(runs, top, job, panel)
                for below in others:
                    rows += draw_counts(runs, below, job)
                if spread := spread_of(runs, job, panel.metric):
                    draw_spread(top, runs, panel, spread, job)
                    for below in others:
                        below.set_xlim(top.get_xlim())
                    rows.append(spread)
                    rows += further_spreads(runs, job, counts=counts)
                top.set_title(f"{job.title(device)}, {job.title(model)}", fontsize="small")
            grid[0, 0].set_ylabel(style.axis_title(panel.quantity, unit=panel.unit))
            for below in grid[-1]:
                below.set_xlabel("board")
            if counts:
                grid[1, 0].set_ylabel("epochs\nin 15 h")
            if span := share_scale(grid[0], [*types.values()], panel):
                job.remark(panel.name, f"Axes do not begin at 0; each spans {span:.0f} %.")
            job.drawn[panel.name].is_put_in = job.backend == TWIN
            spreads = [row for row in rows if isinstance(row, Related)]
            entries = handles_of(spreads[:1], job, counts=counts)
            job.legend(figure, entries, rows, change="")
            job.save(figure, panel.name, rows)


def draw_violins(runs: Sequence[RunData], axes: Axes, job: Job, panel: Panel) -> list[Row]:
    """Draw a violin for each board of one type; return the CSV's rows."""
    rows: list[Row] = []
    for at, run in enumerate(runs):
        values = run.values(panel.quantity) * panel.factor
        if np.unique(values).size > 1:
            drawn = axes.violinplot(values, [at], widths=0.8, showextrema=False)
            for body in drawn["bodies"]:  # type: ignore[attr-defined]
                colour = job.colour(run.factors["model"])
                body.set(facecolor=colour, edgecolor="none", alpha=0.8)
        if values.size:
            ends, colour = (at - 0.2, at + 0.2), job.colour("violin_median")
            axes.hlines(np.median(values), *ends, color=colour, linewidth=1.2)
        for epoch in run.valid("1+"):
            if (value := epoch[panel.quantity]) is not None:
                number = Number(value, 1)
                row = csv_row(run, panel.quantity, number, epoch=epoch["epoch"])
                rows.append(Plotted(row, None, ""))
    missing = [(at, run.number(panel.quantity).missing) for at, run in enumerate(runs)]
    draw_missing(missing, axes, job.colour("missing"))
    _name_boards(axes, runs)
    return rows


def draw_counts(runs: Sequence[RunData], axes: Axes, job: Job) -> list[Row]:
    """Draw 15 h over the mean time of all valid epochs, of each board of one type; return rows."""
    rows: list[Row] = []
    for at, run in enumerate(runs):
        number = run.number("e2e_s", "all")
        if number.value is not None:
            number = number._replace(value=HOURS_S / number.value)
        row = csv_row(run, "n_epochs_in_15h", number, "all", epoch=None)
        # printed once for all boards of the type, kept under its first instance
        of_each = mark(job.marks, {**run.factors, "instance": "d1"}, "n_epochs_in_15h", "all")
        of_each = of_each and job.judged(of_each, [number.value])
        plotted = Plotted(row, of_each, job.ink(of_each))
        if plotted.value is not None:
            axes.plot(at, plotted.value, color=job.colour(run.factors["model"]), **DOT)
            text, grey = f"{plotted.value:.0f}", job.colour("missing")
            axes.annotate(text, (at, plotted.value), **NUMBER, color=grey)
        draw_mark(axes, at, plotted)
        rows.append(plotted)
    _name_boards(axes, runs)
    axes.set_ylim(0, max(1.25 * axes.get_ylim()[1], 1.0))
    return rows


def _name_boards(axes: Axes, runs: Sequence[RunData]) -> None:
    axes.set_xlim(-0.6, len(runs) - 0.3)
    axes.set_xticks(range(len(runs)), [run.factors["instance"] for run in runs])
    axes.grid(visible=False, axis="x")


def values_of(runs: Sequence[RunData], metric: str) -> list[NDArray[np.floating]]:
    """Return the values of each board over epochs 1+; of a `median_` metric its median alone."""
    column = COLUMNS.get(metric, metric).removeprefix("median_")
    boards = [values for run in runs if (values := run.values(column)).size]
    return [np.array([np.median(v)]) for v in boards] if metric.startswith("median_") else boards


def spread_of(runs: Sequence[RunData], job: Job, metric: str) -> Related | None:
    """Pair the published spread of a device and network with ours, %; None: one is missing."""
    formula = SPREADS[2] if metric == OVER_TIME else SPREADS[1]
    here = spread_pct(formula, values_of(runs, metric))
    wanted = (metric, formula, runs[0].factors["device"], runs[0].factors["model"])
    if not here:
        return None
    for relation in job.relations:
        config = relation.config_a
        key = (relation.metric, relation.formula, config.get("device"), config.get("model"))
        if key == wanted:
            spread = job.relate(relation, here)
            if job.backend == TWIN:  # it is put in, so that nothing is judged by it
                printed = spread.mark._replace(is_off=None)
                spread = replace(spread, mark=printed, ink=job.ink(printed))
            return spread
    return None


def further_spreads(runs: Sequence[RunData], job: Job, *, counts: bool) -> list[Row]:
    """Return CSV rows of spreads not drawn: over time (panel a), of median energies (b)."""
    if counts:
        over_time = spread_of(runs, job, OVER_TIME)
        return [over_time] if over_time else []
    medians = values_of(runs, "median_energy_paper_wh")
    row: dict[str, Any] = {name: runs[0].factors[name] for name in ("device", "model")}
    row |= {"quantity": f"median_energy_wh {SPREADS[1]}"}
    row |= {"value": next(iter(spread_pct(SPREADS[1], medians)), None), "missing": ""}
    return [row | {"is_relation": True}]


def draw_spread(
    axes: Axes, runs: Sequence[RunData], panel: Panel, spread: Related, job: Job
) -> None:
    """Draw our spread and the published one as bars from the lowest value, right of the boards.

    The published bar is its per cent of our median.
    """
    values = np.concatenate(values_of(runs, panel.metric)) * panel.factor
    lowest, last = float(values.min()), len(runs) - 1
    ours, published = np.ptp(values), spread.relation.value / 100.0 * np.median(values)
    ours_x, published_x = (last + offset for offset in SPREAD_AT)
    solid: Any = "-"
    for x, height, colour, dash in (
        (ours_x, float(ours), job.colour(runs[0].factors["model"]), solid),
        (published_x, float(published), spread.ink, spread.linestyle),
    ):
        axes.vlines(x, lowest, lowest + height, color=colour, linestyles=dash, **SPREAD_LINE)
        axes.hlines([lowest, lowest + height], x - 0.15, x + 0.15, color=colour, **SPREAD_LINE)
    axes.set_xlim(-0.6, published_x + 0.4)
    names = [run.factors["instance"] for run in runs]
    axes.set_xticks([*range(len(runs)), ours_x, published_x], [*names, "ours", "paper"])
    for label in axes.get_xticklabels()[len(runs) :]:
        label.set(rotation=90, fontsize="x-small")


def share_scale(fields: Sequence[Axes], types: Sequence[Sequence[RunData]], panel: Panel) -> float:
    """Set y limits that span the same % of each type's median; return it, 0: nothing is drawn."""
    drawn = []
    for field, runs in zip(fields, types, strict=False):
        values = values_of(runs, panel.quantity)
        median = float(np.median(np.concatenate(values))) * panel.factor if values else 0.0
        if median:
            drawn.append((field, median))
    if not drawn:
        return 0.0
    limits = np.array([np.array(field.get_ylim()) / median for field, median in drawn])
    lowest, highest = float(limits.min()), float(limits.max())
    for field, median in drawn:
        field.set_ylim(median * lowest, median * highest)
    return 100.0 * (highest - lowest)


def handles_of(spreads: Sequence[Related], job: Job, *, counts: bool) -> list[Artist]:
    """Return the legend's entries: violins, spreads, numbers of epochs."""
    grey, black = job.palette["missing"], job.palette["published"]
    of_what = "the boards' medians" if counts else "all epochs of all boards"
    put_in = PUT_IN if job.backend == TWIN else ""
    label = f"spread of {of_what}{put_in}"
    entries: list[Artist] = [
        Patch(facecolor=style.pale(grey), label="epochs 1+ of one board"),
        Line2D([], [], color=grey, marker="_", label=label, **SPREAD_LINE),
    ]
    for spread in spreads:
        look = {
            "color": black,
            "linestyle": spread.linestyle,
            "label": "published spread, drawn from our lowest",
        }
        entries.append(Line2D([], [], **look, **SPREAD_LINE))
    if counts:
        entries.append(Line2D([], [], color=grey, label="epochs in 15 h", **DOT))
    return entries
