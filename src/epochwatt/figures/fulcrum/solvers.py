"""Draw solvers of schedules: what they profile, how often they answer, what their answers lose."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.fulcrum.names import (
    ASSUMED,
    ENDINGS,
    FIGURES,
    FIRST,
    HOLLOW,
    JOBS,
    NOTES,
    look,
)
from epochwatt.figures.roofline.look import write_caption
from epochwatt.schedule.summary import summarised
from epochwatt.tables import read_frame

TITLE = FIGURES["fulcrum_solvers"]
WIDTH_IN, HEIGHT_IN = 9.0, 5.0
SAMPLED = "; expected gain on a sample of the problems"
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
PUBLIC = f"""Modes are the power limits of a V100 and an RTX 6000, 7 and 8 of them; of random modes
there are 3. {ASSUMED} Preset modes of these devices are not known: that solver is left out."""


def draw_solvers(scores: str, provenance: str, style_file: str, stem: str) -> None:
    """Draw the rows of a provenance of results/fulcrum/scores.csv: all files of a figure at `stem`.

    They are SVG, PNG, CSV, caption and interactive spec.
    """
    every = summarised(read_frame(scores))
    every = every.astype(object).where(every.notna(), "")
    rows = every[every["provenance"] == provenance].to_dict("records")
    settings = {
        "title": style.titled(TITLE, FIRST[provenance]),
        "width_in": WIDTH_IN,
        "height_in": HEIGHT_IN,
    }
    jobs = [name for name in JOBS if any(row["jobs"] == name for row in rows)]
    with style.panel(style_file, settings, NOTES[provenance] + SAMPLED) as (figure, axes):
        axes.remove()
        grid = figure.subplots(2, max(len(jobs), 1), squeeze=False, sharex="col", sharey="row")
        for column, name in enumerate(jobs):
            some = [row for row in rows if row["jobs"] == name]
            _field(grid[0][column], some, "kept_pct")
            _field(grid[1][column], some, "loss_pct")
            grid[0][column].set_title(JOBS[name], fontsize="small")
            grid[1][column].set_xlabel("profiles")
        grid[0][0].set_ylabel("answered within budgets (%)")
        grid[1][0].set_ylabel("mean loss to the best (%)")
        style.legend(figure, _handles(rows))
        style.save(figure, stem, rows)
    caption = f"{CAPTION} {PUBLIC}" if provenance == "public" else CAPTION
    write_caption(stem, TITLE, caption, ENDINGS[provenance])
    _write_spec(stem, rows)


def _field(axes: Axes, rows: Sequence[Cells], column: str) -> None:
    """Draw a column of the solvers of one kind of jobs over their profiles."""
    for row in rows:
        if row[column] != "":
            _, colour, mark = look(row["solver"])
            fill = "none" if row["solver"].endswith(HOLLOW) else colour
            axes.plot(row["n_profiles"], row[column], mark, color=colour, markerfacecolor=fill)
    style.set_log(axes, "x")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if column == "loss_pct":
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(-0.1, 110)
    axes.grid(visible=True, axis="both")


def _handles(rows: Sequence[Cells]) -> list[Line2D]:
    looks = dict.fromkeys(look(row["solver"]) for row in rows)
    handles = [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=words)
        for words, colour, mark in looks
    ]
    hollow: dict[str, Any] = {"markerfacecolor": "none", "color": "#555555", "linestyle": ""}
    return [*handles, Line2D([], [], marker="^", label="hollow: verified", **hollow)]


def _write_spec(stem: str, rows: Sequence[Cells]) -> None:
    """Write the interactive form: loss over profiles, the share answered as size."""
    shown = [row for row in rows if row["loss_pct"] != ""]
    points = vega.layer(
        {"type": "point", "filled": True},
        x=vega.number("n_profiles", "profiles", scale={"type": "log"}),
        y=vega.number("loss_pct", "mean loss (%)"),
        color={"field": "solver", "type": "nominal"},
        size=vega.number("kept_pct", "answered (%)"),
        tooltip=vega.tooltip(shown[0] if shown else ()),
    )
    fields = vega.multiples(vega.name("jobs"), [points], 300, 240, 2, "x", "y")
    note = NOTES[rows[0]["provenance"]] if rows else ""
    vega.write(stem, TITLE, note, {"data": {"values": shown}, **fields})
