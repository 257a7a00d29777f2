"""Adapter of rule show_claims."""

from epochwatt.adapters import job_log
from epochwatt.pages.show_claims import write_claims


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_claims(
            claims=snakemake.input.claims,
            published=snakemake.params.published,
            path=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
