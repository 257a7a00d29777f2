"""Adapter of rule collect_powertrain."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.prediction.transfer.collect import collect


def main(snakemake):
    with job_log(snakemake.log[0]):
        collect(
            snakemake.params.folders,
            snakemake.params.example,
            Path(snakemake.output[0]).parent,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
