"""Adapter of rules count_workload and count_work."""

from epochwatt.adapters import job_log
from epochwatt.counting.count_workload import write_workload


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_workload(
            factors=snakemake.params.network,
            path=snakemake.output.workload,
            **snakemake.params.get("work", {}),  # task and precision, where not those of the twin
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
