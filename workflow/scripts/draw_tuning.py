"""Adapter of rule draw_tuning."""

from epochwatt.adapters import job_log
from epochwatt.figures.roofline.tuning import draw_tuning


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_tuning(
            table=snakemake.input.tuning,
            style_file=snakemake.input.style,
            stem=snakemake.output[0].removesuffix(".svg"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
