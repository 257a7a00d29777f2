"""Adapter of rule fit_epoch_time."""

from epochwatt.adapters import job_log
from epochwatt.prediction.evaluation.fit_models import fit_epoch_time


def main(snakemake):
    with job_log(snakemake.log[0]):
        fit_epoch_time(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            path=snakemake.output.models,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
