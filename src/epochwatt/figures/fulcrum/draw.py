"""Draw the figures of the study of schedules: solvers, power budgets, latencies, changing rates."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epochwatt.figures.common import style, vega
from epochwatt.figures.common.vega import Spec
from epochwatt.figures.frames import (
    Words,
    caption,
    numbers,
    read_texts,
    records,
    study_figure,
)
from epochwatt.figures.fulcrum.names import HOLLOW, JOBS, ORIGINS, REPLANNING, TITLES, look
from epochwatt.schedule.solver_means import SUMMED, summarised

WIDTH_IN = 9.0
SHORT = {"resnet50-imagenet-adadelta": "resnet50", "shufflenetv2-cifar100-adadelta": "shufflenetv2"}


def draw_schedules(tables: Iterable[str], style_file: str, stems: Iterable[str]) -> None:
    """Draw figures of tables: SVG, PNG, CSV, caption and interactive form of each.

    A stem is results/figures/{folder of `ORIGINS`}/{name in `TITLES`}.
    """
    by_name = {Path(table).stem: table for table in tables}
    for stem in stems:
        table, draw = DRAW[Path(stem).name]
        draw(read_texts(by_name[table]), stem, style_file)


def _provenance(stem: str) -> str:
    return ORIGINS[Path(stem).parent.name].provenance


def _opened(
    stem: str,
    style_file: str,
    height_in: float,
    rows: pd.DataFrame,
    spec: Spec,
    note: str = "",
    **told: str,
) -> AbstractContextManager[tuple[Figure, Axes]]:
    """Open a figure of these rows; its caption is told what is special of them."""
    path = Path(stem)
    origin = ORIGINS[path.parent.name]
    text = caption(path.name, provenance=origin.provenance, **told)
    words = Words(TITLES[path.name], origin.first, origin.note + note, text, origin.ending)
    return study_figure(stem, style_file, words, (WIDTH_IN, height_in), records(rows), lambda: spec)


# -- solvers: what they profile, how often they answer, what their answers lose -------------------

MEASURES = {  # column of the summary -> title of its fields
    "n_profiles": "profiles",
    "kept_pct": "answered within budgets (%)",
    "loss_pct": "mean loss to the best (%)",
}
_SOLVER = vega.name("solver")
SOLVER_IN = 0.17  # height of a solver's row


def draw_solvers(scores: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/fulcrum/scores.csv: a row for each solver, a column for each kind of jobs."""
    typed = scores.assign(**{name: numbers(scores[name]) for name in SUMMED})
    summary = [r for r in records(summarised(typed)) if r["provenance"] == _provenance(stem)]
    rows = pd.DataFrame(summary or None, columns=None if summary else ["jobs", "solver"])
    jobs = [name for name in JOBS if rows.jobs.eq(name).any()]
    solvers = list(rows.solver.unique())
    sampled = "; expected gain on a sample of the problems"
    told = [row for row in summary if row["loss_pct"] != ""]
    x = vega.number("n_profiles", "profiles", scale={"type": "log"})
    spec = vega.plane(told, x, vega.number("loss_pct", "mean loss (%)"), _SOLVER, field="jobs")
    height_in = 1.2 + len(MEASURES) * (0.6 + SOLVER_IN * max(len(solvers), 1))
    with _opened(stem, style_file, height_in, rows, spec, sampled) as opened:
        figure, axes = opened
        axes.remove()
        shape: style.Look = {"squeeze": False, "sharex": "row", "sharey": True}
        grid = figure.subplots(len(MEASURES), max(len(jobs), 1), **shape)
        for (column, words), places in zip(MEASURES.items(), grid, strict=True):
            for place, name in zip(places, jobs, strict=False):
                shown = rows[rows.jobs.eq(name) & rows[column].ne("")]
                for solver, value in zip(shown.solver, shown[column], strict=True):
                    _, colour, mark = look(solver)
                    place.plot(value, solvers.index(solver), mark, color=colour, markersize=5)
                place.grid(visible=True, axis="both")
                place.set_xlabel(words, fontsize="small")
            places[0].set_yticks(range(len(solvers)), list(map(_solver_title, solvers)))
            places[0].set_ylim(max(len(solvers), 1) - 0.5, -0.5)
        style.set_log(grid[0][0], "x")
        style.label_log(grid[0][0].xaxis, 1, 3)
        grid[-1][0].set_xscale("symlog", linthresh=1)
        grid[-1][0].set_xlim(-0.1, 110)
        grid[-1][0].xaxis.set_major_formatter("{x:g}")
        for place, name in zip(grid[0], jobs, strict=False):
            place.set_title(JOBS[name], fontsize="small")


def _solver_title(solver: str) -> str:
    """Return a solver in words, with how many random modes it profiles."""
    base, verified = solver.removesuffix(HOLLOW), ", verified" if solver.endswith(HOLLOW) else ""
    number = base.rpartition("_")[2]
    return f"{look(solver)[0]}{f', {number}' if number.isdigit() else ''}{verified}"


# -- a field for each pair of networks on a device, or each plan ----------------------------------


def _pair_titles(rows: pd.DataFrame) -> "pd.Series[str]":
    train, infer = (rows[name].replace(SHORT) for name in ("train", "infer"))
    titles = train + " trains, " + infer + " serves"
    if rows.device.nunique() > 1:
        titles = titles + "\n" + rows.device
    return (
        titles + rows.plan.where(rows.plan.eq(""), "\n" + rows.plan) if "plan" in rows else titles
    )


def _pairs(
    figure: Figure, axes: Axes, rows: pd.DataFrame, label: str
) -> Iterator[tuple[Axes, pd.DataFrame]]:
    """Yield axes and rows of each pair, in rows of two or three; `label` stands at their left."""
    pairs = list(rows.groupby(_pair_titles(rows), sort=False))
    places = style.facets(figure, axes, max(len(pairs), 1), 2 if len(pairs) in (2, 4) else 3)
    for place in places:
        spec = place.get_subplotspec()
        place.set_ylabel(label if spec is not None and spec.is_first_col() else "")
    for place, (title, pair) in zip(places, pairs, strict=False):
        yield place, pair
        place.set_title(str(title), fontsize="small")
        place.grid(visible=True, axis="both")


# -- training over power budgets, of each solver's plans ------------------------------------------

BASELINES = ("maxn", "presets")
MOST_LINES = 6  # of the solvers: the others are in the CSV
LINES = {  # solver -> dashes and width
    "exhaustive": ("-", 2.6),
    "gmd": ("-", 1.3),
    "gain": ("--", 1.3),
    "maxn": (":", 1.3),
    "presets": ("-.", 1.0),
}


def draw_power(power: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/fulcrum/power.csv: training over power budgets, a line for each solver."""
    rows = power[power.provenance.eq(_provenance(stem))]
    solvers = shown_solvers(rows.solver)
    rows, drawn = rows[rows.solver.isin(solvers)], solvers[:MOST_LINES]
    rows = rows.assign(**{n: numbers(rows[n]) for n in ("max_power_w", "throughput_per_s")})
    told = records(rows[rows.throughput_per_s.notna()].assign(field=_pair_titles(rows)))
    x, y = vega.number("max_power_w", "power budget (W)"), vega.number("throughput_per_s", "1/s")
    spec = vega.plane(told, x, y, _SOLVER, field="field", line="solver")
    with _opened(stem, style_file, 5.4, rows, spec) as (figure, axes):
        for place, pair in _pairs(figure, axes, rows, "mini-batches of training / s"):
            for name in drawn:
                line = pair[pair.solver.eq(name)]
                steps: style.Look = {"drawstyle": "steps-post", **_strokes(name)}
                if len(line):
                    place.plot(line.max_power_w, line.throughput_per_s, **steps)
            place.set_xlabel("power budget (W)")
            if (pair.throughput_per_s.fillna(0.0) != 0.0).any():
                place.set_ylim(bottom=0)
            else:
                place.set_ylim(0, 1)
                place.text(0.5, 0.5, "no plan trains", transform=place.transAxes, ha="center")
        handles = [Line2D([], [], label=_solver_title(n), **_strokes(n)) for n in drawn]
        style.legend(figure, handles)


def shown_solvers(names: Iterable[str]) -> list[str]:
    """Return the solvers that have a line, of those that profile random modes the smallest number.

    A prediction that nobody checked has none: its throughput may be that of a broken budget.
    """
    every = list(dict.fromkeys(names))
    chosen = [n for n in every if not n.endswith(HOLLOW) and not n.rpartition("_")[2].isdigit()]
    plain = [name for name in chosen if name not in BASELINES]
    chosen = plain + [name for name in every if name.startswith("random_")][:1]
    chosen += [name for name in every if name.endswith(HOLLOW)][:1]
    return chosen + [name for name in BASELINES if name in every]


def _strokes(solver: str) -> style.Look:
    _, colour, _ = look(solver)
    line, width = LINES.get(solver, ("--", 1.2))
    pale = style.pale(colour) if solver == "exhaustive" else colour
    return {"color": pale, "linestyle": line, "linewidth": width, "marker": ""}


# -- how long requests wait: steady or random arrivals, or measured -------------------------------

ARRIVALS = {  # of requests -> words and colour
    "constant": ("steady arrivals", "#0072B2"),
    "poisson": ("random arrivals (Poisson)", "#D55E00"),
    "trace": ("a trace", "#009E73"),
}
LEAST_PCT = 0.1  # of the axis


def draw_latency(latencies: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/fulcrum/latencies.csv: requests that wait longer than a latency.

    Of a study's plans, or of those that were measured, with the same simulated.
    """
    provenance = _provenance(stem)
    is_measured, has_plan = provenance == "measured", latencies.plan.ne("")
    rows = latencies[has_plan if is_measured else latencies.provenance.eq(provenance) & ~has_plan]
    rows = rows.assign(
        latency_ms=1e3 * numbers(rows.latency_s),
        percentile=numbers(rows.percentile),
        line=rows.arrivals.map(lambda name: ARRIVALS[name][0]) + ", " + rows.provenance,
    )
    x = vega.number("latency_ms", "latency (ms)")
    y = vega.number("percentile", "requests answered by then (%)")
    told = records(rows.assign(field=_pair_titles(rows)))
    spec = vega.plane(told, x, y, vega.name("line"), field="field", line="line")
    with _opened(stem, style_file, 5.4, rows, spec) as (figure, axes):
        for place, pair in _pairs(figure, axes, rows, "requests that wait longer (%)"):
            for (arrivals, whose), line in pair.groupby(["arrivals", "provenance"], sort=False):
                dashes = "--" if is_measured and whose == "simulated" else "-"
                longer_pct = (100 - line.percentile).clip(lower=LEAST_PCT / 10)
                colour = ARRIVALS[str(arrivals)][1]
                place.plot(line.latency_ms, longer_pct, dashes, color=colour, marker="")
            budget_ms = 1e3 * float(pair.max_latency_s.iloc[-1])
            place.axvline(budget_ms, color="#555555", linestyle=":")
            place.set_yscale("log")
            place.set_ylim(LEAST_PCT, 130)
            style.label_log(place.yaxis, 1)
            place.set_xlim(left=0)
            place.set_xlabel("latency (ms)")
        looks = [ARRIVALS[name] for name in rows.arrivals.unique()]
        lines = [Line2D([], [], label=words, color=colour) for words, colour in looks]
        budget = Line2D([], [], label="latency budget", color="#555555", linestyle=":")
        style.legend(figure, [*lines, budget])


# -- rates that change: rate and plan, longest latency and training, on one time axis -------------

WAYS = {  # of planning -> words, colour, width: lines that lie on one another are all seen
    "oracle": ("oracle: knows all rates", "#000000", 3.6),
    "never": ("never planned anew: for the peak", "#56B4E9", 2.6),
    "always": ("always, for the minute before", "#009E73", 1.6),
    "hysteresis": ("with hysteresis", "#D55E00", 0.7),
}
RATE, LATEST = "#999999", "#CC0000"
FIELDS = {  # column -> label of its axis
    "rate_per_s": "requests/s",
    "gpu_mhz": "GPU clock (MHz)",
    "worst_s": "longest latency (s)",
    "trained_per_s": "training\n(mini-batches/s)",
}
SLOT_NUMBERS = ("t_s", "max_latency_s", *FIELDS)


def draw_replanning(slots: pd.DataFrame, stem: str, style_file: str) -> None:
    """Draw results/fulcrum/changing-slots.csv: rate, clock, latency and training over time.

    The first jobs are drawn, with arrivals that are not random; of the times that clocks may take
    to settle the middle one.
    """
    rows = slots[slots.arrivals.ne("poisson")]
    train, infer = rows.iloc[0][["train", "infer"]]
    times = sorted(rows.switch_s.unique(), key=float)
    switch_s = times[len(times) // 2]
    rows = rows[rows.train.eq(train) & rows.infer.eq(infer) & rows.switch_s.eq(switch_s)]
    rows = rows.assign(**{name: rows[name].astype(float) for name in SLOT_NUMBERS})
    x, y = vega.number("t_s", "time (s)"), vega.number("trained_per_s", "training (mini-batches/s)")
    who = vega.name("policy")
    spec = vega.plane(records(rows), x, y, who, field="rates", line="policy", columns=1)
    jobs = {"train": train, "infer": infer, "switch_s": f"{float(switch_s):g}"}
    with _opened(stem, style_file, 6.5, rows, spec, **jobs) as (figure, axes):
        axes.remove()
        names = rows.rates.unique()
        grid = figure.subplots(len(FIELDS), len(names), squeeze=False, sharex="col", sharey="row")
        for places, name in zip(grid.T, names, strict=True):
            for place, column in zip(places, FIELDS, strict=True):
                for way, (_, colour, width) in WAYS.items():
                    line = rows[rows.rates.eq(name) & rows.policy.eq(way)]
                    if column == "worst_s" and way == "oracle":
                        place.axhline(line.max_latency_s.iloc[0], color=LATEST, linewidth=0.8)
                    ink = RATE if column == "rate_per_s" else colour  # the same whoever plans
                    steps: style.Look = {"where": "post", "color": ink, "linewidth": width}
                    place.step(line.t_s / 60, line[column], **steps)
                place.grid(visible=True, axis="both")
            places[0].set_title(name, fontsize="small")
            places[-1].set_xlabel("time (min)")
        for place, label in zip(grid[:, 0], FIELDS.values(), strict=True):
            place.set_ylabel(label)
            place.set_ylim(bottom=0)  # of the whole row
        looks = [("rate of requests", RATE, 2.5), ("budget of latency", LATEST, 0.8)]
        looks += WAYS.values()
        style.legend(figure, [Line2D([], [], label=w, color=c, linewidth=n) for w, c, n in looks])


DRAW = {  # figure -> table, and what draws it
    "fulcrum_solvers": ("scores", draw_solvers),
    "fulcrum_power": ("power", draw_power),
    "fulcrum_latency": ("latencies", draw_latency),
    REPLANNING: ("changing-slots", draw_replanning),
}
