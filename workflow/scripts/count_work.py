"""Adapter of rule count_work."""

from epochwatt.served.counts import count


def main(snakemake):
    count(
        log=snakemake.log[0],
        factors=snakemake.params.network,
        path=snakemake.output.workload,
        task=snakemake.wildcards.task,
        precision=snakemake.wildcards.precision,
    )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
