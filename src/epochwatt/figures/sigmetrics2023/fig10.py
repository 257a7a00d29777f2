"""Figure 10: observed against predicted time (a) and energy (b) of an epoch, by power mode.

Source: SIGMETRICS 2023, section 5.7. The paper's own models: time from four modes, energy from one
model for all networks. Bars are means over epochs 1+; MAPE, on the right axis, is over epochs 1 to
5, also of longer runs. Hatched: modes that the model of time has learned from. VGG-11 is not in
panel b, as in the paper; results/models/ has its numbers.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.claims.number_sources import EpochTable
from epochwatt.figures.common import published, style
from epochwatt.figures.common.bars import Bar, draw_missing, marked_row, positions
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.runs import Number, RunData
from epochwatt.figures.sigmetrics2023.fig09 import groups_of
from epochwatt.prediction.names import REFERENCE, SEARCHED
from epochwatt.published.numbers import MEANT_EPOCHS, load_published

NOT_PREDICTED = "no model was fitted"
NOT_SHOWN = ("vgg11",)  # in panel b
HATCH = "////"
WIDTH = 0.4
FAILS_PCT = 50.0  # an error beyond it is said on the panel
METRIC = {"time_s": "time_mape_pct", "energy_wh": "energy_mape_pct"}  # target -> of claims

Rows = list[dict[str, Any]]
Predictions = Mapping[tuple[str, str], Mapping[str, str]]  # target, run -> row


def draw(job: Job) -> None:
    """Draw the panels."""
    predictions, groups = read(job.predictions), groups_of(job)
    small = [group for group in groups if group[0].run.factors["model"] not in NOT_SHOWN]
    _draw_panel(
        job, "fig10a", groups, "e2e_s", "time_s", "E2E per epoch, epochs 1+ (s)", predictions
    )
    label = "energy per epoch, epochs 1+ (Wh)"
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
        facets, rows = style.side_by_side(figure, axes, max(len(groups), 1)), []
        for facet, group in zip(facets, groups, strict=False):
            bar_rows = [_rows(bar, job, column, target, predictions) for bar in group]
            right = _draw_facet(facet, group, bar_rows, job)
            align_zeros(facet, right)
            rows += [row for quantities in bar_rows for row in quantities]
            failure = _failure(bar_rows, job, METRIC[target])
            look: dict[str, Any] = {
                "color": job.colours("warning")["warning"],
                "fontsize": "x-small",
            }
            name = group[0].group.replace("\n", ", ")
            facet.set_title(name + failure, **(look if failure else {}))
        facets[0].set_ylabel(label)
        facets[len(facets) // 2].set_xlabel("power mode")
        if groups:
            right.set_ylabel("MAPE (%)")
        grey, white = job.palette["missing"], style.pale(job.palette["missing"])
        handles = [
            Patch(facecolor=grey, label="observed"),
            Patch(facecolor=white, edgecolor="white", label="predicted"),
            Patch(facecolor=white, edgecolor="white", hatch=HATCH, label="its epochs trained it"),
            Line2D([], [], linestyle="none", label="MAPE (right)", **_marker(grey)),
        ]
        style.legend(figure, [*handles, *published.handles(rows, job.palette["published"])])
        job.save(figure, panel, rows, EpochTable([], predictions=claim_numbers(predictions, job)))


def claim_numbers(predictions: Predictions, job: Job) -> dict[tuple[str, str, str, str], float]:
    """Return the errors of the paper's own runs as predicates of claims ask for them."""
    errors_pct = {}
    for run in job.runs:
        f = run.factors
        for target, metric in METRIC.items() if f["setup"] == job.paper else ():
            if row := predictions.get((target, run.id)):
                errors_pct[metric, f["device"], f["model"], f["power_mode"]] = float(
                    row["mape_pct"]
                )
    return errors_pct


def _failure(bar_rows: Sequence[Rows], job: Job, metric: str) -> str:
    """Return what a network's title says where the model is no good for it; else nothing."""
    rows = [row for quantities in bar_rows for row in quantities if row["quantity"] == "mape_pct"]
    errors_pct = [row["value"] for row in rows if row["value"] is not None]
    if not errors_pct or max(errors_pct) <= FAILS_PCT:
        return ""
    facts = load_published(Path(job.published)).measurements.values()
    printed = [
        f"\npublished: up to about {fact.value:g} %"
        for fact in facts
        if fact.metric == metric and fact.config.get("model") == rows[0]["model"]
    ]
    return f"\nthe model fails: {min(errors_pct):.0f} to {max(errors_pct):.0f} % off" + "".join(
        printed[:1]
    )


def align_zeros(left: Axes, right: Axes) -> None:
    """Put the zeros of two axes at one height: the right one shows no value below 0."""
    low, high = left.get_ylim()
    if low < 0.0 < high:
        top = right.get_ylim()[1]
        right.set_ylim(top * low / high, top)
        right.set_yticks([tick for tick in right.get_yticks() if 0.0 <= tick <= top])


def _marker(colour: str) -> dict[str, Any]:
    """Return the look of our own points: filled, in no colour of a published mark."""
    return {
        **{"marker": "o", "markersize": 4, "markerfacecolor": colour},
        **{"markeredgecolor": "white", "markeredgewidth": 0.6},
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


def _draw_facet(axes: Axes, bars: Sequence[Bar], bar_rows: Sequence[Rows], job: Job) -> Axes:
    """Draw one network; return the axes of MAPE."""
    x = positions([bar.group for bar in bars])
    colour = job.colours(bars[0].run.factors["model"], "missing", "published")
    shade, grey, black = colour.values()
    seen, predicted, mape = ([quantities[n]["value"] for quantities in bar_rows] for n in range(3))
    axes.bar(x - WIDTH / 2, _heights(seen), WIDTH, color=shade)
    trained = np.array([quantities[0]["in_training_set"] == "True" for quantities in bar_rows])
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
    for at, quantities in zip(x, bar_rows, strict=True):
        published.draw_mark(axes, at - WIDTH / 2, quantities[0], black)
    axes.set_xticks(x, [bar.tick for bar in bars])
    axes.tick_params("x", length=0)
    axes.grid(visible=False, axis="x")
    right = axes.twinx()
    right.plot(x, [np.nan if one is None else one for one in mape], ls="none", **_marker(grey))
    right.set_ylim(bottom=0)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    return right


def _heights(values: Sequence[float | None]) -> Any:
    return np.array([value or 0.0 for value in values])
