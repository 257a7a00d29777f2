"""Adapter of rule plot_fig02."""

from epochwatt.adapters import job_log
from epochwatt.figures.fig02 import plot


def main(snakemake):
    with job_log(snakemake.log[0]):
        plot(
            paths=snakemake.input.epochs,
            excluded=snakemake.params.excluded,
            titles=snakemake.params.titles,
            style_file=snakemake.input.style,
            palette=snakemake.params.palette,
            panels=snakemake.params.panels,
            stems={
                "fig02a": snakemake.output.a.removesuffix(".svg"),
                "fig02b": snakemake.output.b.removesuffix(".svg"),
            },
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
