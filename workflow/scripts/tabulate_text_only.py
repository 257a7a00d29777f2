"""Adapter of rule tabulate_text_only."""

from epochwatt.adapters import job_log
from epochwatt.figures.tables.tabulate_text_only import write


def main(snakemake):
    with job_log(snakemake.log[0]):
        write(
            epochs=snakemake.input.epochs,
            missing=snakemake.params.missing,
            backend=snakemake.wildcards.backend,
            published=snakemake.params.published,
            twin=snakemake.params.twin,
            stem=snakemake.output.table.removesuffix(".csv"),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
