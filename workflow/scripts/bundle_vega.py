"""Adapter of rule bundle_vega."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.pages.explorer import vega_bundle


def main(snakemake):
    with job_log(snakemake.log[0]):
        Path(snakemake.output[0]).write_text(vega_bundle(), "utf-8")


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
