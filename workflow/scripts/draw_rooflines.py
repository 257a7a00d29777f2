"""Adapter of rule draw_rooflines."""

from epochwatt.adapters import job_log
from epochwatt.figures.roofline.rooflines import draw


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw(
            fits=snakemake.input.fits,
            points=snakemake.input.points,
            peaks=snakemake.input.peaks,
            style_file=snakemake.input.style,
            folder=snakemake.params.folder,
            origin=snakemake.wildcards.origin,
            titles=snakemake.params.titles,
            records=snakemake.params.records,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
