"""Adapter of rule count_workload."""

from epochwatt.adapters import job_log
from epochwatt.counting.count_workload import write_workload


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_workload(factors=snakemake.params.network, path=snakemake.output.workload)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
