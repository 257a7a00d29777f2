"""Adapter of rule predict_modes."""

from epochwatt.adapters import job_log
from epochwatt.prediction.evaluation.predict_modes import predict_modes


def main(snakemake):
    with job_log(snakemake.log[0]):
        predict_modes(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            published=snakemake.params.published,
            folder=snakemake.params.folder,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
