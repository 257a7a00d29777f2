"""Adapter of rule show_index."""

from epochwatt.adapters import job_log
from epochwatt.pages.show_index import write_index


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_index(
            inputs={name: str(path) for name, path in snakemake.params.tables.items()},
            figures=snakemake.params.figures,
            numbers=list(snakemake.input.numbers),
            titles=snakemake.params.titles,
            palette=snakemake.params.palette,
            page=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
