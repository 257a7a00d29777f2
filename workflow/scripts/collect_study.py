"""Adapter of rule collect_study."""

from epochwatt.adapters import job_log
from epochwatt.analysis.collect_study import export_tables


def main(snakemake):
    with job_log(snakemake.log[0]):
        export_tables(
            paths=snakemake.input.epochs,
            studies=snakemake.params.studies,
            epochs_csv=snakemake.output.epochs,
            runs_csv=snakemake.output.runs,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
