"""Adapter of rule replan_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.changing import write_judged


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_judged(
            tables=Path(snakemake.input.tables),
            scores_path=Path(snakemake.output.scores),
            slots_path=Path(snakemake.output.slots),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
