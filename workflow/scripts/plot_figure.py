"""Adapter of the rules plot_{figure}: config/plotting.yaml names the function that draws."""

from epochwatt.adapters import job_log
from epochwatt.figures.common.job import Job, draw_figure


def main(snakemake):
    with job_log(snakemake.log[0]):
        job = Job(
            folder=snakemake.params.folder,
            style=snakemake.input.style,
            epochs=snakemake.input.epochs,
            idle=snakemake.input.idle or "",
            predictions=snakemake.input.predictions or "",
            published=f"{snakemake.params.config}/published",
            twin=f"{snakemake.params.config}/twin",
            captions=snakemake.params.caption,
            **snakemake.params.figure,
        )
        draw_figure(job)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
