"""Adapter of rule advise_runs."""

from epochwatt.adapters import job_log
from epochwatt.analysis.advice import write_advice


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_advice(
            paths=snakemake.input, path=snakemake.output[0], settings=snakemake.params.settings
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
