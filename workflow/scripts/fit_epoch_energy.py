"""Adapter of rule fit_epoch_energy."""

from epochwatt.adapters import job_log
from epochwatt.prediction.evaluation.fit_models import fit_models


def main(snakemake):
    with job_log(snakemake.log[0]):
        fit_models(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            choices=snakemake.input.choices,
            targets=("power_w", "energy_wh"),
            path=snakemake.output.models,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
