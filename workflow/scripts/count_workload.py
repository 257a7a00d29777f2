"""Adapter of rule count_workload."""

from epochwatt.served.counts import count


def main(snakemake):
    count(
        log=snakemake.log[0],
        factors=snakemake.params.network,
        path=snakemake.output.workload,
    )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
