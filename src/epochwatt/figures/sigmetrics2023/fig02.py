"""Figure 2: an epoch's time by number of loader workers (a), stall by epoch (b), energy (c).

Source: SIGMETRICS 2023, section 5.1. Panel a is the mean of epochs 1+, stacked stall, compute and
overhead, in axes of its own for each network and board; panel b the stall of epoch 0 beside that of
epochs 1+; panel c the energy of an epoch. The paper shows none to four workers in panel a, four in
panel b, none and four in panel c; a group of bars without four is drawn with every number of
workers. Runs with eight are described in section 5.1.6 only, and no bars of panel a.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes

from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    SETUP,
    Bar,
    draw_missing,
    draw_stacks,
    draw_whisker,
    grouped,
    legend,
    marked_row,
    model_facets,
    of_epochs,
    places,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import (
    Bracket,
    Related,
    bracket_handles,
    brackets_of,
    draw_brackets,
    draw_mark,
    is_marked,
    relation_row,
)
from epochwatt.figures.common.runs import RunData, data_words
from epochwatt.published.numbers import Config, single
from epochwatt.text import counted

WITHIN = ("num_workers", "prefetch_factor")
FOUR = 4  # workers
SETS = (("0", "epoch_0", "epoch 0"), ("1+", "epoch_1_plus", "epochs 1+"))
HALF = 0.18  # of a bar's width and gap in a pair
PAIR = 0.3  # width of its bars
TIMES = {"stall_s": "stall", "e2e_s": "E2E"}
HALF_FULL = 0.5  # of axes: emptier ones have a scale of their own
ASIDE = 0.7  # of a bar, beside the last one, for what is printed of it
MEDIA = {"hdd": "hard disk", "sd": "SD card", "ssd": "SSD"}


def draw(job: Job) -> None:
    """Draw the panels."""
    bars, label = bars_of(job, "1+")
    draw_times([bar for bar in bars if not beyond(bar, bars)], label, job)
    bars, _ = bars_of(job)
    for panel, quantity, y_label, workers in (
        ("fig02b", "stall_s", "stall per epoch (s)", (FOUR,)),
        ("fig02c", "energy_paper_wh", "energy per epoch (Wh)", (0, FOUR)),
    ):
        shown = of_paper(bars, workers)
        with job.panel(panel, [bar.run for bar in shown]) as (figure, axes):
            style.add_to_title(figure, conditions([bar.run for bar in shown]))
            changes = job.related("energy_wh") if panel == "fig02c" else []
            job.remark(panel, "Brackets are of epochs 1+." if changes else "")
            if not any(bar.run.factors["num_workers"] == FOUR for bar in shown):
                job.remark(panel, f"There is no run with the paper's {FOUR} workers.")
            rows, facets = [], model_facets(figure, axes, shown, job, (label, y_label))
            for facet, of_model in facets:
                rows += draw_pairs(of_model, facet, job, quantity)
            relations = [relation_row(one) for one in changes]
            legend(
                facets[0][0],
                rows + relations,
                job,
                bracket_handles(changes, job.palette["published"]),
            )
            draw_brackets([
                (facet, brackets_of(changes, places(of_model, HALF), job.ink, TIMES))
                for facet, of_model in facets
            ])  # fmt: skip
            job.save(figure, panel, rows + relations)


def draw_times(bars: Sequence[Bar], label: str, job: Job) -> None:
    """Draw panel a: axes for each group of bars, of one network with one scale."""
    changes = job.related(*TIMES)
    groups = [[b for b in bars if b.group == name] for name in dict.fromkeys(b.group for b in bars)]
    compared = {_network(group) for group in groups if len(group) > 1}
    # a bar alone says nothing beside a group of the same network
    groups = [group for group in groups if len(group) > 1 or _network(group) not in compared]
    bars = [bar for group in groups for bar in group]
    models = list(dict.fromkeys(bar.run.factors["model"] for bar in bars))
    groups.sort(key=lambda group: models.index(group[0].run.factors["model"]))
    with job.panel("fig02a", [bar.run for bar in bars]) as (figure, axes):
        style.add_to_title(figure, conditions([bar.run for bar in bars]))
        facets, rows = style.facets(figure, axes, max(len(groups), 1)), []
        for sentence in lacking(groups):
            job.remark("fig02a", sentence)
        titles = [_title_of(group, _counts(bars)) for group in groups]
        style.set_titles(figure, facets[: len(groups)], titles)
        for facet, group in zip(facets, groups, strict=False):
            rows += draw_stacks(group, facet, job, "1+")
            facet.set_xticks(positions([bar.group for bar in group]), [bar.tick for bar in group])
            facet.grid(visible=False, axis="x")
            if any(map(is_marked, rows)):
                facet.set_xlim(-0.55, len(group) - 0.45 + ASIDE)
        _share_scales(facets, [group[0].run.factors["model"] for group in groups])
        for n, facet in enumerate(facets):
            if n % style.COLUMNS == 0:
                facet.set_ylabel("time per epoch,\nepochs 1+ (s)")
            if n + style.COLUMNS >= len(facets):
                facet.set_xlabel(label)
        relations = [relation_row(one) for one in changes]
        legend(facets[0], rows + relations, job, bracket_handles(changes, job.palette["published"]))
        drawn: set[str] = set()
        over = []
        for facet, group in zip(facets, groups, strict=False):
            place = places(group)
            brackets = brackets_of(changes, place, job.ink, TIMES)
            for one in _means(changes, group[0].run.factors["model"], drawn):
                drawn.add(one.relation.id)
                brackets += _mean_bracket(one, place, job)
            over.append((facet, brackets))
        draw_brackets(over)
        job.save(figure, "fig02a", rows + relations)


def _means(changes: Sequence[Related], model: str, drawn: set[str]) -> list[Related]:
    """Return the changes that are means over boards of a network, but those that are drawn."""
    means = [one for one in changes if one.relation.formula.startswith("mean")]
    means = [one for one in means if one.relation.id not in drawn]
    return [one for one in means if single(one.relation.sides[0])[0]["model"] == model]


def _mean_bracket(one: Related, place: Callable[[Config], float | None], job: Job) -> list[Bracket]:
    """Return the bracket of a change that is the mean of several boards', over one of them."""
    sides = [[place(config) for config in single(side)] for side in one.relation.sides]
    left, right = (next((at for at in side if at is not None), None) for side in sides)
    if left is None or right is None:
        return []
    lines = [f"{TIMES[one.relation.metric]}, mean of the boards:", one.reading()]
    ink = job.ink({"published_id": one.relation.id})
    return [Bracket(left, right, lines, ink, one.linestyle)]


def _network(bars: Sequence[Bar]) -> tuple[str, str]:
    """Return network and board of a group."""
    return bars[0].run.factors["model"], bars[0].run.factors["device"]


def _share_scales(facets: Sequence[Axes], models: Sequence[str]) -> None:
    """Give axes of one network one scale, as the paper compares its times between boards.

    Axes that it would leave half empty keep their own.
    """
    for model in set(models):
        same = [facet for facet, other in zip(facets, models, strict=False) if other == model]
        top = max(facet.get_ylim()[1] for facet in same)
        for facet in same:
            if facet.get_ylim()[1] >= HALF_FULL * top:
                facet.set_ylim(0.0, top)


def _title_of(bars: Sequence[Bar], counts: set[int]) -> str:
    """Return what a group is, and its data if measured; with a bar's epochs, where they differ.

    Parameters
    ----------
    counts : epochs that the panel's bars are means of
    """
    name, numbers = name_of(bars), sorted(_counts(bars))
    data = data_words(bar.run for bar in bars)
    least = f"{numbers[0]} to " if len(numbers) > 1 else ""
    epochs = f"{least}{counted(numbers[-1], 'epochs')} a bar" if numbers and len(counts) > 1 else ""
    if data:
        return f"{name}\n{', '.join(filter(None, (data, epochs)))}"
    return ", ".join(filter(None, (name, epochs)))


def name_of(bars: Sequence[Bar]) -> str:
    """Return what a group is in one line."""
    return bars[0].group.replace("\n", ", ")


def _counts(bars: Sequence[Bar]) -> set[int]:
    """Return of how many epochs bars are means."""
    return {len(bar.run.valid("1+")) for bar in bars} - {0}


def lacking(groups: Sequence[Sequence[Bar]]) -> Iterator[str]:
    """Yield which numbers of workers, of those that are drawn, a group was not run with."""
    ticks = list(dict.fromkeys(bar.tick for group in groups for bar in group))
    for group in groups:
        missing = [tick for tick in ticks if tick not in {bar.tick for bar in group}]
        words = "worker" if missing == ["1"] else "workers"
        if missing:
            yield f"{name_of(group)}: not run with {' or '.join(missing)} {words}."


def conditions(runs: Sequence[RunData]) -> str:
    """Return what all runs have in common and no label says: loader workers, medium."""
    workers = {run.factors["num_workers"] for run in runs}
    media = {run.factors["storage"] for run in runs}
    words = [counted(workers.pop(), "loader workers")] if len(workers) == 1 else []
    words += [f"data on {MEDIA[medium]}" for medium in media if len(media) == 1 and medium in MEDIA]
    return "".join(f", {word}" for word in words)


def beyond(bar: Bar, bars: Sequence[Bar]) -> bool:
    """Say whether the paper's panel a has no such bar: more workers than four, beside four."""
    alike = {other.run.factors["num_workers"] for other in bars if other.group == bar.group}
    of_paper = bar.run.factors["setup"] == SETUP
    return of_paper and FOUR in alike and bar.run.factors["num_workers"] > FOUR


def bars_of(job: Job, epoch_set: str = "all") -> tuple[list[Bar], str]:
    """Return the bars in groups of equal factors, and what their ticks say."""
    runs = of_epochs(job.runs, epoch_set)
    several = len({r.factors["prefetch_factor"] for r in runs if r.factors["num_workers"]}) > 1

    def tick(run: RunData) -> str:
        workers = run.factors["num_workers"]
        prefetch = f"×{run.factors['prefetch_factor']}" if several and workers else ""
        return f"{workers}{prefetch}"

    def order(run: RunData) -> tuple[int, int]:
        return run.factors["num_workers"], run.factors["prefetch_factor"] or 0

    bars = grouped(runs, job, WITHIN, tick, order)
    return bars, "loader workers" + (" × prefetch factor" if several else "")


def of_paper(bars: list[Bar], workers: tuple[int, ...]) -> list[Bar]:
    """Return the bars with these numbers of workers; all of a group where none has four."""
    with_four = {bar.group for bar in bars if bar.run.factors["num_workers"] == FOUR}
    return [
        bar
        for bar in bars
        if bar.group not in with_four or bar.run.factors["num_workers"] in workers
    ]


def draw_pairs(bars: Sequence[Bar], axes: Axes, job: Job, quantity: str) -> list[dict[str, Any]]:
    """Draw a quantity of epoch 0 beside its mean over epochs 1+; return the CSV's rows."""
    colour = job.colours("epoch_0", "epoch_1_plus", "missing", "published")
    x, rows = positions([bar.group for bar in bars]), []
    missing: list[tuple[float, str]] = []
    for offset, (epoch_set, key, label) in zip((-HALF, HALF), SETS, strict=True):
        numbers = [bar.run.number(quantity, epoch_set) for bar in bars]
        height = [number.value or 0.0 for number in numbers]
        axes.bar(x + offset, height, width=PAIR, color=colour[key], label=label)
        for bar, number, at in zip(bars, numbers, x + offset, strict=True):
            rows.append(marked_row(bar.run, quantity, number, job, epoch_set))
            draw_whisker(axes, at, bar.run, quantity, colour["missing"], epoch_set)
            side = -1 if offset < 0.0 else 1
            draw_mark(axes, at, rows[-1], job.ink(rows[-1]), PAIR, side=side)
            missing.append((at, number.missing))
    draw_missing(missing, axes, colour["missing"])
    axes.set_ylim(bottom=0)
    return rows
