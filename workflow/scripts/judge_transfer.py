"""Adapter of rule judge_transfer."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.prediction.transfer.job import write_job


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_job(
            job=dict(snakemake.wildcards.items()),
            group=snakemake.params.group,
            workload=snakemake.input.workload,
            reference=snakemake.input.get("reference"),
            folder=Path(snakemake.output[0]).parent,
            cache=Path(snakemake.params.cache),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
