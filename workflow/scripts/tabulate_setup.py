"""Adapter of rule tabulate_setup."""

from os.path import dirname

from epochwatt.adapters import job_log
from epochwatt.figures.tables.tabulate_setup import write


def main(snakemake):
    with job_log(snakemake.log[0]):
        write(
            config="config",
            workloads=snakemake.input.workloads,
            folder=dirname(snakemake.output[0]),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
