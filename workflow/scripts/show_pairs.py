"""Adapter of rule show_pairs."""

from epochwatt.adapters import job_log
from epochwatt.pages.site import write_pairs


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_pairs(
            pairs=snakemake.input.pairs,
            verdicts=snakemake.input.verdicts,
            figure=snakemake.input.figure,
            claims=snakemake.input.claims,
            page=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
