"""Adapter of rule draw_replanning."""

from epochwatt.adapters import job_log
from epochwatt.figures.fulcrum.draw import draw_schedules


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_schedules(
            tables=snakemake.input.tables,
            style_file=snakemake.input.style,
            stems=snakemake.params.stems,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
