"""Threads of torch in a job of Slurm, and elsewhere."""

import os

from epochwatt.training.threads import SET_BY_SNAKEMAKE, take_the_board


def test_a_job_of_slurm_leaves_the_number_to_torch(monkeypatch):
    environment = {
        "SLURM_JOB_ID": "7",
        "OMP_DYNAMIC": "false",
        **dict.fromkeys(SET_BY_SNAKEMAKE, "1"),
    }
    monkeypatch.setattr(os, "environ", environment)
    take_the_board()
    assert environment == {"SLURM_JOB_ID": "7", "OMP_DYNAMIC": "false"}


def test_elsewhere_the_cores_given_to_the_workflow_count(monkeypatch):
    environment = {"OMP_NUM_THREADS": "4"}
    monkeypatch.setattr(os, "environ", environment)
    take_the_board()
    assert environment == {"OMP_NUM_THREADS": "4"}
