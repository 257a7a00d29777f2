"""Adapter of rule show_powertrain."""

from epochwatt.adapters import job_log
from epochwatt.pages.site import write_powertrain


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_powertrain(
            tables=snakemake.params.tables,
            figures=snakemake.input.drawings,
            page=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
