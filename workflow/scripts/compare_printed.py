"""Adapter of rule compare_printed."""

from epochwatt.adapters import job_log
from epochwatt.pages.printed import write_printed


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_printed(
            epochs=snakemake.input.epochs,
            idle=snakemake.input.idle or "",
            published=snakemake.params.published,
            twin=snakemake.params.twin,
            path=snakemake.output[0],
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
