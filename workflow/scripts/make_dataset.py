"""Adapter of rule make_dataset."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.datasets.make import make_dataset


def main(snakemake):
    with job_log(snakemake.log[0]):
        make_dataset(Path(snakemake.output.manifest).parent, dict(snakemake.params.recipe))


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
