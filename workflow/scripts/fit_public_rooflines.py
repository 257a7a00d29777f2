"""Adapter of rule fit_public_rooflines."""

from epochwatt.adapters import job_log
from epochwatt.roofline.public import write_public


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_public(
            ceilings=snakemake.input.ceilings,
            points=snakemake.input.points,
            work=snakemake.input.work,
            kernels=snakemake.input.kernels,
            fits=snakemake.output.fits,
            all_points=snakemake.output.points,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
