"""Adapter of rule draw_schedules."""

from epochwatt.adapters import job_log
from epochwatt.figures.schedules import draw_schedules


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_schedules(
            scores=snakemake.input.scores,
            style_file=snakemake.input.style,
            stem=snakemake.output[0].removesuffix(".svg"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
