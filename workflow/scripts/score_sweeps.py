"""Adapter of rule score_sweeps."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.figures.tables.sweep_scores import draw_sweep_scores, write_page
from epochwatt.prediction.evaluation.sweep_scores import read_scores, write_scores


def main(snakemake):
    with job_log(snakemake.log[0]):
        rows = read_scores(snakemake.input.scores)
        write_scores(Path(snakemake.output.table), rows)
        folder = Path(snakemake.output.drawings[0]).parent
        draw_sweep_scores(rows, folder, snakemake.input.style)
        write_page(rows, folder, Path(snakemake.output.page))


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
