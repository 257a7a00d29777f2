"""Adapter of rule score_sweep."""

from pathlib import Path

from epochwatt.adapters import job_log
from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
from epochwatt.prediction.evaluation.sweep_scores import write_scores
from epochwatt.sweeps.mode_table import read_mode_tables


def main(snakemake):
    with job_log(snakemake.log[0]):
        tables = read_mode_tables(Path(snakemake.input.table))
        scores = score_tables(tables, judged_methods(), say=print)
        write_scores(Path(snakemake.output.scores), scores.rows)


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
