"""Adapter of rule tabulate_setup."""

from epochwatt.adapters import job_log
from epochwatt.figures.tables.tabulate_setup import write


def main(snakemake):
    with job_log(snakemake.log[0]):
        write(
            config=snakemake.params.config,
            workloads=snakemake.input.workloads,
            paths=snakemake.output.csv,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
