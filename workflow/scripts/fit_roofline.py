"""Adapter of rule fit_roofline."""

from epochwatt.adapters import job_log
from epochwatt.roofline.fits import write_fits_of


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_fits_of(ceilings=[snakemake.input.ceilings], path=snakemake.output.fits)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
