"""Adapter of rule summarise_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.solver_means import write_summary


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_summary(
            scores=Path(snakemake.input.scores),
            arrivals=Path(snakemake.input.arrivals),
            path=Path(snakemake.output.summary),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
