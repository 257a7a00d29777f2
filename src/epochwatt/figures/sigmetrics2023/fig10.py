"""Figure 10: observed against predicted time (a) and energy (b) of an epoch, by power mode.

Source: SIGMETRICS 2023, section 5.7. The paper's own models: time from four modes, energy from one
model for all networks. Errors are over epochs 1 to 5. VGG-11 is not in panel b, as in the paper.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import Bar, draw_bars, draw_missing
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import Mark, Plotted
from epochwatt.figures.common.runs import Number
from epochwatt.figures.sigmetrics2023.modes import groups_of, mode_axis
from epochwatt.prediction.names import REFERENCE, SEARCHED
from epochwatt.published.numbers import MEANT_EPOCHS, Measurement
from epochwatt.tables import Cells, read_cells

NOT_PREDICTED = "no model was fitted"
NOT_SHOWN = ("vgg11",)  # in panel b
HATCH = "////"
WIDTH = 0.36
MOST_IN_ROW, IN_ROW = 3, 2  # networks side by side; of more than the first this many
COUNTED_PCT = (10.0, 15.0)  # section 5.7.2 counts predictions by them
PAPERS_MODES = "e f i j"  # section 5.7.1: those that train the model of time
ERROR_LINE: style.Look = {"linewidth": 0.7, "linestyle": (0, (4, 2)), "zorder": 1.5}
TRAINED = "True"  # cell of `in_training_set`

Predictions = Mapping[tuple[str, str], Cells]  # target, run -> row


class Panel(NamedTuple):
    """Content of a panel."""

    name: str
    column: str  # of epochs.csv
    target: str  # of the predictions
    metric: str  # of claims


TIME = Panel("fig10a", "e2e_s", "time_s", "time_mape_pct")
ENERGY = Panel("fig10b", "energy_paper_wh", "energy_wh", "energy_mape_pct")


class Mode(NamedTuple):
    """The rows of a power mode: what was observed, what is predicted, the error of this."""

    observed: Plotted
    predicted: Plotted
    error: Plotted

    @property
    def is_trained(self) -> bool:
        """Whether the model has learned from it."""
        return bool(self.error.row["in_training_set"] == TRAINED)


def draw(job: Job) -> None:
    """Draw the panels."""
    predictions, groups = read(job.predictions), groups_of(job)
    small = [group for group in groups if group[0].run.factors["model"] not in NOT_SHOWN]
    for panel, shown in ((TIME, groups), (ENERGY, small)):
        draw_panel(job, panel, shown, predictions)


def read(path: str) -> Predictions:
    """Read the reference method's predictions, by target and run; empty without a path."""
    return {
        (row["target"], row["run"]): row
        for row in (read_cells(path) if path else [])
        if (row["method"], row["learned_from"]) == (REFERENCE, SEARCHED)
    }


def draw_panel(
    job: Job, panel: Panel, groups: Sequence[Sequence[Bar]], predictions: Predictions
) -> None:
    """Draw a panel: bars of each network above, the errors of its predictions below."""
    runs = [bar.run for group in groups for bar in group]
    with job.panel(panel.name, runs) as (figure, axes):
        tops, bottoms = _fields(figure, axes, len(groups), style.axis_title(panel.column, width=20))
        bottoms[len(bottoms) // 2].set_xlabel(mode_axis(groups), fontsize="small")
        modes: list[Mode] = []
        for top, bottom, group in zip(tops, bottoms, groups, strict=False):
            of_network = [mode_of(bar, job, panel, predictions) for bar in group]
            draw_observed(top, group, of_network, job)
            draw_errors(bottom, of_network, job, panel)
            top.set_title(group[0].group.replace("\n", ", "), fontsize="small")
            modes += of_network
        errors_pct = [mode.error.value for mode in modes if mode.error.value is not None]
        if panel is TIME or min(errors_pct, default=0.0) <= 0.0:
            bottoms[0].set_ylim(0.0, 1.1 * max(*errors_pct, 1.1 * COUNTED_PCT[-1], 0.0))
        else:  # far apart
            bottoms[0].set_yscale("log")
            bottoms[0].set_ylim(0.6 * min(errors_pct), 1.8 * max(errors_pct))
            style.label_log(bottoms[0].yaxis, 1.0)
        trained = sorted({mode.error.row["power_mode"] for mode in modes if mode.is_trained})
        if trained:
            of_paper = f"(the paper's: {PAPERS_MODES})"
            job.remark(panel.name, f"Trained on modes {' '.join(trained)} {of_paper}.")
        rows = [row for mode in modes for row in mode]
        words = line_words(job, panel)
        lines = [Line2D([], [], color=job.palette["published"], label=words, **ERROR_LINE)]
        job.legend(
            figure, handles_of(job, {mode.is_trained for mode in modes}), rows,
            lines if words else [], red="red: here more errors are above it than in the paper",
        )  # fmt: skip
        job.save(figure, panel.name, rows)


def _fields(figure: Figure, axes: Axes, n: int, label: str) -> tuple[list[Axes], list[Axes]]:
    """Return fields for bars, each with its own scale, and below each that of errors, with one.

    More than three networks stand in rows of two: the bars would be too thin to be told apart. The
    panel's height in config/plotting.yaml is that of one row.
    """
    axes.remove()
    n_columns = IN_ROW if n > MOST_IN_ROW else max(n, 1)
    n_rows = -(-max(n, 1) // n_columns)
    figure.set_figheight(style.HEAD_IN + (figure.get_figheight() - style.HEAD_IN) * n_rows)
    ratios = (2.2, 1) * n_rows
    grid = figure.subplots(2 * n_rows, n_columns, squeeze=False, height_ratios=ratios, sharex="col")
    tops, bottoms = list(grid[::2].flatten()), list(grid[1::2].flatten())
    for unused in (*tops[n:], *bottoms[n:]):
        unused.set_visible(n == 0)
    for place, (top, bottom) in enumerate(zip(tops, bottoms, strict=True)):
        bottom.tick_params("x", labelbottom=True)
        if place:
            bottom.sharey(bottoms[0])
            bottom.tick_params("y", labelleft=place % n_columns == 0)
        if place % n_columns == 0:
            top.set_ylabel(label)
            bottom.set_ylabel(style.axis_title("mape_pct", width=10))
    return tops, bottoms


def mode_of(bar: Bar, job: Job, panel: Panel, predictions: Predictions) -> Mode:
    """Return a power mode's observed and predicted numbers and its error, as rows of the CSV."""
    run, observed = bar.run, bar.run.number(panel.column)
    row = predictions.get((panel.target, run.id))
    predicted = error = Number(None, 0, observed.missing or NOT_PREDICTED)
    if row is not None:
        predicted = Number(float(row["predicted"]), observed.n_epochs)
        # a MAPE is over the valid epochs up to the last of the paper's runs
        meant = [epoch for epoch in run.valid("1+") if epoch["epoch"] <= MEANT_EPOCHS]
        n_meant = sum(epoch[panel.column] is not None for epoch in meant)
        error = Number(float(row["mape_pct"]), n_meant)
    more = {"method": REFERENCE, "in_training_set": None if row is None else row["in_training_set"]}
    return Mode(
        observed=job.plotted(run, panel.column, "1+", observed, **more),
        predicted=job.plotted(run, f"predicted_{panel.column}", "1+", predicted, **more),
        error=job.plotted(run, "mape_pct", "1+", error, **more),
    )


def draw_observed(axes: Axes, bars: Sequence[Bar], modes: Sequence[Mode], job: Job) -> None:
    """Draw one network: what was observed beside what is predicted."""
    colour = job.colour(bars[0].run.factors["model"])
    x = np.arange(len(modes))
    observed = [mode.observed for mode in modes]
    missing = draw_bars(axes, x - WIDTH / 2, observed, job, WIDTH, 0, color=colour)
    look = {"color": style.pale(colour), "edgecolor": "white", "linewidth": 0}
    for is_trained, hatch in ((False, ""), (True, HATCH)):
        shown = [(at, m) for at, m in zip(x, modes, strict=True) if m.is_trained == is_trained]
        bar_x = [at + WIDTH / 2 for at, _ in shown]
        predicted = [mode.predicted for _, mode in shown]
        missing += draw_bars(axes, bar_x, predicted, job, WIDTH, 0, hatch=hatch, **look)
    draw_missing(missing, axes, job.colour("missing"))
    if any(mode.predicted.height < 0.0 for mode in modes):
        axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0, labelbottom=False)
    axes.grid(visible=False, axis="x")


def draw_errors(axes: Axes, modes: Sequence[Mode], job: Job, panel: Panel) -> None:
    """Draw the error of each mode, and lines at the errors that the paper counts by or prints."""
    model = modes[0].error.row["model"]
    for at, mode in enumerate(modes):
        if mode.error.value is not None:
            look = _dot(job.colour(model), is_trained=mode.is_trained)
            axes.plot([at], [mode.error.value], zorder=3, clip_on=False, **look)
    if panel is TIME:
        for limit_pct in COUNTED_PCT:
            wanted = {"metric": panel.metric, "model": model, "printed": f"{limit_pct:g}"}
            ink = job.colour("warning" if job.fails(panel.name, **wanted) else "published")
            axes.axhline(limit_pct, color=ink, **ERROR_LINE)
    else:
        highest_pct = max((m.error.value for m in modes if m.error.value is not None), default=None)
        for fact in published_errors(job, panel, model)[:1]:
            printed = Mark(fact.value, None, fact.id, "at_most", fact.id in job.seen)
            ink = job.ink(job.judged(printed, [highest_pct], is_percentage=True))
            axes.axhline(fact.value, color=ink, **ERROR_LINE)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", length=0)


def published_errors(job: Job, panel: Panel, model: str = "") -> list[Measurement]:
    """Return what the paper prints as the highest error of a network, of all if none is named."""
    return [
        fact
        for fact in job.facts.measurements.values()
        if (fact.paper, fact.metric) == (job.paper, panel.metric)
        and "model" in fact.config
        and not fact.is_bound
        and model in ("", fact.config["model"])
    ]


def line_words(job: Job, panel: Panel) -> str:
    """Return the legend's words for the lines at errors; empty: there is none."""
    if panel is TIME:
        below, above = (job.facts.measurements[f"S5.7.2-0{n}"] for n in (1, 2))
        whose = f"{above.value:g}, of {job.title(above.config['model'])}, above 15 %"
        return f"10, 15 %: the paper has {below.value:g} of 40 errors below 10 %, {whose}"
    return "highest error of a mode that the paper prints" if published_errors(job, panel) else ""


def _dot(colour: str, *, is_trained: bool) -> style.Look:
    """Return the look of an error: hollow where the model knows the mode."""
    return {
        **{"marker": "o", "markersize": 4, "markeredgewidth": 0.8, "linestyle": "none"},
        **{"markerfacecolor": "white" if is_trained else colour, "markeredgecolor": colour},
    }


def handles_of(job: Job, trained: Collection[bool]) -> list[Artist]:
    """Return the entries of the legend; `trained`: whether modes have trained the model, or not."""
    grey, pale = job.palette["missing"], style.pale(job.palette["missing"])
    observed = "simulated" if job.backend == TWIN else "measured"
    predicted = "predicted by the paper's model"
    entries: list[Artist] = [Patch(facecolor=grey, label=observed)]
    if trained != {True}:
        entries.append(Patch(facecolor=pale, edgecolor="white", label=predicted))
        predicted = "the same"
    if True in trained:
        words = f"{predicted} for a mode it was trained on (hollow dot): no test"
        entries.append(Patch(facecolor=pale, edgecolor="white", hatch=HATCH, label=words))
    return entries
