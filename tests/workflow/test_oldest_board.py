"""The board side runs under the oldest board software: Python 3.6 and torch 1.8 (JetPack 4)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe
from epochwatt.records.run_folder import RunFolder

REPOSITORY = Path(__file__).parents[2]
MACHINE = json.dumps(
    {
        "backend": "host",
        "root": "/",
        "kind": "",
        "unit": "",
        "storage": {"root": ".", "mount": "", "block_device": ""},
        "power_source": "none",
        "settle": None,
    }
)
PYTHON = REPOSITORY / ".venv-board" / "bin" / "python"

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not PYTHON.exists(), reason="no .venv-board: `make board-env` makes it from a python3.6"
    ),
]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_three_epochs_in_two_processes(tmp_path_factory, num_workers):
    tmp_path = tmp_path_factory.mktemp("o")  # short: sockets lie below it
    data_recipe = recipe("mnist", "digits", 0.2)
    make_dataset(tmp_path / "data" / "mnist-digits-x0.2", data_recipe)
    factors = {
        "backend": "host",
        "device": "host",
        "instance": "local",
        "model": "lenet",
        "dataset": "mnist",
        "dataset_source": "digits",
        "dataset_scale": 0.2,
        "storage": "disk",
        "power_mode": "asis",
        "dvfs": "on",
        "num_workers": num_workers,
        "torch_threads": 1,
        "recipe": data_recipe,
    }
    for first, last in ((0, 1), (2, 2)):
        command = [PYTHON, "-m", "epochwatt.training", "--run", "old", "--first", str(first)]
        command += ["--last", str(last), "--factors", json.dumps(factors)]
        command += ["--measured", tmp_path / "measured", "--data-root", tmp_path / "data"]
        command += ["--receipt", tmp_path / f"part-{first}.json", "--machine", MACHINE]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(tmp_path)}
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    records = [RunFolder(str(tmp_path / "measured"), "old").read(k).meta for k in range(3)]
    assert records[0]["software"]["python"].startswith("3.6.")
    assert records[0]["software"]["torch"].startswith("1.8.")
    assert [r["weights"] for r in records] == ["initial", "carried", "checkpoint"]
    assert records[0]["loss"] > records[1]["loss"] > records[2]["loss"]
    assert not any("resumed" in r["flags"] for r in records)
