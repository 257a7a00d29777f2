"""Solvers of schedules: what they profile, how often they answer, what their answers lose."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epochwatt.figures.common import style
from epochwatt.figures.common.interactive import SCHEMA
from epochwatt.figures.roofline.look import write_caption
from epochwatt.published.tables import read_table

TITLE = "Training and inference on one board: profiles, answers, loss"
WIDTH_IN, HEIGHT_IN = 9.0, 5.0
NOTE = "simulated AGX Orin, not measured; GMD in our reading"
JOBS = {
    "train": "training",
    "infer": "inference",
    "train_and_infer": "training beside inference",
    "two_infer": "two streams of inference",
}
LOOKS = {  # beginning of a solver's name -> words, colour, mark; the first that fits
    "exhaustive": ("all modes", "#555555", "."),
    "gmd": ("GMD (our reading)", "#0072B2", "o"),
    "als": ("ALS (our reading)", "#56B4E9", "s"),
    "neural": ("networks of random modes", "#D55E00", "D"),
    "powertrain": ("PowerTrain, transferred", "#882255", "P"),
    "maxn": ("MAXN", "#8C4A00", "*"),
    "presets": ("preset modes", "#777777", "h"),
    "random": ("best of random modes", "#E69F00", "X"),
    "physical": ("physical terms", "#009E73", "^"),
    "utilisation": ("utilisation", "#CC79A7", "v"),
}
HOLLOW = "_verified"  # end of a solver's name: its answers were run
CAPTION = """Each mark is a solver (those with random modes: 10 and 50 of them, mean over
draws), mean over the networks or pairs of the study. Across: profiles that it needs, pairs of
job, mode and mini-batch size, each run once. Above: solvable problems that it answers with a
plan that keeps the budgets of power and latency. Below: how far such plans are from the best,
in throughput of training or in worst latency. Those of ALS, of networks and of random or preset
modes serve all problems of the jobs; others are of each problem. Hollow marks predict, and then
run their best candidates; filled ones of the same form, and networks, answer with a prediction
that nobody checked. GMD and ALS are our reading of searches that their paper (Fulcrum, arXiv
2509.20205) states in words. Every problem of a grid of budgets and rates counts once
(schedule/sampler.py); those that no mode solves are left out."""


def draw_schedules(scores: str, style_file: str, stem: str) -> None:
    """Draw results/fulcrum/scores.csv: SVG, PNG, CSV, caption and interactive spec at `stem`."""
    rows = summarised(row for _, row in read_table(Path(scores)))
    settings = {"title": TITLE, "width_in": WIDTH_IN, "height_in": HEIGHT_IN}
    jobs = [name for name in JOBS if any(row["jobs"] == name for row in rows)]
    with style.panel(style_file, settings, NOTE) as (figure, axes):
        axes.remove()
        grid = figure.subplots(2, len(jobs), squeeze=False, sharex="col", sharey="row")
        for column, name in enumerate(jobs):
            some = [row for row in rows if row["jobs"] == name]
            _field(grid[0][column], some, "kept_pct")
            _field(grid[1][column], some, "loss_pct")
            grid[0][column].set_title(JOBS[name], fontsize="small")
            grid[1][column].set_xlabel("profiles")
        grid[0][0].set_ylabel("answered within budgets (%)")
        grid[1][0].set_ylabel("mean loss (%)")
        style.legend(figure, _handles(rows))
        style.save(figure, stem, rows)
    write_caption(stem, TITLE, CAPTION, "simulated boards, not measured")
    Path(f"{stem}.vl.json").write_text(json.dumps(_spec(rows)) + "\n", "utf-8")


def summarised(rows: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return a row for each kind of jobs and solver: means over sets of jobs and draws.

    Of answers that keep their budgets: `kept_pct`, of solvable problems; `loss_pct`, their mean
    distance to the best.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        if row["answered_pct"]:  # else nothing to solve, or a method that could not be fitted
            key = row["provenance"], row["jobs"], row["solver"]
            groups.setdefault(key, []).append(row)
    return [
        {
            **dict(zip(("provenance", "jobs", "solver"), key, strict=True)),
            "n_profiles": fmean(float(row["n_profiles"]) for row in some),
            "kept_pct": fmean(float(r["answered_pct"]) * float(r["kept_pct"]) / 100 for r in some),
            "loss_pct": _mean(row["loss_mean_pct"] for row in some),
            "n_rows": len(some),
        }
        for key, some in groups.items()
    ]


def _mean(cells: Iterable[str]) -> float | str:
    values = [float(cell) for cell in cells if cell]
    return fmean(values) if values else ""


def _look(solver: str) -> tuple[str, str, str]:
    fitting = (look for name, look in LOOKS.items() if solver.startswith(name))
    return next(fitting, (solver.rpartition("_")[0] or solver, "#332288", "p"))


def _field(axes: Axes, rows: Sequence[Mapping[str, Any]], column: str) -> None:
    """Draw a column of the solvers of one kind of jobs over their profiles."""
    for row in rows:
        if row[column] != "":
            _, colour, mark = _look(row["solver"])
            fill = "none" if row["solver"].endswith(HOLLOW) else colour
            axes.plot(row["n_profiles"], row[column], mark, color=colour, markerfacecolor=fill)
    axes.set_xscale("log")
    if column == "loss_pct":
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.1)
    axes.grid(visible=True, axis="both")


def _handles(rows: Sequence[Mapping[str, Any]]) -> list[Line2D]:
    looks = dict.fromkeys(_look(row["solver"]) for row in rows)
    handles = [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=words)
        for words, colour, mark in looks
    ]
    hollow: dict[str, Any] = {"markerfacecolor": "none", "color": "#555555", "linestyle": ""}
    return [*handles, Line2D([], [], marker="^", label="hollow: verified", **hollow)]


def _spec(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the interactive form: loss over profiles, the share answered as size."""
    shown = [row for row in rows if row["loss_pct"] != ""]
    x = {"field": "n_profiles", "type": "quantitative", "scale": {"type": "log"}}
    return {
        "$schema": SCHEMA,
        "title": {"text": TITLE, "subtitle": NOTE, "anchor": "start"},
        "data": {"values": shown},
        "facet": {"field": "jobs", "type": "nominal", "title": None},
        "columns": 2,
        "spec": {
            "width": 300,
            "height": 240,
            "mark": {"type": "point", "filled": True},
            "encoding": {
                "x": {**x, "title": "profiles"},
                "y": {"field": "loss_pct", "type": "quantitative", "title": "mean loss (%)"},
                "color": {"field": "solver", "type": "nominal"},
                "size": {"field": "kept_pct", "type": "quantitative", "title": "answered (%)"},
                "tooltip": [{"field": name} for name in shown[0]] if shown else [],
            },
        },
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
