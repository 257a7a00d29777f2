"""Adapter of rule place_points."""

from epochwatt.adapters import job_log
from epochwatt.roofline.collect import place_points


def main(snakemake):
    with job_log(snakemake.log[0]):
        place_points(snakemake.params.runs, snakemake.output.points)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
