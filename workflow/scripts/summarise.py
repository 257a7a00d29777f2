"""Adapter of rule summarise."""

from epochwatt.adapters import job_log
from epochwatt.analysis.summary import write_summary


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_summary(
            paths=snakemake.input.epochs,
            excluded=snakemake.params.excluded,
            titles=snakemake.params.titles,
            text=snakemake.output.text,
            page=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
