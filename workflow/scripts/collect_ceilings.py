"""Adapter of rule collect_ceilings."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.roofline.collect import collect_ceilings


def main(snakemake):
    with job_log(snakemake.log[0]):
        collect_ceilings(
            measured=snakemake.params.measured,
            places=snakemake.params.places,
            flag_effects=snakemake.params.flag_effects,
            table=Path(snakemake.output.table),
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
