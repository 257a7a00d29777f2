"""Adapter of the rules plot_{figure}: config/plotting.yaml names the function that draws."""

from os.path import dirname

from epochwatt.adapters import job_log
from epochwatt.figures.common.job import Job, draw_figure


def main(snakemake):
    with job_log(snakemake.log[0]):
        job = Job(
            folder=dirname(snakemake.output.svg[0]),
            style=snakemake.input.style,
            epochs=snakemake.input.epochs,
            idle="".join(snakemake.input.idle),
            predictions="".join(snakemake.input.predictions),
            published=dirname(snakemake.input.published[0]),
            twin=dirname(snakemake.input.published[-1]),
            **snakemake.params.drawing,
        )
        draw_figure(job)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
