"""Adapter of rule simulate_rounds."""

from epochwatt.adapters import job_log
from epochwatt.rounds.study import write_study


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_study(paths=dict(snakemake.output.items()))


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
