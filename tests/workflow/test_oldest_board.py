"""The board side runs under the oldest board software: Python 3.6 and torch 1.8 (JetPack 4)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe

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
        command = [PYTHON, "-m", "epochwatt.board.training", "--run", "old", "--first", str(first)]
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


def test_two_modes_of_a_sweep(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("o")
    data_recipe = recipe("mnist", "digits", 0.2)
    make_dataset(tmp_path / "data" / "mnist-digits-x0.2", data_recipe)
    factors = {
        **{"backend": "host", "device": "host", "instance": "local", "model": "lenet"},
        **{"dataset": "mnist", "dataset_source": "digits", "dataset_scale": 0.2},
        **{"storage": "disk", "power_mode": "sweep", "dvfs": "on", "num_workers": 1},
        **{"recipe": data_recipe, "minibatches": 5},
        "procedure": {"idle_s": 0.1, "warm_up_s": 0.2},
    }
    modes = [{"cores": n} for n in range(1, min(2, os.cpu_count() or 1) + 1)]
    (tmp_path / "modes.json").write_text(json.dumps(modes), "utf-8")
    command = [PYTHON, "-m", "epochwatt.board.training.sweep", "--sweep", "old", "--first", "0"]
    command += ["--last", str(len(modes) - 1), "--modes", tmp_path / "modes.json"]
    command += ["--factors", json.dumps(factors), "--measured", tmp_path / "measured"]
    command += ["--data-root", tmp_path / "data", "--receipt", tmp_path / "chunk.json"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [*command, "--machine", MACHINE], env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    folder = SweepFolder(str(tmp_path / "measured"), "old")
    records = [folder.verify(mode) for mode in modes]
    assert {record.meta["software"]["python"][:4] for record in records} == {"3.6."}
    assert [record.meta["torch_threads_used"] for record in records] == [m["cores"] for m in modes]
    assert all(len(record.minibatch_s) >= 5 for record in records)
