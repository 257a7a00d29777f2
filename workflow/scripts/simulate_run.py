"""Adapter of rule simulate_run."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.twin.simulation.simulate_run import simulate_run


def main(snakemake):
    with job_log(snakemake.log[0]):
        simulate_run(
            run=snakemake.wildcards.run,
            canonical=snakemake.params.factors,
            n_epochs=snakemake.params.epochs,
            config=Path(snakemake.params.config),
            workload=snakemake.input.workload,
            effects=snakemake.params.flag_effects,
            output=snakemake.output.records,
            tables=snakemake.params.tables,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
