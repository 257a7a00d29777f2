"""Adapter of rule show_index."""

from epochwatt.adapters import job_log
from epochwatt.pages.site import write_index


def main(snakemake):
    with job_log(snakemake.log[0]):
        write_index(
            inputs=snakemake.params.tables,
            figures=snakemake.params.figures,
            numbers=snakemake.input.numbers,
            titles=snakemake.params.titles,
            palette=snakemake.params.palette,
            page=snakemake.output.page,
            overview=snakemake.output.overview,
            records=snakemake.params.records,
            specs=[*snakemake.input.specs, *snakemake.params.study_specs],
            config=snakemake.input.config,
            excluded=snakemake.params.excluded,
            further=snakemake.params.further,
            powertrain=snakemake.params.powertrain,
            fulcrum=snakemake.params.fulcrum,
            not_made=snakemake.params.not_made,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
