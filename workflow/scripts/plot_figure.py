"""Adapter of the rules plot_{figure}: each figure number has a module with a function `draw`."""

from importlib import import_module

from epochwatt.adapters import job_log
from epochwatt.figures.job import Job


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
            **snakemake.params.figure,
        )
        import_module(f"epochwatt.figures.{job.figure}").draw(job)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
