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
PYTHON = REPOSITORY / ".venv-board/bin/python"
STORAGE = {"root": ".", "mount": "", "block_device": ""}
MACHINE = {
    **{"backend": "host", "root": "/", "kind": "", "unit": "", "storage": STORAGE},
    **{"power_source": "none", "settle": None},
}
FACTORS = {
    **{"backend": "host", "device": "host", "instance": "local", "model": "lenet"},
    **{"dataset": "mnist", "dataset_source": "digits", "dataset_scale": 0.2},
    **{"storage": "disk", "dvfs": "on", "recipe": recipe("mnist", "digits", 0.2)},
}

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not PYTHON.exists(), reason="no .venv-board: `make board-env` makes it from a python3.6"
    ),
]


@pytest.fixture
def folder(tmp_path_factory):
    """A folder with the data set; its name is short, since sockets lie below it."""
    folder = tmp_path_factory.mktemp("o")
    make_dataset(folder / "data/mnist-digits-x0.2", FACTORS["recipe"])
    return folder


def run_program(folder, module, factors, **words):
    """Run a program of the board side by the old interpreter."""
    told = {"factors": json.dumps({**FACTORS, **factors}), "machine": json.dumps(MACHINE)}
    told |= {"measured": folder / "measured", "data-root": folder / "data", **words}
    command = [PYTHON, "-m", f"epochwatt.board.training{module}"]
    command += [str(word) for name, value in told.items() for word in (f"--{name}", value)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("num_workers", [pytest.param(0, marks=pytest.mark.thorough), 1])
def test_three_epochs_in_two_processes(folder, num_workers):
    factors = {"power_mode": "asis", "num_workers": num_workers, "torch_threads": 1}
    for first, last in ((0, 1), (2, 2)):
        part = {"first": first, "last": last, "receipt": folder / f"part-{first}.json"}
        run_program(folder, "", factors, run="old", **part)
    records = [RunFolder(str(folder / "measured"), "old").read(k).meta for k in range(3)]
    assert records[0]["software"]["python"].startswith("3.6.")
    assert records[0]["software"]["torch"].startswith("1.8.")
    assert [r["weights"] for r in records] == ["initial", "carried", "checkpoint"]
    assert records[0]["loss"] > records[1]["loss"] > records[2]["loss"]
    assert not any("resumed" in r["flags"] for r in records)


def test_two_modes_of_a_sweep(folder):
    modes = [{"cores": n} for n in range(1, min(2, os.cpu_count() or 1) + 1)]
    (folder / "modes.json").write_text(json.dumps(modes), "utf-8")
    procedure = {"idle_s": 0.1, "warm_up_s": 0.2}
    factors = {"power_mode": "sweep", "num_workers": 1, "minibatches": 5, "procedure": procedure}
    chunk = {"first": 0, "last": len(modes) - 1, "receipt": folder / "chunk.json"}
    run_program(folder, ".sweep", factors, sweep="old", modes=folder / "modes.json", **chunk)
    sweep = SweepFolder(str(folder / "measured"), "old")
    records = [sweep.verify(mode) for mode in modes]
    assert {record.meta["software"]["python"][:4] for record in records} == {"3.6."}
    assert [record.meta["torch_threads_used"] for record in records] == [m["cores"] for m in modes]
    assert all(len(record.minibatch_s) >= 5 for record in records)
