"""Adapter of rule draw_rounds."""

from epochwatt.adapters import job_log
from epochwatt.figures.federated.draw import draw_rounds


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_rounds(
            tables=snakemake.input.tables,
            style_file=snakemake.input.style,
            stems=snakemake.params.stems,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
