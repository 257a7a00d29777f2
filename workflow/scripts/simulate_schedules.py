"""Adapter of rule simulate_schedules."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.schedule.simulated_tables import write_simulated_tables


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_simulated_tables(snakemake.input.counts, Path(snakemake.output.tables))


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
