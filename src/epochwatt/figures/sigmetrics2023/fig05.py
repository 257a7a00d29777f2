"""Figure 5: how epochs of 15 hours and boards of one type spread, in time (a) and energy (b).

Source: SIGMETRICS 2023, section 5.4. Violins are distributions over the valid epochs after the
first, with the median inside. The paper does not say whether its violins hold epoch 0. The number
of epochs in 15 h is 15 h divided by the mean E2E of all valid epochs; the paper has it on the right
axes of both panels, here it stands below panel a. Beside the violins stand the spread that is
printed, and ours: of the boards' medians in time, as section 5.4.2 says, of all epochs of all
boards in energy, as 5.4.3 reads ("across device instances or over different epochs"). The paper
does not define the second, so that the spread of the boards' medians is told, too. "Over time" is
the epoch that is farthest from the median of its board (5.4.1).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, marked_row
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    Related,
    cells,
    draw_mark,
    relation_row,
    spread_pct,
)
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.published.numbers import SPREADS, Relation

HOURS_S = 15 * 3600.0
SPREAD_AT = 0.9, 1.45  # of our spread and of the published one, right of the last board
PUT_IN = " (put in, not predicted)"  # of spreads of simulated boards
OVER_TIME = "e2e_s"  # metric of the relations of section 5.4.1
PANELS = (
    ("fig05a", "e2e_s", 1.0, "E2E per epoch (s)", "median_e2e_s"),
    ("fig05b", "energy_paper_wh", 1e3, "energy per epoch (mWh)", "energy_wh"),
)

NUMBER: dict[str, Any] = {  # above our dot
    **{"xytext": (0.0, 3.5), "textcoords": "offset points", "fontsize": "x-small"},
    **{"ha": "center", "va": "bottom"},
}

Rows = list[dict[str, Any]]


def draw(job: Job) -> None:
    """Draw the panels."""
    types: dict[tuple[str, str], list[RunData]] = {}
    for run in job.runs:
        types.setdefault((run.factors["device"], run.factors["model"]), []).append(run)
    for panel, quantity, factor, y_label, metric in PANELS:
        counts = panel == "fig05a"
        later = [replace(r, epochs=[row for row in r.epochs if row["epoch"]]) for r in job.runs]
        with job.panel(panel, job.runs if counts else later) as (figure, axes):
            axes.remove()
            ratios = (2.2, 1.0) if counts else (1.0,)
            grid = figure.subplots(
                len(ratios), max(len(types), 1), squeeze=False, height_ratios=ratios
            )
            above, below = list(grid[0]), list(grid[-1])
            rows: Rows = []
            drawn: list[Related] = []
            for n, ((device, model), of_type) in enumerate(types.items()):
                rows += draw_units(of_type, above[n], job, quantity, factor)
                rows += draw_counts(of_type, below[n], job) if counts else []
                if spread := spread_of(of_type, job, metric, quantity):
                    _draw_spread(above[n], of_type, quantity, factor, spread, job)
                    below[n].set_xlim(above[n].get_xlim())
                    drawn.append(spread)
                    rows += _spread_rows(of_type, job, spread, counts=counts)
                title = f"{job.title(device)}, {job.title(model)}"
                above[n].set_title(title, fontsize="small")
            above[0].set_ylabel(y_label)
            if counts:
                below[0].set_ylabel("epochs\nin 15 h")
            if span := _share_scale(above[: len(types)], [*types.values()], quantity, factor):
                job.remark(panel, f"Axes do not begin at 0; each spans {span:.0f} %.")
            job.legend(figure, handles_of(drawn, job, counts=counts), rows)
            job.save(figure, panel, rows)


def _spread_rows(runs: Sequence[RunData], job: Job, spread: Related, *, counts: bool) -> Rows:
    """Return the CSV's rows of the spreads of a type.

    Parameters
    ----------
    counts : of panel a: medians of times, and the worst epoch; else of energies
    """
    if counts:
        over_time = spread_of(runs, job, OVER_TIME, "e2e_s")
        return [relation_row(one) for one in (spread, over_time) if one]
    medians = [
        np.array([np.median(v)]) for run in runs if (v := run.values("energy_paper_wh")).size
    ]
    of_medians = next(iter(spread_pct(SPREADS[1], medians)), None)
    row = {"device": runs[0].factors["device"], "model": runs[0].factors["model"]}
    row |= {"quantity": f"median_energy_wh {SPREADS[1]}", "value": of_medians, "missing": ""}
    row["is_relation"] = True
    return [relation_row(spread), row]


def handles_of(drawn: Sequence[Related], job: Job, *, counts: bool) -> list[Artist]:
    """Return the legend's entries of what is ours: violins, spreads, numbers of epochs."""
    grey, black = job.palette["missing"], job.palette["published"]
    of_what = "the boards' medians" if counts else "all epochs of all boards"
    put_in = PUT_IN if job.backend == TWIN else ""
    entries: list[Artist] = [
        Patch(facecolor=style.pale(grey), label="epochs 1+ of one board"),
        Line2D([], [], color=grey, linewidth=1.6, marker="_", label=f"spread of {of_what}{put_in}"),
    ]
    if drawn:
        line = drawn[0].linestyle
        look: dict[str, Any] = {"color": black, "linewidth": 1.6, "linestyle": line}
        entries.append(Line2D([], [], label="published spread", **look))
    if counts:
        dot: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4.5}
        entries.append(Line2D([], [], color=grey, label="epochs in 15 h", **dot))
    return entries


def _share_scale(
    fields: Sequence[Axes], types: Sequence[Sequence[RunData]], quantity: str, factor: float
) -> float:
    """Give all axes one span in % of their type's median, so that spreads can be compared.

    Returns
    -------
    the span, %; 0: nothing is drawn
    """
    ends: list[tuple[Axes, float, float, float]] = []
    for field, runs in zip(fields, types, strict=True):
        values = np.concatenate([run.values(quantity) * factor for run in runs])
        middle = float(np.median(values)) if values.size else 0.0
        if middle:
            low, high = (end / middle - 1.0 for end in field.get_ylim())
            ends.append((field, middle, low, high))
    if not ends:
        return 0.0
    lowest, highest = min(low for _, _, low, _ in ends), max(high for *_, high in ends)
    for field, middle, _, _ in ends:
        field.set_ylim(middle * (1.0 + lowest), middle * (1.0 + highest))
    return 100.0 * (highest - lowest)


def spread_of(runs: Sequence[RunData], job: Job, metric: str, quantity: str) -> Related | None:
    """Return what is printed of a type's spread and what it is here; None: nothing is printed."""
    printed = [r for r in job.relations if _is_spread(r, metric, runs[0])]
    boards = [run.values(quantity, "1+") for run in runs]
    if metric.startswith("median_"):
        boards = [np.array([np.median(values)]) for values in boards if values.size]
    here = spread_pct(_formula(metric), boards)
    return Related(printed[0], here, printed[0].id in job.seen) if printed and here else None


def _is_spread(relation: Relation, metric: str, run: RunData) -> bool:
    wanted = {name: run.factors[name] for name in ("device", "model")}
    config = relation.config_a
    return (relation.metric, relation.formula) == (metric, _formula(metric)) and all(
        config.get(name) == value for name, value in wanted.items()
    )


def _formula(metric: str) -> str:
    return SPREADS[2] if metric == OVER_TIME else SPREADS[1]


def _draw_spread(
    axes: Axes, runs: Sequence[RunData], quantity: str, factor: float, spread: Related, job: Job
) -> None:
    """Draw our spread and the published one as bars from the lowest value, right of the boards."""
    colour = job.colours("published", runs[0].factors["model"])
    values = [run.values(quantity) * factor for run in runs]
    values = [v for v in values if v.size]
    together = np.concatenate(values)
    ends = together
    if spread.relation.metric.startswith("median_"):
        ends = np.array([np.median(v) for v in values])
    foot = float(ends.min())
    heights = (float(np.ptp(ends)), spread.relation.value / 100.0 * float(np.median(ends)))
    looks: tuple[tuple[str, Any], ...] = (
        (colour[runs[0].factors["model"]], "-"),
        (job.ink({"published_id": spread.relation.id}), spread.linestyle),
    )
    for aside, height, (shade, line) in zip(SPREAD_AT, heights, looks, strict=True):
        at = len(runs) - 1 + aside
        axes.vlines(at, foot, foot + height, color=shade, linewidth=1.6, linestyles=line)
        axes.hlines([foot, foot + height], at - 0.15, at + 0.15, color=shade, linewidth=1.6)
    axes.set_xlim(-0.6, len(runs) - 1 + SPREAD_AT[1] + 0.4)
    names = [run.factors["instance"] for run in runs]
    places = [*range(len(runs)), *(len(runs) - 1 + aside for aside in SPREAD_AT)]
    axes.set_xticks(places, [*names, "ours", "paper"])
    for label in axes.get_xticklabels()[len(runs) :]:
        label.set(rotation=90, fontsize="x-small")


def draw_units(runs: Sequence[RunData], axes: Axes, job: Job, quantity: str, factor: float) -> Rows:
    """Draw a violin for each board of one type; return the CSV's rows.

    Parameters
    ----------
    factor : from the CSV's unit to that of the axis
    """
    runs = sorted(runs, key=lambda run: run.factors["instance"])
    colour = job.colours("missing", "violin_median", runs[0].factors["model"])
    rows, missing = [], []
    for at, run in enumerate(runs):
        values = run.values(quantity) * factor
        _violin(values, at, axes, colour[run.factors["model"]], colour["violin_median"])
        rows += [
            {**csv_row(run, quantity, Number(value, 1), "1+", epoch=epoch), **cells(None)}
            for epoch, value in _by_epoch(run, quantity)
        ]
        missing.append((at, run.number(quantity).missing))
    draw_missing(missing, axes, colour["missing"])
    _name_boards(axes, runs)
    return rows


def draw_counts(runs: Sequence[RunData], axes: Axes, job: Job) -> Rows:
    """Draw the number of epochs in 15 h of each board of one type; return the CSV's rows."""
    runs = sorted(runs, key=lambda run: run.factors["instance"])
    colour = job.colours("missing", runs[0].factors["model"])
    rows, grey = [_count(run, job) for run in runs], colour["missing"]
    for at, (run, row) in enumerate(zip(runs, rows, strict=True)):
        if row["value"] is not None:
            shade = colour[run.factors["model"]]
            axes.plot(at, row["value"], "o", markersize=4.5, color=shade, markeredgewidth=0)
            axes.annotate(f"{row['value']:.0f}", (at, row["value"]), **NUMBER, color=grey)
        draw_mark(axes, at, row, job.ink(row))
    _name_boards(axes, runs)
    axes.set_ylim(0, max(1.25 * axes.get_ylim()[1], 1.0))
    return rows


def _name_boards(axes: Axes, runs: Sequence[RunData]) -> None:
    axes.set_xlim(-0.6, len(runs) - 0.3)
    axes.set_xticks(range(len(runs)), [run.factors["instance"] for run in runs])
    axes.grid(visible=False, axis="x")


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
