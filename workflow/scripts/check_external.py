"""Adapter of rule check_external."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.external.check_external import check_external
from epochwatt.pages.show_external import write_external


def main(snakemake):
    with job_log(snakemake.log[0]):
        folder = snakemake.params.folder
        check_external(
            workloads=snakemake.input.workloads,
            path=snakemake.output.table,
            folder=Path(folder) if folder else None,
        )
        write_external(snakemake.output.table, snakemake.output.page)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
