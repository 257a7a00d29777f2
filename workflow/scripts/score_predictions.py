"""Adapter of rule score_predictions."""

from os.path import dirname

from epochwatt.adapters import job_log
from epochwatt.figures.tables.scores import write_page
from epochwatt.prediction.evaluation.score_predictions import score_predictions


def main(snakemake):
    folder = dirname(snakemake.output.predictions)
    with job_log(snakemake.log[0]):
        score_predictions(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            published=dirname(snakemake.input.published[0]),
            counts=snakemake.input.counts,
            folder=folder,
        )
        write_page(folder, snakemake.wildcards.backend, snakemake.output.page)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
