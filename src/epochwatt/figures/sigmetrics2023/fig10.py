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

from epochwatt.claims.number_sources import BEST, EpochTable
from epochwatt.figures.common import published, style
from epochwatt.figures.common.bars import Bar, draw_missing, draw_whisker, marked_row, positions
from epochwatt.figures.common.failing import entries, failing_sides, is_side, red_of
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.clouds import modes_note
from epochwatt.figures.sigmetrics2023.fig09 import groups_of
from epochwatt.prediction.names import REFERENCE, SEARCHED
from epochwatt.published.numbers import MEANT_EPOCHS, load_published
from epochwatt.study.runs import TWIN

NOT_PREDICTED = "no model was fitted"
NOT_SHOWN = ("vgg11",)  # in panel b
HATCH = "////"
WIDTH = 0.36
MOST_IN_ROW, IN_ROW = 3, 2  # networks side by side; of more than the first this many
FAILS_PCT = 50.0  # an error beyond it is said on the panel
BELOW_METRIC, ABOVE_METRIC = "n_time_predictions_below_10pct", "n_time_predictions_above_15pct"
COUNTED_PCT = (10.0, 15.0)  # section 5.7.2 counts predictions by them
MODES_OF_PAPER = 10  # of each network
PREDICTED = 40  # of so many
PAPERS_MODES = "efij"  # section 5.7.1: those that train the model of time
TRUE = "True"
UNITS_NOTE = "each network has its own scale, errors share one"
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
        source = EpochTable([], predictions=claim_numbers(predictions, job))
        wrong, is_red = failing_sides(job, panel, source), False
        for top, bottom, group in zip(tops, bottoms, groups, strict=False):
            bar_rows = [_rows(bar, job, column, target, predictions) for bar in group]
            _draw_bars(top, group, bar_rows, job)
            is_red |= _draw_errors(bottom, bar_rows, job, METRIC[target], wrong)
            rows += [row for quantities in bar_rows for row in quantities]
            failure = _failure(bar_rows, job, METRIC[target])
            look: dict[str, Any] = {
                "color": job.colours("warning")["warning"],
                "fontsize": "x-small",
            }
            is_red |= bool(failure)
            name = group[0].group.replace("\n", ", ") + _count(group, bar_rows, job, target)
            top.set_title(name + failure, **(look if failure else {"fontsize": "small"}))
        for top, bottom in zip(tops, bottoms, strict=True):
            if (place := top.get_subplotspec()) is not None and place.is_first_col():
                top.set_ylabel(label)
                bottom.set_ylabel("MAPE (%)")
        bottoms[-1].set_xlabel("power mode")
        _scale_errors(bottoms, rows, METRIC[target])
        runs = [bar.run for group in groups for bar in group]
        style.add_to_note(figure, modes_note(job, runs))
        style.add_to_note(figure, _counted(rows, job, target) + _trained_on(rows))
        style.legend(figure, [*_handles(rows, job), *entries(job, [is_red] * is_red)])
        job.save(figure, panel, rows, source)


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


def _counted(rows: Rows, job: Job, target: str) -> str:
    """Return how many predicted times are off by less than a limit, as published and here."""
    facts = load_published(Path(job.published)).measurements.values()
    printed = [
        fact.value for fact in facts if (fact.paper, fact.metric) == (job.paper, BELOW_METRIC)
    ][:1]
    errors = [row for row in rows if row["quantity"] == "mape_pct" and row["value"] is not None]
    if target != "time_s" or not errors:
        return ""
    below = [row for row in errors if row["value"] < COUNTED_PCT[0]]
    trained = sum(row["in_training_set"] == TRUE for row in below)
    is_whole = len(errors) == PREDICTED
    whole = f"{printed[0]:g} of {PREDICTED}, " if printed and is_whole else ""
    words = f"; errors below {COUNTED_PCT[0]:g} %: {whole}here {len(below)} of {len(errors)}"
    words += f", {trained} of them of modes that trained the model" if trained else ""
    if is_whole:
        mean_pct = float(np.mean([row["value"] for row in errors]))
        any_mode = [f"; any mode: about {pct:g} % published, the mean here {mean_pct:.0f} %"
                    for pct in _printed(job, METRIC[target], None)]  # fmt: skip
        words += "".join(any_mode)
    return f"{words}; dashed: {COUNTED_PCT[0]:g} and {COUNTED_PCT[1]:g} %, the paper counts by them"


def _count(group: Sequence[Bar], bar_rows: Sequence[Rows], job: Job, target: str) -> str:
    """Return a title's line on a network of which the paper counts predictions; else nothing."""
    factors = group[0].run.factors
    errors = [rows[2] for rows in bar_rows if rows[2]["value"] is not None]
    if target != "time_s" or factors["setup"] != job.paper or len(errors) != MODES_OF_PAPER:
        return ""
    low_pct, high_pct = COUNTED_PCT
    words = {
        BELOW_METRIC: (f"below {low_pct:g} %", [e for e in errors if e["value"] < low_pct]),
        ABOVE_METRIC: (f"above {high_pct:g} %", [e for e in errors if e["value"] > high_pct]),
    }
    facts = load_published(Path(job.published)).measurements.values()
    for fact in facts:
        of_model = fact.config.get("model") == factors["model"]
        if (fact.paper, of_model) == (job.paper, True) and fact.metric in words:
            which, here = words[fact.metric]
            return f"\nerrors {which}: {fact.value:g} of {len(errors)} published, here {len(here)}"
    return ""


def _trained_on(rows: Rows) -> str:
    """Return what the corner note says of the modes whose epochs trained the model."""
    trained = sorted({row["power_mode"] for row in rows if row["in_training_set"] == TRUE})
    modes = {row["power_mode"] for row in rows}
    if not trained:
        return f"; {UNITS_NOTE}"
    if all(row["in_training_set"] == TRUE for row in rows):
        return f"; every mode trained the model: no bar is a test of it; {UNITS_NOTE}"
    whose = f"; trained on modes {' '.join(trained)}"
    whose += f" (the paper's: {' '.join(PAPERS_MODES)})" if set(PAPERS_MODES) <= modes else ""
    return f"{whose}; {UNITS_NOTE}"


def _handles(rows: Rows, job: Job) -> list[Any]:
    """Return the entries of the legend."""
    grey, white = job.palette["missing"], style.pale(job.palette["missing"])
    observed = "simulated" if job.backend == TWIN else "measured"
    handles: list[Any] = [
        Patch(facecolor=grey, label=f"{observed} epochs"),
        Patch(facecolor=white, edgecolor="white", label="predicted by the paper's model"),
    ]
    if any(row["in_training_set"] == TRUE for row in rows):
        label = "its epochs trained the model"
        handles.append(Patch(facecolor=white, edgecolor="white", hatch=HATCH, label=label))
    shown = [row for row in rows if row["quantity"] == "mape_pct" and row["value"] is not None]
    for is_trained, label in ((False, "error of a test"), (True, "error of a trained mode")):
        if any((row["in_training_set"] == TRUE) == is_trained for row in shown):
            look = _marker(grey, is_trained)
            handles.append(Line2D([], [], linestyle="none", label=label, **look))
    return [*handles, *published.handles(rows, job.palette["published"])]


def claim_numbers(predictions: Predictions, job: Job) -> dict[tuple[str, str, str, str], Any]:
    """Return what predicates of claims ask for of the paper's own runs: errors, chosen modes.

    The chosen modes, letters in order, are those whose epochs trained the model of time.
    """
    errors_pct: dict[tuple[str, str, str, str], Any] = {}
    chosen: dict[str, set[str]] = {}
    for run in job.runs:
        f = run.factors
        for target, metric in METRIC.items() if f["setup"] == job.paper else ():
            if row := predictions.get((target, run.id)):
                errors_pct[metric, f["device"], f["model"], f["power_mode"]] = float(
                    row["mape_pct"]
                )
                if target == "time_s" and row["in_training_set"] == TRUE:
                    chosen.setdefault(f["device"], set()).add(f["power_mode"])
    best = {(BEST, device, "", ""): "".join(sorted(modes)) for device, modes in chosen.items()}
    return errors_pct | best


def _failure(bar_rows: Sequence[Rows], job: Job, metric: str) -> str:
    """Return what a network's title says where the model is no good for it; else nothing."""
    rows = [row for quantities in bar_rows for row in quantities if row["quantity"] == "mape_pct"]
    errors_pct = [row["value"] for row in rows if row["value"] is not None]
    if not errors_pct or max(errors_pct) <= FAILS_PCT:
        return ""
    printed = [
        f"published about {value:g} % off,\nhere "
        for value in _printed(job, metric, rows[0]["model"])
    ]
    predicted = [quantities[1]["value"] for quantities in bar_rows]
    below = [value for value in predicted if value is not None and value < 0.0]
    less = ", some below zero" if below else ""
    off = f"{min(errors_pct):.0f} to {max(errors_pct):.0f} %{'' if printed else ' off'}{less}"
    return f"\nthe model fails: {''.join(printed)}{off}"


def _marker(colour: str, is_trained: bool) -> dict[str, Any]:
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
    shade, grey, black = colour.values()
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
        published.draw_mark(axes, at - WIDTH / 2, quantities[0], black, WIDTH, side=0)
    if any(value is not None and value < 0.0 for value in predicted):
        axes.axhline(0.0, color=black, linewidth=0.8)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0, labelbottom=False)
    axes.grid(visible=False, axis="x")


def _draw_errors(
    axes: Axes,
    bar_rows: Sequence[Rows],
    job: Job,
    metric: str,
    wrong: Sequence[tuple[Any, Any]],
) -> bool:
    """Draw the error of each mode, and lines at the errors that the paper counts by or prints.

    Parameters
    ----------
    wrong : sides of the comparisons that claims fail by; an error that is one is red

    Returns
    -------
    whether one is red
    """
    x, black = positions([""] * len(bar_rows)), job.colours("published")["published"]
    model = bar_rows[0][0]["model"]
    shade, is_red = job.colours(model)[model], False
    for at, quantities in zip(x, bar_rows, strict=True):
        error = quantities[2]
        if error["value"] is not None:
            is_wrong = any(is_side(error["value"], sides) for sides in wrong)
            is_red |= is_wrong
            look = _marker(red_of(job) if is_wrong else shade, error["in_training_set"] == TRUE)
            axes.plot([at], [error["value"]], linestyle="none", zorder=3, clip_on=False, **look)
    printed = _printed(job, metric, model)
    for limit_pct in COUNTED_PCT if metric == METRIC["time_s"] else printed:
        axes.axhline(limit_pct, color=black, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1.5)
        place = axes.get_subplotspec()
        if metric == METRIC["time_s"] and place is not None and place.is_last_col():
            _say(axes, f"{limit_pct:g} %", limit_pct)
    if metric != METRIC["time_s"] and printed:
        axes.text(0.02, 0.04, f"line: published, about {printed[0]:g} %", fontsize="x-small",
                  transform=axes.transAxes)  # fmt: skip
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", length=0)
    return is_red


def _say(axes: Axes, words: str, limit_pct: float) -> None:
    """Write right of the axes, at the end of a line; the lower of the two a little lower."""
    down = limit_pct == COUNTED_PCT[0]
    axes.annotate(
        words, (1.0, limit_pct), xycoords=axes.get_yaxis_transform(), xytext=(2, 0),
        textcoords="offset points", fontsize="x-small", ha="left",
        va="top" if down else "bottom", annotation_clip=False,
    )  # fmt: skip


def _printed(job: Job, metric: str, model: str | None) -> list[float]:
    """Return the upper ends of errors that the paper prints of a network; None: of none alone."""
    facts = load_published(Path(job.published)).measurements.values()
    return [
        fact.value
        for fact in facts
        if (fact.paper, fact.metric, fact.config.get("model")) == (job.paper, metric, model)
        and not fact.is_bound
    ][:1]


def _heights(values: Sequence[float | None]) -> Any:
    return np.array([value or 0.0 for value in values])
