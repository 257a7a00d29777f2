"""Adapter of rule score_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.study import write_scores


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_scores(
            tables=Path(snakemake.input.tables),
            paths={
                "highest": Path(snakemake.output.scores),
                "mean": Path(snakemake.output.mean),
            },
            learned=snakemake.params.learned,
            processes=snakemake.threads,
            say=print,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
