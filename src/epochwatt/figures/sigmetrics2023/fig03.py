"""Figure 3: storage media. Time of the first epoch without loader workers (a), of later epochs with
four (b), and their energy (c).

Source: SIGMETRICS 2023, section 5.2. The paper does not say which epochs panel c shows: those of
panel b are drawn.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from epochwatt.figures.common.bars import (
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
    Related,
    bracket_handles,
    brackets_of,
    draw_brackets,
    draw_mark,
    numbers_of,
    relation_row,
)

NAMES = {"ssd": "SSD", "sd": "SD", "hdd": "HDD", "emmc": "eMMC"}  # in order
WIDTH = 0.66  # of a bar of panel c
X_LABEL = "storage medium"
SHARE = {"stall_s/e2e_s": "stall, share of E2E:", "e2e_s": "E2E"}


def draw(job: Job) -> None:
    """Draw the panels."""
    alone, four = bars_of(job, 0, "0"), bars_of(job, 4, "1+")
    number_of = numbers_of(of_epochs(job.runs))
    for panel, bars, epoch_set, y_label, metrics in (
        ("fig03a", alone, "0", "time of epoch 0 (s)", ("stall_s/e2e_s",)),
        ("fig03b", four, "1+", "time per epoch, epochs 1+ (s)", ("e2e_s",)),
    ):
        with job.panel(panel, [bar.run for bar in bars]) as (figure, axes):
            changes = of_panel(job.related(*metrics, number_of=number_of), epoch_set)
            facets = model_facets(figure, axes, bars, job, (X_LABEL, y_label), turned=True)
            rows = [row for at, of in facets for row in draw_stacks(of, at, job, epoch_set)]
            relations = [relation_row(one) for one in changes]
            legend(
                facets[0][0],
                rows + relations,
                job,
                bracket_handles(changes, job.palette["published"]),
            )
            draw_brackets([
                (facet, brackets_of(changes, places(of_model), job.ink, SHARE))
                for facet, of_model in facets
            ])  # fmt: skip
            job.save(figure, panel, rows + relations)
    with job.panel("fig03c", [bar.run for bar in four]) as (figure, axes):
        y_label = "energy per epoch, epochs 1+ (Wh)"
        facets = model_facets(figure, axes, four, job, (X_LABEL, y_label), turned=True)
        rows = [row for facet, of_model in facets for row in draw_energy(of_model, facet, job)]
        legend(facets[0][0], rows, job)
        job.save(figure, "fig03c", rows)


def of_panel(changes: Sequence[Related], epoch_set: str) -> list[Related]:
    """Return the relations of these epochs between media, or of one run."""
    return [
        one
        for one in changes
        if {side["epoch"] for side in one.relation.sides} == {epoch_set}
        and len({side.get("num_workers") for side in one.relation.sides}) == 1
        and len({side.get("dvfs") for side in one.relation.sides}) == 1
    ]


def bars_of(job: Job, workers: int, epoch_set: str = "all") -> list[Bar]:
    """Return the runs with a number of workers, a group for each model and device."""
    order = list(NAMES)
    return grouped(
        of_epochs([run for run in job.runs if run.factors["num_workers"] == workers], epoch_set),
        job,
        ("storage",),
        lambda r: NAMES.get(r.factors["storage"], r.factors["storage"]),
        lambda r: order.index(m) if (m := r.factors["storage"]) in order else len(order),
    )


def draw_energy(bars: list[Bar], axes: Axes, job: Job) -> list[dict[str, object]]:
    """Draw the energy of each run's epochs 1+; return the CSV's rows."""
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    x = positions([bar.group for bar in bars])
    numbers = [bar.run.number("energy_paper_wh") for bar in bars]
    colours = [colour[bar.run.factors["storage"]] for bar in bars]
    axes.bar(x, [number.value or 0.0 for number in numbers], width=WIDTH, color=colours)
    missing = [(at, n.missing) for at, n in zip(x, numbers, strict=True)]
    draw_missing(missing, axes, colour["missing"])
    rows = []
    for bar, number, at in zip(bars, numbers, x, strict=True):
        rows.append(marked_row(bar.run, "energy_paper_wh", number, job))
        draw_whisker(axes, at, bar.run, "energy_paper_wh", colour["missing"])
        draw_mark(axes, at, rows[-1], job.ink(rows[-1]), WIDTH)
    return rows
