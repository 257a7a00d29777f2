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
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, legend, marked_row
from epochwatt.figures.common.brackets import DASHES
from epochwatt.figures.common.failing import handle
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import cells, draw_mark, seen_ids
from epochwatt.figures.common.relations import SIGNS, Related, relation_row, spread_pct
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.published.numbers import BOUNDS, SPREADS, Relation
from epochwatt.study.runs import TWIN

HOURS_S = 15 * 3600.0
PUT_IN = (
    "; put in, not predicted: how much boards of a type differ (as the paper prints) and how much "
    "the epochs of a board do (set by hand)"
)
SPREAD_AT = 0.9, 1.45  # of our spread and of the published one, right of the last board
UNDEFINED = "; the paper does not define its spread of energies"
OVER_TIME = "e2e_s"  # metric of the relations of section 5.4.1
HEAD_PT, HEAD_LINE_PT = 4.0, 8.5  # of spreads above a field: the first line, from line to line
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
    types = [[run for run in job.runs if _type_of(run) == t] for t in map(_type_of, job.runs)]
    types = [of_type for n, of_type in enumerate(types) if of_type not in types[:n]]
    for panel, quantity, factor, y_label, metric in PANELS:
        rows: Rows = []
        counts = panel == "fig05a"
        with job.panel(panel, job.runs if counts else _later(job.runs)) as (figure, axes):
            above, below = _rows_of_axes(figure, axes, max(len(types), 1), counts=counts)
            is_red, drawn = False, []
            for n, of_type in enumerate(types):
                rows += draw_units(of_type, above[n], job, quantity, factor)
                rows += draw_counts(of_type, below[n], job) if counts else []
                if spread := spread_of(of_type, job, metric, quantity):
                    _draw_spread(above[n], of_type, quantity, factor, spread, job)
                    below[n].set_xlim(above[n].get_xlim())
                    drawn.append(spread)
                of_type_rows, lines = spreads_of(of_type, job, spread, counts=counts)
                rows += of_type_rows
                is_red |= any(red for _, red in lines)
                _write_head(above[n], of_type, lines, job)
            above[0].set_ylabel(y_label)
            if counts:
                below[0].set_ylabel("epochs\nin 15 h")
            if span_pct := _share_scale(above[: len(types)], types, quantity, factor):
                style.add_to_note(figure, f"; axes not from 0, each spans {span_pct:.0f} %")
            if job.backend == TWIN:
                style.add_to_note(figure, PUT_IN)
            if drawn and not counts:
                style.add_to_note(figure, UNDEFINED)
            entries = handles_of(drawn, job, counts=counts)
            entries += [handle(job.palette["warning"])] if is_red else []
            legend(above[0], rows, job.palette["published"], entries)
            job.save(figure, panel, rows)


def _later(runs: Sequence[RunData]) -> list[RunData]:
    """Return the runs without their first epochs, so that the note counts what is drawn."""
    return [replace(run, epochs=[row for row in run.epochs if row["epoch"]]) for run in runs]


def spreads_of(
    runs: Sequence[RunData], job: Job, spread: Related | None, *, counts: bool
) -> tuple[Rows, list[tuple[str, bool]]]:
    """Return the CSV's rows of the spreads of a type, and a line for each: is it beyond a bound?

    Parameters
    ----------
    spread : that is drawn; None: nothing is printed of the type
    counts : of panel a: medians of times, and the worst epoch; else of energies
    """
    if spread is None:
        return [], []
    slack_pp = load_terms(Path(job.published).parents[1]).numbers["EPS_PP"]
    is_wrong = is_beyond(spread, slack_pp)
    if counts:
        over_time = spread_of(runs, job, OVER_TIME, "e2e_s")
        more = [over_time] if over_time else []
        by_hand = " (set by hand)" if job.backend == TWIN else ""
        lines = [(f"spread of medians {spread.sentence}", is_wrong)]
        lines += [(f"over time {one.sentence}{by_hand}", is_beyond(one, 0.0)) for one in more]
        return [relation_row(one) for one in (spread, *more)], lines
    medians = [
        np.array([np.median(v)]) for run in runs if (v := run.values("energy_paper_wh")).size
    ]
    of_medians = next(iter(spread_pct(SPREADS[1], medians)), None)
    row = {"device": runs[0].factors["device"], "model": runs[0].factors["model"]}
    row |= {"quantity": f"median_energy_wh {SPREADS[1]}", "value": of_medians, "missing": ""}
    lines = [(f"spread of all epochs {spread.sentence}", is_wrong)]
    put_in = " (put in)" if job.backend == TWIN else ""
    if of_medians is not None:
        lines.append((f"of the boards' medians: here {of_medians:.1f} %{put_in}", False))
    return [relation_row(spread), {**row, **cells(None), "is_relation": True}], lines


def _write_head(
    axes: Axes, runs: Sequence[RunData], lines: Sequence[tuple[str, bool]], job: Job
) -> None:
    """Write above a field of which boards and network it is, and a line for each spread."""
    first = runs[0].factors
    title = f"{job.title(first['device'])}, {job.title(first['model'])}"
    axes.set_title(title, fontsize="small", pad=HEAD_PT + HEAD_LINE_PT * len(lines))
    for n, (line, is_wrong) in enumerate(reversed(lines)):
        axes.annotate(
            line, (0.5, 1.0), xytext=(0.0, HEAD_PT + HEAD_LINE_PT * n), ha="center", va="bottom",
            xycoords="axes fraction", textcoords="offset points", fontsize="x-small",
            color=job.palette["warning" if is_wrong else "published"],
        )  # fmt: skip


def handles_of(drawn: Sequence[Related], job: Job, *, counts: bool) -> list[Artist]:
    """Return the legend's entries of what is ours: violins, medians, spreads, numbers of epochs."""
    grey = job.palette["missing"]
    look: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4.5}
    of_what = "the boards' medians" if counts else "all epochs of all boards"
    entries: list[Artist] = [
        Patch(facecolor=style.pale(grey), label="epochs 1+ of one board"),
        Line2D([], [], color=job.palette["violin_median"], linewidth=1.2, label="their median"),
        Line2D([], [], color=grey, linewidth=1.6, marker="_", label=f"spread of {of_what}"),
    ]
    for seen in dict.fromkeys(spread.seen_by_fit for spread in drawn):
        line: Any = "-" if seen else DASHES
        words = "published spread"
        if job.backend == TWIN:
            words += " (put in, not predicted)" if counts else " (put in as that of the medians)"
        black = job.palette["published"]
        entries.append(Line2D([], [], color=black, linewidth=1.6, linestyle=line, label=words))
    dot = Line2D([], [], color=grey, label="ours, epochs in 15 h", **look)
    return [*entries, dot] if counts else entries


def is_beyond(spread: Related, slack_pp: float) -> bool:
    """Say whether our spread is beyond a published bound by more than a tolerance, points."""
    relation = spread.relation
    return relation.qualifier in BOUNDS and spread.here[0] > relation.value + slack_pp


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


def _rows_of_axes(
    figure: Figure, axes: Axes, n: int, *, counts: bool
) -> tuple[list[Axes], list[Axes]]:
    """Return axes for violins and, below, for numbers of epochs where they are drawn."""
    axes.remove()
    ratios = (2.2, 1.0) if counts else (1.0,)
    grid = figure.subplots(len(ratios), n, squeeze=False, height_ratios=ratios)
    return list(grid[0]), list(grid[-1])


def _type_of(run: RunData) -> tuple[str, str]:
    return run.factors["device"], run.factors["model"]


def spread_of(runs: Sequence[RunData], job: Job, metric: str, quantity: str) -> Related | None:
    """Return what is printed of a type's spread and what it is here; None: nothing is printed.

    Parameters
    ----------
    metric : of the relation
    quantity : column of `epochs.csv`
    """
    printed = [r for r in job.relations if _is_spread(r, metric, runs[0])]
    boards = [run.values(quantity, "1+") for run in runs]
    if metric.startswith("median_"):
        boards = [np.array([np.median(values)]) for values in boards if values.size]
    here = spread_pct(_formula(metric), boards)
    seen = seen_ids(job.twin, job.backend)
    return Related(printed[0], here, printed[0].id in seen) if printed and here else None


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
        (colour["published"], "-" if spread.seen_by_fit else DASHES),
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
    colour = job.colours("published", "missing", runs[0].factors["model"])
    rows, grey = [_count(run, job) for run in runs], colour["missing"]
    for at, (run, row) in enumerate(zip(runs, rows, strict=True)):
        if row["value"] is not None:
            shade = colour[run.factors["model"]]
            axes.plot(at, row["value"], "o", markersize=4.5, color=shade, markeredgewidth=0)
            axes.annotate(f"{row['value']:.0f}", (at, row["value"]), **NUMBER, color=grey)
        draw_mark(axes, at, row, colour["published"])
    if rows and rows[0]["published"] is not None:
        sign, value = SIGNS.get(rows[0]["published_qualifier"], ""), rows[0]["published"]
        axes.annotate(
            f"paper\n{sign}{value:g}", (len(runs) - 1, value), xytext=(13.0, 0.0), ha="left",
            va="center", textcoords="offset points", fontsize="x-small", color=colour["published"],
        )  # fmt: skip
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
