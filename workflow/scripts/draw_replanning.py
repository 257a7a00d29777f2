"""Adapter of rule draw_replanning."""

from epochwatt.adapters import job_log
from epochwatt.figures.fulcrum.replanning import draw_replanning


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_replanning(
            slots=snakemake.input.slots,
            style_file=snakemake.input.style,
            stem=snakemake.output[0].removesuffix(".svg"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
