"""Adapter of rule learn_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.study import write_learned_job


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_learned_job(
            tables=Path(snakemake.input.tables),
            job=snakemake.wildcards.job,
            path=Path(snakemake.output.known),
            cache=Path(snakemake.params.cache),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
