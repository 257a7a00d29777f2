"""Adapter of rule play_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.played import write_played


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_played(
            tables=Path(snakemake.input.tables),
            paths=snakemake.output,
            records=snakemake.params.records,
            processes=snakemake.threads,
            say=print,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
