"""Adapter of rule tune_modes."""

from epochwatt.adapters import job_log
from epochwatt.roofline.tuning import write_tuning


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_tuning(
            sweeps=snakemake.input.sweeps,
            fits=snakemake.input.fits,
            tuning=snakemake.output.tuning,
            balances=snakemake.output.balances,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
