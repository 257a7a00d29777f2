"""Adapter of rule collect_sweep."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.sweeps.collect_sweep import collect_sweep


def main(snakemake):
    with job_log(snakemake.log[0]):
        collect_sweep(
            measured=snakemake.params.measured,
            facts=snakemake.params.sweep,
            flag_effects=snakemake.params.flag_effects,
            table=Path(snakemake.output.table),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
