"""Adapter of rule check_table_claims."""

from epochwatt.adapters import job_log
from epochwatt.claims.table_claims import check_table_claims


def main(snakemake):
    with job_log(snakemake.log[0]):
        check_table_claims(
            paper=snakemake.wildcards.paper,
            tables=snakemake.input.tables,
            path=snakemake.output.table,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
