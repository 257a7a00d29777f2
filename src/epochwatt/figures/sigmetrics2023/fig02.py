"""Figure 2: an epoch's time by number of loader workers (a), stall by epoch (b), energy (c).

Source: SIGMETRICS 2023, section 5.1. The paper shows none to four workers in panel a, four in panel
b, none and four in panel c; a group of bars without four is drawn with every number of workers.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from epochwatt import columns
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    SETUP,
    Bar,
    Bracket,
    brackets_of,
    draw_bars,
    draw_brackets,
    draw_missing,
    draw_stacks,
    grouped,
    legend,
    model_facets,
    of_epochs,
    places,
    split,
    x_of,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import Plotted
from epochwatt.figures.common.runs import RunData, data_words
from epochwatt.published.numbers import single
from epochwatt.text import counted

WITHIN = ("num_workers", "prefetch_factor")
FOUR = 4  # workers
HALF, PAIR = 0.18, 0.3  # how far bars of a pair are from its middle, and their width
SETS = (("0", "epoch_0", "epoch 0", -HALF), ("1+", "epoch_1_plus", "epochs 1+", HALF))
TIMES = {name: columns.label(name) for name in ("stall_s", "e2e_s")}
HALF_FULL = 0.5  # of axes: emptier ones have a scale of their own
ASIDE = 0.7  # of a bar, beside the last one, for what is printed of it
MEDIA = {"hdd": "hard disk", "sd": "SD card", "ssd": "SSD"}


def draw(job: Job) -> None:
    """Draw the panels."""
    bars, label = bars_of(job, "1+")
    groups = split(bars, lambda bar: bar.group)
    draw_times([without_eight(group) for group in groups], label, job)
    bars, label = bars_of(job)
    for panel, quantity, workers in (
        ("fig02b", "stall_s", (FOUR,)),
        ("fig02c", "energy_paper_wh", (0, FOUR)),
    ):
        shown = of_paper(bars, workers)
        runs = [bar.run for bar in shown]
        with job.panel(panel, runs, addition=conditions(runs)) as (figure, axes):
            changes = job.related("energy_wh") if panel == "fig02c" else []
            job.remark(panel, "Brackets are of epochs 1+." if changes else "")
            if FOUR not in (run.factors["num_workers"] for run in runs):
                job.remark(panel, f"There is no run with the paper's {FOUR} workers.")
            facets = model_facets(figure, axes, shown, job, (label, style.axis_title(quantity)))
            rows = [row for at, of in facets for row in draw_pairs(of, at, job, quantity)]
            legend(facets[0][0], [*rows, *changes], job)
            over = [(at, brackets_of(changes, places(of, HALF), job, TIMES)) for at, of in facets]
            draw_brackets(over)
            job.save(figure, panel, [*rows, *changes])


def bars_of(job: Job, epoch_set: str = "all") -> tuple[list[Bar], str]:
    """Make the bars, grouped by all factors but the loader's; return them and the x axis's label.

    Ticks are numbers of workers, `4×2` with prefetch factors where these differ. `epoch_set`: `all`
    epochs, or `1+` without the first.
    """
    runs = of_epochs(job.runs, epoch_set)
    prefetch_differs = (
        len({r.factors["prefetch_factor"] for r in runs if r.factors["num_workers"]}) > 1
    )

    def tick(run: RunData) -> str:
        workers = run.factors["num_workers"]
        has_prefetch = prefetch_differs and workers
        return f"{workers}×{run.factors['prefetch_factor']}" if has_prefetch else f"{workers}"

    def order(run: RunData) -> tuple[int, int]:
        return run.factors["num_workers"], run.factors["prefetch_factor"] or 0

    bars = grouped(runs, job, WITHIN, tick, order)
    return bars, columns.label("num_workers") + (" × prefetch factor" if prefetch_differs else "")


def without_eight(group: Sequence[Bar]) -> list[Bar]:
    """Leave out bars of the paper's set-up with more than four workers, if the group has four."""
    workers = [bar.run.factors["num_workers"] for bar in group]
    if FOUR not in workers:
        return list(group)
    return [
        bar
        for bar, n in zip(group, workers, strict=True)
        if n <= FOUR or bar.run.factors["setup"] != SETUP
    ]


def of_paper(bars: Sequence[Bar], workers: Sequence[int]) -> list[Bar]:
    """Return the bars with these numbers of workers; all of a group where none has four."""
    with_four = {bar.group for bar in bars if bar.run.factors["num_workers"] == FOUR}
    return [
        bar
        for bar in bars
        if bar.group not in with_four or bar.run.factors["num_workers"] in workers
    ]


def conditions(runs: Sequence[RunData]) -> str:
    """Return the number of workers and the medium, where all runs share it, to end a title."""
    workers, media = ({run.factors[name] for run in runs} for name in ("num_workers", "storage"))
    text = f", {counted(workers.pop(), 'loader workers')}" if len(workers) == 1 else ""
    if len(media) == 1 and (medium := media.pop()) in MEDIA:
        text += f", data on {MEDIA[medium]}"
    return text


def draw_times(groups: Sequence[list[Bar]], label: str, job: Job) -> None:
    """Draw panel a: axes for each group of bars, of one network with one scale."""

    def network(group: Sequence[Bar]) -> tuple[str, str]:
        return group[0].run.factors["model"], group[0].run.factors["device"]

    compared = {network(group) for group in groups if len(group) > 1}
    # a bar alone says nothing beside a group of the same network
    groups = [group for group in groups if len(group) > 1 or network(group) not in compared]
    runs = [bar.run for group in groups for bar in group]
    models = list(dict.fromkeys(run.factors["model"] for run in runs))
    groups = sorted(groups, key=lambda group: models.index(network(group)[0]))
    ticks = list(dict.fromkeys(bar.tick for group in groups for bar in group))
    counts = {len(run.valid("1+")) for run in runs} - {0}
    with job.panel("fig02a", runs, addition=conditions(runs)) as (figure, axes):
        facets = style.facets(figure, axes, max(len(groups), 1))
        titles = [title_of(group, say_epochs=len(counts) > 1) for group in groups]
        style.set_titles(figure, facets[: len(groups)], titles)
        rows: list[Plotted] = []
        for facet, group in zip(facets, groups, strict=False):
            if missing := [tick for tick in ticks if tick not in {bar.tick for bar in group}]:
                workers = "worker" if missing == ["1"] else "workers"
                where = group[0].group.replace("\n", ", ")
                job.remark("fig02a", f"{where}: not run with {' or '.join(missing)} {workers}.")
            rows += draw_stacks(group, facet, job, "1+")
            facet.set_xticks(x_of(group), [bar.tick for bar in group])
            facet.grid(visible=False, axis="x")
            if any(row.mark for row in rows):
                facet.set_xlim(-0.55, len(group) - 0.45 + ASIDE)
        for model in models:  # the paper compares times of a network between boards
            same = [at for at, of in zip(facets, groups, strict=False) if network(of)[0] == model]
            top = max(facet.get_ylim()[1] for facet in same)
            for facet in same:
                if facet.get_ylim()[1] >= HALF_FULL * top:
                    facet.set_ylim(0.0, top)
        for n, facet in enumerate(facets):
            if n % style.COLUMNS == 0:
                facet.set_ylabel(style.axis_title("e2e_s", "epochs 1+", width=18))
            if n + style.COLUMNS >= len(facets):
                facet.set_xlabel(label)
        changes = job.related(*TIMES)
        legend(facets[0], [*rows, *changes], job)
        over = [brackets_of(changes, places(group), job, TIMES) for group in groups]
        for change in changes:
            if not change.relation.formula.startswith("mean"):
                continue
            for group, brackets in zip(groups, over, strict=True):
                place, sides = places(group), change.relation.sides
                bar_x = [place(config) for side in sides for config in single(side)]
                ends = [x for x in bar_x if x is not None]
                if len(ends) == len(sides):  # the first board that has both bars
                    left, right = ends
                    words = f"{TIMES[change.relation.metric]}, mean of the boards:"
                    lines = [words, change.reading()]
                    brackets.append(Bracket(left, right, lines, change.ink, change.linestyle))
                    break
        draw_brackets(list(zip(facets, over, strict=False)))
        job.save(figure, "fig02a", [*rows, *changes])


def title_of(group: Sequence[Bar], *, say_epochs: bool) -> str:
    """Return the title of a group's axes: its label, measured data, and epochs that bars average.

    The data begin a second line.
    """
    title, data = group[0].group.replace("\n", ", "), data_words(bar.run for bar in group)
    if data:
        title = f"{title}\n{data}" if title else data
    counts = sorted({len(bar.run.valid("1+")) for bar in group} - {0})
    if counts and say_epochs:
        least = f"{counts[0]} to " if len(counts) > 1 else ""
        epochs = f"{least}{counted(counts[-1], 'epochs')} a bar"
        title = f"{title}, {epochs}" if title else epochs
    return title


def draw_pairs(bars: Sequence[Bar], axes: Axes, job: Job, quantity: str) -> list[Plotted]:
    """Draw a quantity of epoch 0 beside its mean over epochs 1+; return the CSV's rows."""
    rows: list[Plotted] = []
    missing: list[tuple[float, str]] = []
    for epoch_set, key, label, offset in SETS:
        of_set = [job.plotted(bar.run, quantity, epoch_set) for bar in bars]
        x, side = x_of(bars) + offset, -1 if offset < 0.0 else 1
        look = {"color": job.colour(key), "label": label}
        missing += draw_bars(axes, x, of_set, job, PAIR, side, **look)
        rows += of_set
    draw_missing(missing, axes, job.colour("missing"))
    axes.set_ylim(bottom=0)
    return rows
