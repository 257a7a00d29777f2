"""Adapter of rule validate_twin."""

from epochwatt.adapters import job_log
from epochwatt.figures.validation import plot
from epochwatt.twin.calibrate_twin import write_validation


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_validation(
            workloads=snakemake.input.workloads,
            table=snakemake.output.table,
            groupings=snakemake.output.groupings,
            text=snakemake.output.text,
        )
        plot(
            table=snakemake.output.table,
            groupings=snakemake.output.groupings,
            priors="config/twin/priors.csv",
            published="config/published",
            style_file=snakemake.input.style,
            palette=snakemake.params.palette,
            titles=snakemake.params.titles,
            stem=snakemake.output.figure.removesuffix(".svg"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
