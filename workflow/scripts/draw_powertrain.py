"""Adapter of rule draw_powertrain."""

from epochwatt.adapters import job_log
from epochwatt.figures.powertrain.draw import draw_powertrain


def main(snakemake):
    with job_log(snakemake.log[0]):
        draw_powertrain(
            tables=snakemake.input.tables,
            numbers=snakemake.input.numbers,
            modes=snakemake.input.modes or "",
            style_file=snakemake.input.style,
            folder=snakemake.params.folder,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
