"""Adapter of rule score_predictions."""

from epochwatt.adapters import job_log
from epochwatt.figures.tables.scores import draw_scores, write_page
from epochwatt.prediction.evaluation.score_predictions import score_predictions
from epochwatt.prediction.registry import method_title


def main(snakemake):
    folder = snakemake.params.folder
    with job_log(snakemake.log[0]):
        score_predictions(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            counts=snakemake.input.counts,
            folder=folder,
        )
        backend, titles = snakemake.wildcards.backend, snakemake.params.titles
        draw_scores(folder, backend, titles, method_title)
        write_page(folder, snakemake.wildcards.backend, snakemake.output.page)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
