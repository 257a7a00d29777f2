"""Adapter of rule compare_powertrain."""

from epochwatt.adapters import job_log
from epochwatt.claims.beside_paper import compare_numbers


def main(snakemake):
    with job_log(snakemake.log[0]):
        compare_numbers(
            numbers=snakemake.input.numbers,
            tables=snakemake.input.tables,
            path=snakemake.output.table,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
