"""How many threads torch's CPU operators have (board side: Python 3.6 grammar)."""

import os

IN_SLURM = "SLURM_JOB_ID"
# what Snakemake sets to the `threads` of a rule (snakemake/shell.py)
SET_BY_SNAKEMAKE = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def take_the_board() -> None:
    """Leave the number of threads to torch in a job of Slurm; before torch is imported.

    There a rule asks for one CPU (`set-threads` in profiles/slurm), but has the board as a whole:
    one thread would be another measurement than without Slurm.
    """
    if IN_SLURM in os.environ:
        for name in SET_BY_SNAKEMAKE:
            os.environ.pop(name, None)
