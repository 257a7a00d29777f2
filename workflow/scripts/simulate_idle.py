"""Adapter of rule simulate_idle."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.twin.records import simulate_idle


def main(snakemake):
    with job_log(snakemake.log[0]):
        simulate_idle(
            idles=snakemake.params.idles,
            config=Path(snakemake.params.config),
            output=snakemake.output.records,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
