"""Adapter of rule draw_pairs."""

from epochwatt.adapters import job_log
from epochwatt.figures.pairs import draw_pairs


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_pairs(
            pairs=snakemake.input.pairs,
            verdicts=snakemake.input.verdicts,
            style_file=snakemake.input.style,
            stem=snakemake.output[0].removesuffix(".svg"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
