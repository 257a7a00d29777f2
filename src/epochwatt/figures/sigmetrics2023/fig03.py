"""Figure 3: storage media: epoch 0 without workers (a), later epochs with four (b), energy (c).

Source: SIGMETRICS 2023, section 5.2.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from epochwatt import columns
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import (
    Bar,
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
    x_of,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import Plotted, numbers_of

NAMES = {"ssd": "SSD", "sd": "SD", "hdd": "HDD", "emmc": "eMMC"}  # in order
SHARE = {"stall_s/e2e_s": f"{columns.label('stall_pct')}:", "e2e_s": columns.label("e2e_s")}


def draw(job: Job) -> None:
    """Draw the panels."""
    alone, four = bars_of(job, 0, "0"), bars_of(job, 4, "1+")
    number_of = numbers_of(of_epochs(job.runs))
    for panel, bars, epoch_set, words, metric in (
        ("fig03a", alone, "0", "epoch 0", "stall_s/e2e_s"),
        ("fig03b", four, "1+", "epochs 1+", "e2e_s"),
        ("fig03c", four, "1+", "epochs 1+", ""),
    ):
        y_label = style.axis_title("e2e_s" if metric else "energy_paper_wh", words)
        with job.panel(panel, [bar.run for bar in bars]) as (figure, axes):
            facets = model_facets(
                figure, axes, bars, job, (columns.label("storage"), y_label), turned=True
            )
            changes = [  # of these epochs, between media or of one run
                one
                for one in job.related(metric, number_of=number_of)
                if {side["epoch"] for side in one.relation.sides} == {epoch_set}
                and len({side.get("num_workers") for side in one.relation.sides}) == 1
                and len({side.get("dvfs") for side in one.relation.sides}) == 1
            ]
            rows: list[Plotted] = []
            for facet, of_model in facets:
                rows += (
                    draw_stacks(of_model, facet, job, epoch_set)
                    if metric
                    else draw_energy(of_model, facet, job)
                )
            legend(facets[0][0], [*rows, *changes], job)
            over = [(at, brackets_of(changes, places(of), job, SHARE)) for at, of in facets]
            draw_brackets(over)
            job.save(figure, panel, [*rows, *changes])


def bars_of(job: Job, workers: int, epoch_set: str = "all") -> list[Bar]:
    """Make bars of the runs with a number of workers, in order of their media."""
    ranks = {medium: rank for rank, medium in enumerate(NAMES)}
    runs = [run for run in job.runs if run.factors["num_workers"] == workers]
    return grouped(
        of_epochs(runs, epoch_set),
        job,
        within=("storage",),
        tick=lambda run: NAMES.get(run.factors["storage"], run.factors["storage"]),
        order=lambda run: ranks.get(run.factors["storage"], len(ranks)),
    )


def draw_energy(bars: Sequence[Bar], axes: Axes, job: Job) -> list[Plotted]:
    """Draw the energy of each run's epochs 1+; return the CSV's rows."""
    rows = [job.plotted(bar.run, "energy_paper_wh") for bar in bars]
    colours = [job.colour(bar.run.factors["storage"]) for bar in bars]
    missing = draw_bars(axes, x_of(bars), rows, job, color=colours)
    draw_missing(missing, axes, job.colour("missing"))
    return rows
