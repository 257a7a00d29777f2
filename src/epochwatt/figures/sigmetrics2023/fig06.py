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

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    draw_missing,
    draw_whisker,
    legend,
    marked_row,
    of_epochs,
)
from epochwatt.figures.common.brackets import Bracket, bracket_handles, draw_brackets
from epochwatt.figures.common.failing import entries
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import METRICS, cells, draw_mark, is_marked, mark
from epochwatt.figures.common.relations import Related, numbers_of, relation_row
from epochwatt.figures.common.runs import Number, RunData, csv_row
from epochwatt.figures.common.series import Series, series
from epochwatt.published.numbers import BOUNDS, Relation
from epochwatt.records import files
from epochwatt.records.shapes import NUMBER

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
UNNAMED = "; the paper does not name its panel b's quantity"
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
        axes.set_yticks(range(0, 101, 25))  # what is above 100 % is room for deviations
        axes.spines["left"].set_bounds(0.0, 100.0)
        style.add_to_note(figure, UNNAMED)
        legend(axes, rows, job.palette["published"])
        on = [run for run in job.runs if run.factors["dvfs"] == "on"]
        job.save(figure, "fig06b", rows, job.epoch_table(gpu_clock_mhz(on, job)))
    drawn = as_long(of_epochs(job.runs))
    with job.panel("fig06c", drawn) as (figure, axes):
        facets = style.side_by_side(figure, axes, len(models_of(job)))
        job.save(figure, "fig06c", draw_gpu_clock(facets, drawn, job))
    on = [run for run in job.runs if run.factors["dvfs"] == "on"]
    with job.panel("fig06d", of_epochs(on, "1+")) as (figure, axes):
        rows = draw_cpu_clocks(axes, on, job)
        style.add_to_note(figure, empty_classes(rows))
        job.save(figure, "fig06d", rows, job.epoch_table(below_peak_pct(on, job)))


def draw_time_and_energy(job: Job, later: Sequence[RunData]) -> None:
    """Draw panel a: time above, energy below, each network on axes of its own.

    Parameters
    ----------
    later : runs, with their epochs 1+
    """
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
        held = [
            (facet, model, limits[metric], change)
            for metric, line in zip(("e2e_s", "energy_wh"), grid, strict=True)
            for model, facet in zip(models, line, strict=False)
            if metric in limits and (change := change_pct(metric, rows, model)) is not None
        ]
        wrong = [model for _, model, limit, change in held if is_beyond(limit.relation, change)]
        lines = bracket_handles(changes, black, job.backend)
        legend(grid[0][0], rows, black, [*lines, *entries(job, wrong)])
        rows += [_draw_change(*one, job) for one in held]
        job.save(figure, "fig06a", rows)


def _draw_change(axes: Axes, model: str, limit: Related, change: float, job: Job) -> dict[str, Any]:
    """Draw what DVFS changes as a bracket over both bars, red where it is beyond its bound.

    Returns
    -------
    its row of the CSV

    Parameters
    ----------
    change : of the network, %
    """
    r = limit.relation
    within = f"within {r.as_printed.partition(' ')[0] or format(r.value, 'g')} %"
    if r.as_printed and r.config_a["model"] == model:  # the numbers that it is printed with differ
        within += f" ({r.note.removeprefix('slip: ')})"
    words = f"{within}, here {change:+.1f} %"
    red = is_beyond(r, change)
    bracket = Bracket(SIDES["off"], SIDES["on"], [words], limit.seen_by_fit)
    draw_brackets(axes, [bracket], job.palette["warning" if red else "published"])
    here = abs(change) if "|" in r.formula else change
    return {"model": model, **relation_row(limit._replace(here=(here,)))}


def is_beyond(bound: Relation, change: float) -> bool:
    """Say whether a change, %, up or down, is beyond a published bound."""
    return bound.qualifier in BOUNDS and abs(change) > bound.value


def change_pct(metric: str, rows: Sequence[Mapping[str, Any]], model: str) -> float | None:
    """Return by how much a network's number changes with DVFS, %; None: it has not both.

    Parameters
    ----------
    rows : of the CSV
    """
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
        draw_mark(axes, at, rows[-1], colour["published"], WIDTH)
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
        _draw_clock_marks(axes, end, marks, colour["published"])
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlabel("training time (min)")
    facets[0].set_ylabel("GPU clock (MHz)")
    _name_lines(facets[0], rows, colour)
    return rows


def _name_lines(axes: Axes, rows: Sequence[Mapping[str, Any]], colour: Mapping[str, str]) -> None:
    """Draw the legend of panel c: it tells of lines, not of colours."""
    for dvfs in DVFS:
        axes.plot([], [], color=colour["missing"], label=f"DVFS {dvfs}", **LINE[dvfs])
    axes.plot([], [], color=colour["epoch_bound"], label="end of an epoch", **BOUND_LINE)
    legend(axes, rows, colour["published"])


def _draw_clock_marks(
    axes: Axes, end: float, marks: Mapping[float, list[tuple[str, dict[str, Any]]]], colour: str
) -> None:
    """Draw published clocks beside the last epoch, each once, and write with which DVFS it is.

    Parameters
    ----------
    end : of the last epoch, min
    marks : clock -> DVFS and row of the CSV of each run that it is of
    """
    for value, of_value in marks.items():
        for _, row in of_value:
            draw_mark(axes, end, row, colour)
        words = " and ".join(dict.fromkeys(dvfs for dvfs, _ in of_value))
        axes.annotate(
            words, (end, value), xytext=(6.0, -5.0), textcoords="offset points", ha="center",
            va="top", fontsize="x-small", color=colour,
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
        draw_mark(axes, at, rows[-1], colour["published"], CLOCK_WIDTH, rotation=0.0)
    draw_missing(missing, axes, colour["missing"])
    for key, (low, high) in zip(keys, CLASSES, strict=True):
        if key in drawn:
            axes.bar(0, 0, color=colour[key], label=_class(low, high))
    axes.set_xticks(range(len(runs)), [job.title(run.factors["model"]) for run in runs])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.4, max(len(runs), 1) - 0.25)  # for points beside the last bar
    axes.set_ylim(0, 100)
    axes.set_ylabel("share of the time of epochs 1+ (%)")
    legend(axes, rows, colour["published"])
    return rows


def empty_classes(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return for the note between which clocks no run has any time.

    Parameters
    ----------
    rows : of panel d's CSV
    """
    shares = [(row["clock"], row["value"]) for row in rows if row.get("clock")]
    filled = {clock for clock, percent in shares if percent}
    empty = [(low, high) for low, high in CLASSES if _class(low, high) not in filled]
    spans: list[tuple[float, float]] = []
    for low, high in empty if filled else []:
        joined = spans and spans[-1][1] == low
        spans[-1:] = [(spans[-1][0], high)] if joined else [*spans[-1:], (low, high)]
    return "".join(f"; no time at {_class(low, high)}" for low, high in spans)


def _share_pct(clock: Series, inside: NDArray[np.bool_]) -> float | None:
    """Return the mean over epochs 1+ of the share of their samples; None: there are none."""
    later = dict.fromkeys(clock.epoch[clock.epoch > 0].tolist())
    of_epochs = [float(inside[clock.epoch == epoch].mean()) for epoch in later]
    return 100.0 * float(np.mean(of_epochs)) if of_epochs else None


def below_peak_pct(runs: Sequence[RunData], job: Job) -> dict[tuple[str, int], dict[str, float]]:
    """Return the share of each epoch's time below the peak, as the claims name it."""
    shares = {}
    for run in runs:
        folder = job.records.get(run.id, "")
        clock = series(run, folder, "host", "cpu*_mhz")
        for epoch in dict.fromkeys(clock.epoch.tolist()):
            low = clock.values[clock.epoch == epoch] < BELOW_PEAK * _peak_mhz(run, folder)
            shares[run.id, epoch] = {"cpu_below_peak_time_pct": 100.0 * float(low.mean())}
    return shares


def gpu_clock_mhz(runs: Sequence[RunData], job: Job) -> dict[tuple[str, int], dict[str, float]]:
    """Return the mean GPU clock of each epoch, as the claims name it."""
    means = {}
    for run in runs:
        clock = series(run, job.records.get(run.id, ""), "board", "gpu_mhz")
        for epoch in dict.fromkeys(clock.epoch.tolist()):
            means[run.id, epoch] = {CLOCK: float(clock.values[clock.epoch == epoch].mean())}
    return means


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
