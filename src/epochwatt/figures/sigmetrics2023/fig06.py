"""Figure 6: clocks pinned (DVFS off) and left to the governors (on): time and energy (a), GPU load
(b), GPU clock over time (c), share of time at CPU clocks (d).

Source: SIGMETRICS 2023, section 5.5. The paper never mentions its panel b: the utilisation of the
GPU is drawn, the one quantity of section 5.5.2 that no other panel shows. Panels c and d are read
from the telemetry of the epochs.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from epochwatt.board.records import files
from epochwatt.board.records.shapes import NUMBER
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    draw_missing,
    draw_whisker,
    legend,
    marked_row,
    of_epochs,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    METRICS,
    Bracket,
    Related,
    bracket_handles,
    cells,
    draw_brackets,
    draw_mark,
    is_marked,
    mark,
    numbers_of,
    relation_row,
)
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.figures.common.series import Series, series

DVFS = ("off", "on")
HATCH = {"off": "", "on": "////"}
LINE: dict[str, dict[str, Any]] = {
    "off": {"linewidth": 4.0, "alpha": 0.35},
    "on": {"linewidth": 1.2},
}
# behind what is told of the run; dashes would be of what no fit has seen
BOUND_LINE: dict[str, Any] = {
    **{"linewidth": 0.7, "linestyle": (0, (1, 3)), "zorder": 1.5, "alpha": 0.7},
}
ROOM = 1.14  # of the time axis of panel c
SIDES = {"off": -0.22, "on": 0.22}  # of the bar beside its place
WIDTH = 0.34  # of a bar
TIME_AND_ENERGY = (("e2e_s", "E2E per epoch (s)"), ("energy_paper_wh", "energy per epoch (Wh)"))
CLOCK_WIDTH = 0.45  # of a bar of panel d; deviations stand between bars
CLOCK = "gpu_freq_mhz"
LONG = 12  # characters of a name that is broken
CLASSES = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 9.0))  # of the mode's CPU clock
BELOW_PEAK = 0.9  # of it: the class border that the paper tells of


def draw(job: Job) -> None:
    """Draw the panels."""
    later = of_epochs(job.runs, "1+")
    draw_time_and_energy(job, later)
    with job.panel("fig06b", later) as (figure, axes):
        rows = draw_bars(axes, job, "gpu_util_pct", "GPU utilisation (%)", later)
        axes.set_yticks(range(0, 101, 25))
        legend(axes, rows, job)
        job.save(figure, "fig06b", rows)
    drawn = as_long(of_epochs(job.runs))
    with job.panel("fig06c", drawn) as (figure, axes):
        facets = style.side_by_side(figure, axes, len(models_of(job)))
        job.save(figure, "fig06c", draw_gpu_clock(facets, drawn, job))
    on = [run for run in job.runs if run.factors["dvfs"] == "on"]
    with job.panel("fig06d", of_epochs(on, "1+")) as (figure, axes):
        job.save(figure, "fig06d", draw_cpu_clocks(axes, on, job))


def draw_time_and_energy(job: Job, later: Sequence[RunData]) -> None:
    """Draw panel a: time above, energy below, each network on axes of its own."""
    models, black = models_of(job), job.palette["published"]
    changes = job.related("e2e_s", "energy_wh", number_of=numbers_of(later))
    with job.panel("fig06a", later) as (figure, axes):
        axes.remove()
        grid = figure.subplots(2, max(len(models), 1), squeeze=False)
        rows: list[dict[str, Any]] = []
        for (quantity, y_label), line in zip(TIME_AND_ENERGY, grid, strict=True):
            for model, facet in zip(models, line, strict=False):
                runs = [run for run in later if run.factors["model"] == model]
                rows += draw_bars(facet, job, quantity, "", runs)
                facet.set_xticks([])
            line[0].set_ylabel(y_label)
        for model, facet in zip(models, grid[0], strict=False):
            facet.set_title(job.title(model))
        limits = {one.relation.metric: one for one in changes}  # of all networks, as ResNet's
        over: list[tuple[Axes, list[Bracket]]] = []
        relations = []
        for metric, line in zip(("e2e_s", "energy_wh"), grid, strict=True):
            for model, facet in zip(models, line, strict=False):
                change = change_pct(metric, rows, model)
                if metric in limits and change is not None:
                    bracket, row = _bracket(limits[metric], metric, model, change, job)
                    over.append((facet, [bracket]))
                    relations.append(row)
        lines = bracket_handles(changes, black)
        red = any(bracket.colour != black for _, brackets in over for bracket in brackets)
        legend(grid[0][0], rows + relations, job, lines, red=red)
        draw_brackets(over)
        job.save(figure, "fig06a", rows + relations)


def _bracket(
    limit: Related, metric: str, model: str, change: float, job: Job
) -> tuple[Bracket, dict[str, Any]]:
    """Return the bracket over both bars of a network, red where a claim fails by it; its row.

    Parameters
    ----------
    change : of the network, %
    """
    r = limit.relation
    within = f"within {r.as_printed.partition(' ')[0] or format(r.value, 'g')} %"
    red = job.fails("fig06a", model=model, metric=metric)
    ink = job.palette["warning" if red else "published"]
    words = [f"{within}, here {change:+.1f} %"]
    here = abs(change) if "|" in r.formula else change
    row = relation_row(replace(limit, here=(here,)))
    bracket = Bracket(SIDES["off"], SIDES["on"], words, ink, limit.linestyle)
    return bracket, {"model": model, **row}


def change_pct(metric: str, rows: Sequence[Mapping[str, Any]], model: str) -> float | None:
    """Return by how much a network's number changes with DVFS, %; None: it has not both."""
    values = {
        row["dvfs"]: row["value"]
        for row in rows
        if (METRICS.get(row["quantity"], row["quantity"]), row["model"]) == (metric, model)
    }
    if not values.get("off") or values.get("on") is None:
        return None
    return float(100.0 * (values["on"] / values["off"] - 1.0))


def models_of(job: Job) -> list[str]:
    """Return the models, in order."""
    return list(dict.fromkeys(run.factors["model"] for run in job.runs))


def draw_bars(
    axes: Axes, job: Job, quantity: str, y_label: str, shown: Sequence[RunData]
) -> list[dict[str, Any]]:
    """Draw a quantity with DVFS off and on for each model; return the CSV's rows."""
    models, rows = list(dict.fromkeys(run.factors["model"] for run in shown)), []
    missing: list[tuple[float, str]] = []
    colour = job.colours(*models, "missing", "published")
    for run in shown:
        model, dvfs = run.factors["model"], run.factors["dvfs"]
        at = models.index(model) + SIDES[dvfs]
        rows.append(marked_row(run, quantity, run.number(quantity), job))
        axes.bar(at, rows[-1]["value"] or 0.0, width=WIDTH, color=colour[model],
                 hatch=HATCH[dvfs], edgecolor="white", linewidth=0)  # fmt: skip
        missing.append((at, rows[-1]["missing"]))
        draw_whisker(axes, at, run, quantity, colour["missing"])
        draw_mark(axes, at, rows[-1], job.ink(rows[-1]), WIDTH)
    for dvfs in DVFS:  # the legend tells of hatches, not of colours
        axes.bar(0, 0, color=colour["missing"], hatch=HATCH[dvfs], edgecolor="white",
                 linewidth=0, label=f"DVFS {dvfs}")  # fmt: skip
    draw_missing(missing, axes, colour["missing"])
    _name_models(axes, models, job)
    axes.set_xlim(-0.6, len(models) - 0.3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(y_label)
    return rows


def _name_models(axes: Axes, models: list[str], job: Job) -> None:
    names = [job.title(model) for model in models]
    names = [n.replace("-", "-\n") if len(n) > LONG else n for n in names]
    axes.set_xticks(range(len(models)), names)
    axes.grid(visible=False, axis="x")


def as_long(runs: Sequence[RunData]) -> list[RunData]:
    """Return the runs with as many epochs as all of their model have: some go on for 15 hours."""
    n_epochs: dict[str, int] = {}
    for run in runs:
        if run.epochs:
            model = run.factors["model"]
            n_epochs[model] = min(n_epochs.get(model, len(run.epochs)), len(run.epochs))
    return [
        replace(run, epochs=run.epochs[: n_epochs.get(run.factors["model"], 0)]) for run in runs
    ]


def draw_gpu_clock(
    facets: Sequence[Axes], drawn: Sequence[RunData], job: Job
) -> list[dict[str, Any]]:
    """Draw the GPU's clock over the training time of each model; return the CSV's rows."""
    models, rows = models_of(job), []
    colour = job.colours(*models, "missing", "published", "epoch_bound")
    for axes, model in zip(facets, models, strict=True):
        missing, end = [], 0.0
        marks: dict[float, list[tuple[str, dict[str, Any]]]] = {}
        for run in (run for run in drawn if run.factors["model"] == model):
            dvfs = run.factors["dvfs"]
            folder = job.records.get(run.id, "")
            clock = series(run, folder, "board", "gpu_mhz")
            axes.plot(clock.t_s / 60, clock.values, color=colour[model], **LINE[dvfs])
            missing.append((0.0, clock.missing))
            if dvfs == "on":
                for bound_s in clock.bounds_s:
                    axes.axvline(bound_s / 60, color=colour["epoch_bound"], **BOUND_LINE)
            published_cells = cells(mark(job.marks, run.factors, "gpu_freq_mhz"))
            end = max(end, clock.bounds_s[-1] / 60 if clock.bounds_s else 0.0)
            last = {**published_cells, "quantity": CLOCK, "value": _last(clock)}
            if is_marked(last):
                marks.setdefault(last["published"], []).append((dvfs, last))
            rows += [
                {
                    **csv_row(run, "gpu_mhz", Number(mhz, 1), "all", epoch=k, t_s=t),
                    **published_cells,
                }
                for t, mhz, k in zip(clock.t_s, clock.values, clock.epoch, strict=True)
            ]
        draw_missing(missing, axes, colour["missing"])
        axes.set_title(job.title(model))
        axes.set_ylim(0.0, max([axes.get_ylim()[1], *(1.06 * mhz for mhz in marks)]))
        axes.set_xlim(right=ROOM * axes.get_xlim()[1])  # for marks beside the last epoch
        _draw_clock_marks(axes, end, marks, job)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlabel("training time (min)")
    facets[0].set_ylabel("GPU clock (MHz)")
    _name_lines(facets[0], rows, colour, job)
    return rows


def _name_lines(
    axes: Axes, rows: Sequence[Mapping[str, Any]], colour: Mapping[str, str], job: Job
) -> None:
    """Draw the legend of panel c: it tells of lines, not of colours."""
    for dvfs in DVFS:
        axes.plot([], [], color=colour["missing"], label=f"DVFS {dvfs}", **LINE[dvfs])
    axes.plot([], [], color=colour["epoch_bound"], label="end of an epoch", **BOUND_LINE)
    legend(axes, rows, job)


def _draw_clock_marks(
    axes: Axes, end: float, marks: Mapping[float, list[tuple[str, dict[str, Any]]]], job: Job
) -> None:
    """Draw published clocks beside the last epoch, each once, and write with which DVFS it is.

    Parameters
    ----------
    end : of the last epoch, min
    marks : clock -> DVFS and row of the CSV of each run that it is of
    """
    for value, of_value in marks.items():
        for _, row in of_value:
            draw_mark(axes, end, row, job.ink(row))
        words = " and ".join(dict.fromkeys(dvfs for dvfs, _ in of_value))
        axes.annotate(
            words, (end, value), xytext=(6.0, -5.0), textcoords="offset points", ha="center",
            va="top", fontsize="x-small",
        )  # fmt: skip


def draw_cpu_clocks(axes: Axes, runs: Sequence[RunData], job: Job) -> list[dict[str, Any]]:
    """Draw which share of the time the CPU ran at classes of its clock; return the CSV's rows.

    A share is the mean over epochs 1+, as the published ones and the claims are.
    """
    keys = [f"clock_class_{n}" for n in range(len(CLASSES))]
    colour, rows = job.colours(*keys, "missing", "published"), []
    missing, drawn = [], set[str]()
    for at, run in enumerate(runs):
        folder, bottom = job.records.get(run.id, ""), 0.0
        clock = series(run, folder, "host", "cpu*_mhz")
        shares = clock.values / _peak_mhz(run, folder) if clock.values.size else clock.values
        n_later = len(set(clock.epoch[clock.epoch > 0].tolist()))
        reason = "" if n_later else clock.missing or "no epoch after the first"
        for key, (low, high) in zip(keys, CLASSES, strict=True):
            percent = _share_pct(clock, (shares >= low) & (shares < high))
            axes.bar(at, percent or 0.0, CLOCK_WIDTH, bottom, color=colour[key])
            drawn |= {key} if percent else set()
            bottom += percent or 0.0
            number = Number(percent, n_later, reason)
            rows.append(csv_row(run, "time_share_pct", number, "1+", clock=_class(low, high)))
        missing.append((at, reason))
        published_cells = cells(mark(job.marks, run.factors, "cpu_below_peak_time_pct"))
        number = Number(_share_pct(clock, shares < BELOW_PEAK), n_later, reason)
        rows.append({**csv_row(run, "cpu_below_peak_time_pct", number, "1+"), **published_cells})
        draw_mark(axes, at, rows[-1], job.ink(rows[-1]), CLOCK_WIDTH)
    draw_missing(missing, axes, colour["missing"])
    for key, (low, high) in zip(keys, CLASSES, strict=True):
        if key in drawn:
            axes.bar(0, 0, color=colour[key], label=_class(low, high))
    axes.set_xticks(range(len(runs)), [job.title(run.factors["model"]) for run in runs])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.4, max(len(runs), 1) - 0.25)  # for points beside the last bar
    axes.set_ylim(0, 100)
    axes.set_ylabel("share of the time of epochs 1+ (%)")
    legend(axes, rows, job)
    return rows


def _share_pct(clock: Series, inside: NDArray[np.bool_]) -> float | None:
    """Return the mean over epochs 1+ of the share of their samples; None: there are none."""
    later = dict.fromkeys(clock.epoch[clock.epoch > 0].tolist())
    of_epochs = [float(inside[clock.epoch == epoch].mean()) for epoch in later]
    return 100.0 * float(np.mean(of_epochs)) if of_epochs else None


def _last(clock: Series) -> float | None:
    """Return the mean of a clock over its last epoch, which its mark stands beside."""
    return float(clock.values[clock.epoch == clock.epoch[-1]].mean()) if clock.values.size else None


def _class(low: float, high: float) -> str:
    percent = f"{100.0 * low:.0f}"
    ends = f"{percent} % of peak and above", f"{percent} to {100.0 * high:.0f} % of peak"
    return ends[0] if high > 1 else ends[1]


def _peak_mhz(run: RunData, folder: str) -> float:
    """Return the CPU clock of the run's power mode, from the record of an epoch."""
    first = run.valid("all")[0]["epoch"]
    wanted = {"factors": {"power_mode_settings": {"cpu_mhz": NUMBER}}}
    record = files.read_json(os.path.join(folder, f"epoch-{first}", "record.json"), wanted)
    return float(record["factors"]["power_mode_settings"]["cpu_mhz"])
