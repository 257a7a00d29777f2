"""Shared by the tests of simulated runs: the command of one."""

import json
from pathlib import Path

import pytest

from epochwatt.counting.count_workload import network_factors, write_workload
from epochwatt.study.settings import load_settings

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def workload(tmp_path_factory):
    """Counts of LeNet-5."""
    path = tmp_path_factory.mktemp("workloads") / "lenet.json"
    write_workload(network_factors("lenet", load_settings(root=ROOT).workloads), str(path))
    return path


@pytest.fixture
def words(tmp_path, workload):
    """Return a function that gives the command of a run, which is a LeNet of the paper's."""
    settings = load_settings({"studies": "simulated"}, ROOT)
    run = next(run for run in settings.table.runs.values() if run.factors["model"] == "lenet")

    def command(epochs=2):
        return [
            *(run.id, "--factors", run.canonical, "--epochs", str(epochs)),
            *("--workload", str(workload), "--flag-effects", json.dumps(settings.flag_effects)),
            *("--config", str(ROOT / "config/twin"), "--output", str(tmp_path / run.id)),
            *("--tables", str(tmp_path / "tables")),
        ]

    return command
