"""Adapter of the rules plot_{figure}: each figure number has a module with a function `draw`."""

from importlib import import_module
from os.path import dirname

from epochwatt.adapters import job_log
from epochwatt.figures.job import Job


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
        import_module(f"epochwatt.figures.{job.figure}").draw(job)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
