"""Adapter of rule list_ceiling_modes."""

from epochwatt.adapters import job_log
from epochwatt.sweeps.modes import write_modes


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_modes(snakemake.output.modes, snakemake.params.modes)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
