"""Adapter of rule show_configuration."""

from epochwatt.adapters import job_log
from epochwatt.pages.show_configuration import write_configuration


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_configuration(
            files=snakemake.input.config,
            records=snakemake.params.records,
            path=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
