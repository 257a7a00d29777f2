"""Figure 6: clocks pinned (DVFS off) and left to the governors (on): time and energy (a), GPU load
(b), GPU clock over time (c), share of time at CPU clocks (d), the last two from telemetry.

Source: SIGMETRICS 2023, section 5.5.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bracket,
    draw_bars,
    draw_brackets,
    draw_missing,
    legend,
    of_epochs,
)
from epochwatt.figures.common.job import Job, Row
from epochwatt.figures.common.published import (
    Plotted,
    Related,
    draw_mark,
    halo,
    mark,
    numbers_of,
)
from epochwatt.figures.common.runs import Number, RunData, csv_row, mode_setting
from epochwatt.figures.common.series import Series, series

HATCH = {"off": "", "on": "////"}  # DVFS -> of its bars
SIDES = {"off": -0.22, "on": 0.22}  # of the bar beside its place
ENDS = SIDES["off"], SIDES["on"]
WIDTH = 0.34  # of a bar
LINE: dict[str, style.Look] = {  # both are seen where they lie upon each other
    "off": {"linewidth": 0.9, "linestyle": (0, (5, 3)), "color": "black", "zorder": 3},
    "on": {"linewidth": 2.4},
}
BOUND_LINE: style.Look = {
    **{"linewidth": 0.7, "linestyle": (0, (1, 3)), "zorder": 1.5, "alpha": 0.7}
}
MEAN_CLOCK = "; simulated is the mean clock of an epoch"
ROOM = 1.14  # of the time axis of panel c
TIME_AND_ENERGY = {"e2e_s": "e2e_s", "energy_paper_wh": "energy_wh"}  # column -> metric
CLOCK_WIDTH = 0.45  # of a bar of panel d; deviations stand between bars
LONG = 12  # characters of a name that is broken
CLASSES = (  # of the mode's CPU clock
    *((0.0, 0.5, "0 to 50 % of peak"), (0.5, 0.7, "50 to 70 % of peak")),
    *((0.7, 0.9, "70 to 90 % of peak"), (0.9, np.inf, "90 % of peak and above")),
)
BELOW_PEAK = 0.9  # of it: the class border that the paper tells of


def draw(job: Job) -> None:
    """Draw the panels."""
    later, models = of_epochs(job.runs, "1+"), models_of(job.runs)
    draw_time_and_energy(job, later, models)
    with job.panel("fig06b", later) as (figure, axes):
        loads = draw_dvfs(axes, job, "gpu_util_pct", later)
        axes.set_ylabel(style.axis_title("gpu_util_pct"))
        axes.set_yticks(range(0, 101, 25))
        legend(axes, loads, job)
        job.save(figure, "fig06b", loads)
    drawn = as_long(of_epochs(job.runs))
    with job.panel("fig06c", drawn) as (figure, axes):
        clocks: list[Plotted] = []
        facets = style.side_by_side(figure, axes, len(models))
        for facet, model in zip(facets, models, strict=True):
            runs = [run for run in drawn if run.factors["model"] == model]
            clocks += draw_gpu_clock(facet, runs, job)
            facet.set_title(job.title(model))
        facets[0].set_ylabel(style.axis_title("gpu_mhz"))
        for dvfs, look in LINE.items():  # the legend tells of lines, not of colours
            entry = {"color": job.colour("missing"), "label": f"DVFS {dvfs}", **look}
            facets[0].plot([], [], **entry)
        colour = job.colour("epoch_bound")
        facets[0].plot([], [], color=colour, label="end of an epoch", **BOUND_LINE)
        legend(facets[0], clocks, job)
        job.drawn["fig06c"].note += MEAN_CLOCK if job.backend == TWIN else ""
        job.save(figure, "fig06c", clocks)
    on = [run for run in job.runs if run.factors["dvfs"] == "on"]
    with job.panel("fig06d", of_epochs(on, "1+")) as (figure, axes):
        job.save(figure, "fig06d", draw_cpu_clocks(axes, on, job))


def models_of(runs: Sequence[RunData]) -> list[str]:
    """Return the networks, in order."""
    return list(dict.fromkeys(run.factors["model"] for run in runs))


def draw_time_and_energy(job: Job, later: Sequence[RunData], models: Sequence[str]) -> None:
    """Draw panel a: time above, energy below, each network on axes of its own.

    The paper bounds what DVFS changes, and each network is held to that: red where a claim fails.
    """
    bounds = job.related("e2e_s", "energy_wh", number_of=numbers_of(later))
    by_metric = {one.relation.metric: one for one in bounds}
    with job.panel("fig06a", later) as (figure, axes):
        axes.remove()
        grid = figure.subplots(2, max(len(models), 1), squeeze=False)
        rows: list[Plotted] = []
        changes: list[Related] = []
        over: list[tuple[Axes, list[Bracket]]] = []
        for (quantity, metric), line in zip(TIME_AND_ENERGY.items(), grid, strict=True):
            for model, facet in zip(models, line, strict=False):
                runs = [run for run in later if run.factors["model"] == model]
                of_model = draw_dvfs(facet, job, quantity, runs)
                rows += of_model
                facet.set_xticks([])
                values = {row.row["dvfs"]: row.value for row in of_model}
                off, on = (values.get(dvfs) for dvfs in SIDES)
                bound = by_metric.get(metric)
                if bound and off and on is not None:
                    red = job.fails("fig06a", model=model, metric=metric)
                    ink = job.colour("warning" if red else "published")
                    changed_pct = 100.0 * (on / off - 1.0)
                    is_size = "|" in bound.relation.formula
                    here = abs(changed_pct) if is_size else changed_pct
                    about = {"model": model}
                    judged = bound.mark._replace(is_off=red)
                    changes.append(replace(bound, here=(here,), mark=judged, ink=ink, about=about))
                    printed = bound.relation.as_printed.partition(" ")[0]
                    within = f"within {printed or format(bound.relation.value, 'g')} %"
                    words = [f"{within}, here {changed_pct:+.1f} %"]
                    bracket = Bracket(*ENDS, words, ink, bound.linestyle)
                    over.append((facet, [bracket]))
            line[0].set_ylabel(style.axis_title(quantity, width=18))
        for model, facet in zip(models, grid[0], strict=False):
            facet.set_title(job.title(model))
        legend(grid[0][0], [*rows, *changes], job)
        draw_brackets(over)
        job.save(figure, "fig06a", [*rows, *changes])


def draw_dvfs(axes: Axes, job: Job, quantity: str, runs: Sequence[RunData]) -> list[Plotted]:
    """Draw a quantity with DVFS off and on for each network; return the CSV's rows."""
    models, rows = models_of(runs), [job.plotted(run, quantity) for run in runs]
    missing: list[tuple[float, str]] = []
    look: style.Look = {"edgecolor": "white", "linewidth": 0}
    for run, row in zip(runs, rows, strict=True):
        model, dvfs = run.factors["model"], run.factors["dvfs"]
        x, hatch = models.index(model) + SIDES[dvfs], HATCH[dvfs]
        missing += draw_bars(
            axes, [x], [row], job, WIDTH, color=job.colour(model), hatch=hatch, **look
        )
    for dvfs, hatch in HATCH.items():  # the legend tells of hatches, not of colours
        axes.bar(0, 0, color=job.colour("missing"), hatch=hatch, label=f"DVFS {dvfs}", **look)
    draw_missing(missing, axes, job.colour("missing"))
    names = [job.title(model) for model in models]
    names = [name.replace("-", "-\n") if len(name) > LONG else name for name in names]
    axes.set_xticks(range(len(models)), names)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(models) - 0.3)
    axes.set_ylim(bottom=0)
    return rows


def as_long(runs: Sequence[RunData]) -> list[RunData]:
    """Cut runs to the least number of epochs of their network: some go on for 15 hours."""
    n_epochs = {
        model: min(len(run.epochs) for run in runs if run.epochs and run.factors["model"] == model)
        for model in models_of([run for run in runs if run.epochs])
    }
    return [
        replace(run, epochs=run.epochs[: n_epochs.get(run.factors["model"], 0)]) for run in runs
    ]


def draw_gpu_clock(axes: Axes, runs: Sequence[RunData], job: Job) -> list[Plotted]:
    """Draw the GPU's clock over the training time of a network; return the CSV's rows.

    Published clocks stand beside the last epoch, each once, with the DVFS that they are of.
    """
    rows: list[Plotted] = []
    missing: list[tuple[float, str]] = []
    marks: dict[float, list[Plotted]] = {}
    end_min = 0.0
    for run in runs:
        clock = series(run, job.records.get(run.id, ""), "board", "gpu_mhz")
        model, dvfs = run.factors["model"], run.factors["dvfs"]
        look = {"color": job.colour(model), **LINE[dvfs]}
        axes.plot(clock.t_s / 60, clock.values, **look)
        missing.append((0.0, clock.missing))
        for bound_s in clock.bounds_s:
            end_min = max(end_min, bound_s / 60)
            if dvfs == "on":
                axes.axvline(bound_s / 60, color=job.colour("epoch_bound"), **BOUND_LINE)
        printed = mark(job.marks, run.factors, "gpu_freq_mhz")
        mean_mhz = float(clock.values.mean()) if clock.values.size else None
        printed = printed and job.judged(printed, [mean_mhz])
        ink = job.ink(printed)
        for t, mhz, k in zip(clock.t_s, clock.values, clock.epoch, strict=True):
            row = csv_row(run, "gpu_mhz", Number(mhz, 1), "all", epoch=k, t_s=t)
            rows.append(Plotted(row, printed, ink))
        if printed:
            last = Plotted(csv_row(run, "gpu_mhz", Number(None, 0), "all"), printed, ink)
            marks.setdefault(printed.value, []).append(last)
    draw_missing(missing, axes, job.colour("missing"))
    axes.set_ylim(0.0, max([axes.get_ylim()[1], *(1.06 * mhz for mhz in marks)]))
    axes.set_xlim(right=ROOM * axes.get_xlim()[1])  # for marks beside the last epoch
    for mhz, alike in marks.items():
        for plotted in alike:
            draw_mark(axes, end_min, plotted)
        states = " and ".join(dict.fromkeys(plotted.row["dvfs"] for plotted in alike))
        axes.annotate(
            f"published: DVFS {states}", (end_min, mhz), xytext=(10.0, -6.0),
            textcoords="offset points", ha="right", va="top", fontsize="x-small",
            path_effects=[halo(2.0)],
        )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlabel("training time (min)")
    return rows


def draw_cpu_clocks(axes: Axes, runs: Sequence[RunData], job: Job) -> list[Row]:
    """Draw which share of the time the CPU ran at classes of its clock; return the CSV's rows.

    A share is the mean over epochs 1+, as the published ones and the claims are.
    """
    rows: list[Row] = []
    missing, drawn = [], set[str]()
    for at, run in enumerate(runs):
        folder, bottom = job.records.get(run.id, ""), 0.0
        clock, peak_mhz = (
            series(run, folder, "host", "cpu*_mhz"),
            mode_setting(run, folder, "cpu_mhz"),
        )
        shares = clock.values / (peak_mhz or np.nan)
        n_later = len(set(clock.epoch[clock.epoch > 0].tolist())) if peak_mhz else 0
        reason = "no epoch after the first" if peak_mhz else "no CPU clock of the power mode"
        reason = "" if n_later else clock.missing or reason
        for n, (low, high, name) in enumerate(CLASSES):
            inside = (shares >= low) & (shares < high)
            percent = share_pct(clock, inside) if n_later else None
            axes.bar(at, percent or 0.0, CLOCK_WIDTH, bottom, color=job.colour(f"clock_class_{n}"))
            drawn |= {name} if percent else set()
            bottom += percent or 0.0
            number = Number(percent, n_later, reason)
            rows.append(csv_row(run, "time_share_pct", number, clock=name))
        missing.append((at, reason))
        percent = share_pct(clock, shares < BELOW_PEAK) if n_later else None
        number = Number(percent, n_later, reason)
        below = job.plotted(run, "cpu_below_peak_time_pct", number=number)
        draw_mark(axes, at, below, CLOCK_WIDTH)
        rows.append(below)
    draw_missing(missing, axes, job.colour("missing"))
    for n, (_, _, name) in enumerate(CLASSES):
        if name in drawn:
            axes.bar(0, 0, color=job.colour(f"clock_class_{n}"), label=f"clock at {name}")
    axes.set_xticks(range(len(runs)), [job.title(run.factors["model"]) for run in runs])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.4, max(len(runs), 1) - 0.25)  # for points beside the last bar
    axes.set_ylim(0, 100)
    axes.set_ylabel(style.axis_title("time_share_pct", "epochs 1+"))
    legend(axes, rows, job)
    return rows


def share_pct(clock: Series, inside: NDArray[np.bool_]) -> float | None:
    """Return the share of samples that are `inside`, %, mean over epochs 1+; None: no epoch.

    `inside` is a mask of the clock's samples.
    """
    later = dict.fromkeys(clock.epoch[clock.epoch > 0].tolist())
    shares = [float(inside[clock.epoch == epoch].mean()) for epoch in later]
    return 100.0 * float(np.mean(shares)) if shares else None
