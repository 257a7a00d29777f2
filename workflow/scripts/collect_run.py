"""Adapter of rule collect_run."""

from epochwatt.adapters import job_log
from epochwatt.epochs.collect import collect_run


def main(snakemake):
    with job_log(snakemake.log[0]):
        collect_run(
            measured=snakemake.params.measured,
            run=snakemake.wildcards.run,
            n_epochs=snakemake.params.n_epochs,
            flag_effects=snakemake.params.flag_effects,
            epochs_csv=snakemake.output.epochs,
            energy_csv=snakemake.output.energy,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
