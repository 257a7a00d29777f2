"""Adapter of rule compare_pairs."""

from epochwatt.adapters import job_log
from epochwatt.analysis.pairs import compare_pairs


def main(snakemake):
    with job_log(snakemake.log[0]):
        compare_pairs(
            epochs=snakemake.input.epochs,
            pairs=snakemake.params.pairs,
            factor=snakemake.params.factor,
            margin_pct=snakemake.params.margin_pct,
            measured=snakemake.params.measured,
            pairs_csv=snakemake.output.pairs,
            verdicts_csv=snakemake.output.verdicts,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
