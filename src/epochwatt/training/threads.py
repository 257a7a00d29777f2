"""Give torch's CPU operators all cores as threads (board side: Python 3.6 grammar)."""

import os

# what Snakemake sets to the `threads` of a rule, all alike (snakemake/shell.py)
SET_BY_SNAKEMAKE = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def take_the_board() -> None:
    """Forget how many threads Snakemake allows, before torch is imported.

    They are the cores of `--cores`, by default those that were on when the workflow started, and
    one in a job of Slurm (`set-threads` in profiles/slurm). A measurement has the machine to itself
    and torch counts the cores of its power mode, as without Snakemake. A number that somebody set
    for themselves stays.
    """
    values = {os.environ.get(name) for name in SET_BY_SNAKEMAKE}
    if len(values) == 1 and None not in values:
        for name in SET_BY_SNAKEMAKE:
            del os.environ[name]
