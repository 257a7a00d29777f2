"""Adapter of rule show_index."""

from epochwatt.adapters import job_log
from epochwatt.pages.site import Results, write_index


def main(snakemake):
    with job_log(snakemake.log[0]):
        results = Results(
            tables=snakemake.params.tables,
            figures=snakemake.params.figures,
            numbers=snakemake.input.numbers,
            titles=snakemake.params.titles,
            palette=snakemake.params.palette,
            records=snakemake.params.records,
            specs=[*snakemake.input.specs, *snakemake.params.study_specs],
            vega=snakemake.input.vega,
            config=snakemake.input.config,
            excluded=snakemake.params.excluded,
            further=snakemake.params.further,
            powertrain=snakemake.params.powertrain,
            fulcrum=snakemake.params.fulcrum,
            federated=snakemake.params.federated,
            not_made=snakemake.params.not_made,
        )
        write_index(results, snakemake.output.page, snakemake.output.overview)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
