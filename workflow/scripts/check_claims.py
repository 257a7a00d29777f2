"""Adapter of rule check_claims."""

from epochwatt.adapters import job_log
from epochwatt.claims.check_claims import check_claims


def main(snakemake):
    with job_log(snakemake.log[0]):
        check_claims(
            epochs=snakemake.input.epochs,
            idle=snakemake.input.idle or "",
            backends=snakemake.params.backends,
            records=snakemake.params.records,
            power_modes=snakemake.params.power_modes,
            workloads=snakemake.input.workloads,
            predictions=snakemake.input.predictions,
            titles=snakemake.params.titles,
            path=snakemake.output.table,
            comparisons=snakemake.output.comparisons,
            text=snakemake.output.text,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
