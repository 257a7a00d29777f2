"""Adapter of rule collect_idle."""

from epochwatt.adapters import job_log
from epochwatt.analysis.collect_idle import write_idle_table


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_idle_table(
            idles=snakemake.params.idles,
            plug_csv=snakemake.input.plug,
            path=snakemake.output.idle,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
