"""Adapter of rule score_predictions."""

from epochwatt.adapters import job_log
from epochwatt.figures.tables.scores import draw_scores, write_page
from epochwatt.prediction.evaluation.score_predictions import score_predictions


def main(snakemake):
    folder = snakemake.params.folder
    with job_log(snakemake.log[0]):
        score_predictions(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            published=snakemake.params.published,
            counts=snakemake.input.counts,
            folder=folder,
        )
        draw_scores(folder, snakemake.wildcards.backend)
        write_page(folder, snakemake.wildcards.backend, snakemake.output.page)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
