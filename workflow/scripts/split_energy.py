"""Adapter of rule split_energy."""

from epochwatt.adapters import job_log
from epochwatt.analysis.energy_parts import write_energy_parts


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_energy_parts(
            epochs=snakemake.input.epochs,
            scopes=snakemake.input.scopes,
            idle=str(snakemake.input.idle),
            records=snakemake.params.records,
            path=snakemake.output[0],
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
