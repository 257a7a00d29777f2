"""Adapter of rule explain_runs."""

from epochwatt.adapters import job_log
from epochwatt.roofline.explain import write_explanations


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_explanations(
            runs=snakemake.params.runs, fits=snakemake.input.fits, path=snakemake.output.table
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
