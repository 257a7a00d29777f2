"""Threads of torch in a job of Snakemake, and elsewhere."""

import os
import subprocess
import sys

from epochwatt.board.training.exit_status import SET_BY_SNAKEMAKE, take_the_board


def test_what_snakemake_allows_is_forgotten(monkeypatch):
    environment = {"OMP_DYNAMIC": "false", **dict.fromkeys(SET_BY_SNAKEMAKE, "1")}
    monkeypatch.setattr(os, "environ", environment)
    take_the_board()
    assert environment == {"OMP_DYNAMIC": "false"}


def test_torch_counts_the_cores_itself():
    code = (
        "from epochwatt.board.training.exit_status import exit_status\n"
        "def measure():\n"
        "    import torch\n"
        "    print(torch.get_num_threads())\n"
        "exit_status('a run', measure)\n"
    )

    def threads(limits):
        free = {name: v for name, v in os.environ.items() if name not in SET_BY_SNAKEMAKE}
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, env={**free, **limits})

    assert threads(dict.fromkeys(SET_BY_SNAKEMAKE, "7")) == threads({})
