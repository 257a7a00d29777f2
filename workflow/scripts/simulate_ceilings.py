"""Adapter of rule simulate_ceilings."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.twin.ceilings import write_simulated_ceilings


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_simulated_ceilings(
            tables=snakemake.input.sweeps,
            workloads=snakemake.input.workloads,
            ceilings=snakemake.output.ceilings,
            points=snakemake.output.points,
            root=Path(),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
