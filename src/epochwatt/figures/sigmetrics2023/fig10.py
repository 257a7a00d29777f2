"""Figure 10: observed against predicted time (a) and energy (b) of an epoch, by power mode.

Source: SIGMETRICS 2023, section 5.7. The paper's own models: time from four modes, energy from one
model for all networks. Bars are means over epochs 1+; MAPE, below them, is over epochs 1 to 5, also
of longer runs. Hatched: modes that the model has learned from. VGG-11 is not in
panel b, as in the paper; results/models/ has its numbers.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import Bar, draw_missing, draw_whisker, marked_row, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.fig09 import groups_of
from epochwatt.prediction.names import REFERENCE, SEARCHED
from epochwatt.published.numbers import MEANT_EPOCHS, Measurement, load_published

NOT_PREDICTED = "no model was fitted"
NOT_SHOWN = ("vgg11",)  # in panel b
HATCH = "////"
WIDTH = 0.36
MOST_IN_ROW, IN_ROW = 3, 2  # networks side by side; of more than the first this many
COUNTED_PCT = (10.0, 15.0)  # section 5.7.2 counts predictions by them
PAPERS_MODES = "efij"  # section 5.7.1: those that train the model of time
TRUE = "True"
METRIC = {"time_s": "time_mape_pct", "energy_wh": "energy_mape_pct"}  # target -> of claims

Rows = list[dict[str, Any]]
Predictions = Mapping[tuple[str, str], Mapping[str, str]]  # target, run -> row


def draw(job: Job) -> None:
    """Draw the panels."""
    predictions, groups = read(job.predictions), groups_of(job)
    small = [group for group in groups if group[0].run.factors["model"] not in NOT_SHOWN]
    _draw_panel(job, "fig10a", groups, "e2e_s", "time_s", "E2E per epoch (s)", predictions)
    label = "energy per epoch (Wh)"
    _draw_panel(job, "fig10b", small, "energy_paper_wh", "energy_wh", label, predictions)


def read(path: str) -> Predictions:
    """Return the rows of the reference method by target and run; none without a path."""
    if not path:
        return {}
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [
            row
            for row in csv.DictReader(handle)
            if (row["method"], row["learned_from"]) == (REFERENCE, SEARCHED)
        ]
    return {(row["target"], row["run"]): row for row in rows}


def _draw_panel(
    job: Job,
    panel: str,
    groups: Sequence[Sequence[Bar]],
    column: str,
    target: str,
    label: str,
    predictions: Predictions,
) -> None:
    with job.panel(panel, [bar.run for group in groups for bar in group]) as (figure, axes):
        (tops, bottoms), rows = _fields(figure, axes, len(groups)), []
        for top, bottom, group in zip(tops, bottoms, groups, strict=False):
            bar_rows = [_rows(bar, job, column, target, predictions) for bar in group]
            _draw_bars(top, group, bar_rows, job)
            _draw_errors(bottom, bar_rows, job, METRIC[target], panel)
            rows += [row for quantities in bar_rows for row in quantities]
            top.set_title(group[0].group.replace("\n", ", "), fontsize="small")
        for top, bottom in zip(tops, bottoms, strict=True):
            if (place := top.get_subplotspec()) is not None and place.is_first_col():
                top.set_ylabel(label)
                bottom.set_ylabel("MAPE (%)")
        bottoms[-1].set_xlabel("power mode")
        _scale_errors(bottoms, rows, METRIC[target])
        trained = sorted({row["power_mode"] for row in rows if row["in_training_set"] == TRUE})
        if trained:
            theirs = " ".join(PAPERS_MODES)
            modes = " ".join(trained)
            job.remark(panel, f"Trained on modes {modes} (the paper's: {theirs}).")
        job.legend(figure, _handles(rows, job), rows, red=job.fails(panel, metric=METRIC[target]))
        job.save(figure, panel, rows)


def _fields(figure: Figure, axes: Axes, n: int) -> tuple[list[Axes], list[Axes]]:
    """Return fields for bars, each with its own scale, and below each that of errors, with one.

    More than three networks stand in rows of two: the bars would be too thin to be told apart. The
    panel's height in config/plotting.yaml is that of one row.
    """
    axes.remove()
    columns = IN_ROW if n > MOST_IN_ROW else max(n, 1)
    n_rows = -(-max(n, 1) // columns)
    figure.set_figheight(style.HEAD_IN + (figure.get_figheight() - style.HEAD_IN) * n_rows)
    grid = figure.subplots(
        2 * n_rows, columns, squeeze=False, height_ratios=(2.2, 1) * n_rows, sharex="col"
    )
    tops, bottoms = list(grid[::2].flatten()), list(grid[1::2].flatten())
    for unused in (*tops[n:], *bottoms[n:]):
        unused.set_visible(n == 0)
    for place, bottom in enumerate(bottoms[1:], 1):
        bottom.sharey(bottoms[0])
        bottom.tick_params("y", labelleft=place % columns == 0)
    for bottom in bottoms:
        bottom.tick_params("x", labelbottom=True)
    return tops, bottoms


def _scale_errors(bottoms: Sequence[Axes], rows: Rows, metric: str) -> None:
    """Give the fields of errors one scale, logarithmic for energy, where they are far apart."""
    errors_pct = [
        row["value"] for row in rows if row["quantity"] == "mape_pct" and row["value"] is not None
    ]
    if metric == METRIC["time_s"] or min(errors_pct, default=0.0) <= 0.0:
        bottoms[0].set_ylim(0.0, 1.1 * max(*errors_pct, 1.1 * COUNTED_PCT[-1], 0.0))
    else:
        bottoms[0].set_yscale("log")
        bottoms[0].set_ylim(0.15 * min(errors_pct), 1.8 * max(errors_pct))
        bottoms[0].yaxis.set_major_locator(LogLocator(subs=(1.0,), numticks=9))
        bottoms[0].yaxis.set_minor_locator(NullLocator())
        bottoms[0].yaxis.set_major_formatter(FuncFormatter(lambda pct, _: f"{pct:g}"))


def _handles(rows: Rows, job: Job) -> list[Any]:
    """Return the entries of the legend."""
    grey, white = job.palette["missing"], style.pale(job.palette["missing"])
    observed = "simulated" if job.backend == TWIN else "measured"
    handles: list[Any] = [
        Patch(facecolor=grey, label=f"{observed} epochs"),
        Patch(facecolor=white, edgecolor="white", label="predicted by the paper's model"),
    ]
    if any(row["in_training_set"] == TRUE for row in rows):
        label = "trained the model: no test of it"
        handles.append(Patch(facecolor=white, edgecolor="white", hatch=HATCH, label=label))
    look = _marker(grey, is_trained=False)
    handles.append(Line2D([], [], linestyle="none", label="error; hollow: trained mode", **look))
    return handles


def _marker(colour: str, *, is_trained: bool) -> dict[str, Any]:
    """Return the look of an error: hollow where the model knows the mode."""
    return {
        **{"marker": "o", "markersize": 4, "markeredgewidth": 0.8},
        **{"markerfacecolor": "white" if is_trained else colour, "markeredgecolor": colour},
    }


def _rows(bar: Bar, job: Job, column: str, target: str, predictions: Predictions) -> Rows:
    """Return a mode's rows of the CSV: observed, predicted, MAPE."""
    run = bar.run
    row, seen = predictions.get((target, run.id)), run.number(column)
    origin: dict[str, Any] = {
        "method": REFERENCE,
        "in_training_set": None if row is None else row["in_training_set"],
    }
    rows = [marked_row(run, column, seen, job, **origin)]
    for name, cell, n_epochs in (
        (f"predicted_{column}", "predicted", seen.n_epochs),
        ("mape_pct", "mape_pct", _n_meant(run, column)),
    ):
        number = Number(None, 0, seen.missing or NOT_PREDICTED)
        if row is not None:
            number = Number(float(row[cell]), n_epochs)
        rows.append(marked_row(run, name, number, job, **origin))
    return rows


def _n_meant(run: RunData, column: str) -> int:
    """Return how many epochs a MAPE is over: valid ones up to the last of the paper's runs."""
    meant = (row for row in run.valid("1+") if row["epoch"] <= MEANT_EPOCHS)
    return sum(row[column] is not None for row in meant)


def _draw_bars(axes: Axes, bars: Sequence[Bar], bar_rows: Sequence[Rows], job: Job) -> None:
    """Draw one network: what was observed beside what is predicted."""
    x = positions([bar.group for bar in bars])
    colour = job.colours(bars[0].run.factors["model"], "missing", "published")
    shade, grey = colour[bars[0].run.factors["model"]], colour["missing"]
    seen, predicted = ([quantities[n]["value"] for quantities in bar_rows] for n in range(2))
    axes.bar(x - WIDTH / 2, _heights(seen), WIDTH, color=shade)
    trained = np.array([quantities[0]["in_training_set"] == TRUE for quantities in bar_rows])
    for kept, hatch in ((~trained, ""), (trained, HATCH)):
        axes.bar(
            x[kept] + WIDTH / 2, _heights(predicted)[kept], WIDTH,
            color=style.pale(shade), hatch=hatch, edgecolor="white", linewidth=0,
        )  # fmt: skip
    missing = [
        (at + place, quantities[n]["missing"])
        for at, quantities in zip(x, bar_rows, strict=True)
        for place, n in ((-WIDTH / 2, 0), (WIDTH / 2, 1))
    ]
    draw_missing(missing, axes, grey)
    for bar, at, quantities in zip(bars, x, bar_rows, strict=True):
        draw_whisker(axes, at - WIDTH / 2, bar.run, quantities[0]["quantity"], grey)
        draw_mark(axes, at - WIDTH / 2, quantities[0], job.ink(quantities[0]), WIDTH, side=0)
    if any(value is not None and value < 0.0 for value in predicted):
        axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0, labelbottom=False)
    axes.grid(visible=False, axis="x")


def _draw_errors(axes: Axes, bar_rows: Sequence[Rows], job: Job, metric: str, panel: str) -> None:
    """Draw the error of each mode, and lines at the errors that the paper counts by or prints."""
    x, model = positions([""] * len(bar_rows)), bar_rows[0][0]["model"]
    shade = job.colours(model)[model]
    for at, quantities in zip(x, bar_rows, strict=True):
        error = quantities[2]
        if error["value"] is not None:
            look = _marker(shade, is_trained=error["in_training_set"] == TRUE)
            axes.plot([at], [error["value"]], linestyle="none", zorder=3, clip_on=False, **look)
    line: dict[str, Any] = {"linewidth": 0.7, "linestyle": (0, (4, 2)), "zorder": 1.5}
    is_time = metric == METRIC["time_s"]
    for fact in [] if is_time else _printed(job, metric, model):
        axes.axhline(fact.value, color=job.ink({"published_id": fact.id}), **line)
    for limit_pct in COUNTED_PCT if is_time else ():
        red = job.fails(panel, metric=metric, model=model)
        axes.axhline(limit_pct, color=job.palette["warning" if red else "published"], **line)
        place = axes.get_subplotspec()
        if place is not None and place.is_last_col():
            _say(axes, f"{limit_pct:g} %", limit_pct)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", length=0)


def _say(axes: Axes, words: str, limit_pct: float) -> None:
    """Write right of the axes, at the end of a line; the lower of the two a little lower."""
    down = limit_pct == COUNTED_PCT[0]
    axes.annotate(
        words, (1.0, limit_pct), xycoords=axes.get_yaxis_transform(), xytext=(2, 0),
        textcoords="offset points", fontsize="x-small", ha="left",
        va="top" if down else "bottom", annotation_clip=False,
    )  # fmt: skip


def _printed(job: Job, metric: str, model: str) -> list[Measurement]:
    """Return the error that the paper prints of a network, by its upper end."""
    facts = load_published(Path(job.published)).measurements.values()
    return [
        fact
        for fact in facts
        if (fact.paper, fact.metric, fact.config.get("model")) == (job.paper, metric, model)
        and not fact.is_bound
    ][:1]


def _heights(values: Sequence[float | None]) -> Any:
    return np.array([value or 0.0 for value in values])
