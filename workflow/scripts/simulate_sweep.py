"""Adapter of rule simulate_sweep."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.twin.sweep import write_simulated_sweep


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_simulated_sweep(
            facts=snakemake.params.sweep,
            config=Path(snakemake.params.config),
            workload=snakemake.input.workload,
            table=Path(snakemake.output.table),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
