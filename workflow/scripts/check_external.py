"""Adapter of rule check_external."""

from epochwatt.adapters import job_log
from epochwatt.external.check_external import check_external
from epochwatt.figures.external import plot
from epochwatt.pages.show_external import write_external


def main(snakemake):
    with job_log(snakemake.log[0]):
        check_external(
            workloads=snakemake.input.workloads,
            path=snakemake.output.table,
            curves=snakemake.output.curves,
            folder=snakemake.params.folder,
        )
        plot(
            table=snakemake.output.curves,
            style_file=snakemake.input.style,
            stem=snakemake.output.figure.removesuffix(".svg"),
        )
        write_external(
            table=snakemake.output.table,
            figure=snakemake.output.figure,
            path=snakemake.output.page,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
