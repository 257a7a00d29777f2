"""Adapter of rule summarise."""

from epochwatt.adapters import job_log
from epochwatt.pages.summary import write_summary


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_summary(
            epochs=snakemake.input.epochs,
            claims=snakemake.input.claims or "",
            excluded=snakemake.params.excluded,
            titles=snakemake.params.titles,
            path=snakemake.output.text,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
