"""Adapter of rule choose_power_modes."""

from epochwatt.adapters import job_log
from epochwatt.prediction.selection.choose_power_modes import choose_power_modes


def main(snakemake):
    with job_log(snakemake.log[0]):
        choose_power_modes(
            epochs=snakemake.input.epochs,
            modes=snakemake.params.modes,
            backend=snakemake.wildcards.backend,
            path=snakemake.output.choices,
            table=snakemake.output.ranking,
        )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
