"""Figure 3: storage media. Time of the first epoch without loader workers (a), of later epochs with
four (b), and their energy (c).

Source: SIGMETRICS 2023, section 5.2. The paper does not say which epochs panel c shows: those of
panel b are drawn.
"""

from matplotlib.axes import Axes

from epochwatt.figures.common.bars import (
    Bar,
    draw_missing,
    draw_stacks,
    grouped,
    label_axes,
    legend,
    marked_row,
    positions,
)
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import draw_mark

MEDIA = ("ssd", "sd", "hdd", "emmc")


def draw(job: Job) -> None:
    """Draw the panels."""
    alone, four = bars_of(job, 0), bars_of(job, 4)
    for panel, bars, epoch_set, y_label in (
        ("fig03a", alone, "0", "time of epoch 0 (s)"),
        ("fig03b", four, "1+", "time per epoch, epochs 1+ (s)"),
    ):
        with job.panel(panel, [bar.run for bar in bars]) as (figure, axes):
            rows = draw_stacks(bars, axes, job, epoch_set)
            axes.set_ylabel(y_label)
            label_axes(bars, axes, "storage medium")
            legend(axes, rows, job.palette["published"])
            job.save(figure, panel, rows)
    with job.panel("fig03c", [bar.run for bar in four]) as (figure, axes):
        rows = draw_energy(four, axes, job)
        axes.set_ylabel("energy per epoch, epochs 1+ (Wh)")
        label_axes(four, axes, "storage medium")
        legend(axes, rows, job.palette["published"])
        job.save(figure, "fig03c", rows)


def bars_of(job: Job, workers: int) -> list[Bar]:
    """Return the runs with a number of workers, a group for each model and device."""

    def order(medium: str) -> int:
        return MEDIA.index(medium) if medium in MEDIA else len(MEDIA)

    runs = [run for run in job.runs if run.factors["num_workers"] == workers]
    return grouped(
        runs,
        job,
        ("storage",),
        lambda r: r.factors["storage"],
        lambda r: order(r.factors["storage"]),
    )


def draw_energy(bars: list[Bar], axes: Axes, job: Job) -> list[dict[str, object]]:
    """Draw the energy of each run's epochs 1+; return the CSV's rows."""
    colour = job.colours("missing", "published", *{bar.run.factors["storage"] for bar in bars})
    x = positions([bar.group for bar in bars])
    numbers = [bar.run.number("energy_paper_wh") for bar in bars]
    colours = [colour[bar.run.factors["storage"]] for bar in bars]
    axes.bar(x, [number.value or 0.0 for number in numbers], width=0.8, color=colours)
    draw_missing(
        [(at, n.missing) for at, n in zip(x, numbers, strict=True)], axes, colour["missing"]
    )
    rows = []
    for bar, number, at in zip(bars, numbers, x, strict=True):
        rows.append(marked_row(bar.run, "energy_paper_wh", number, job))
        draw_mark(axes, at, rows[-1], colour["published"])
    return rows
