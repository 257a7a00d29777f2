"""`python -m benchmarks.template FOLDER`: a small run measured for real, to be damaged in copies.

LeNet on 36 of the digits, three epochs of about 20 ms, with made-up power beside the host's own
counters. The folder then holds `data/`, `measured/{run}/`, `receipt.json` and `factors.json`.
"""

import functools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.results import REPOSITORY, run_command
from benchmarks.synthetic import sampler_with
from epochwatt import columns
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.training.data import folder_name
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe
from epochwatt.epochs.collect import collect_run

RUN, SCALE, EPOCHS = "host-local-lenet-ssd-w0-bs16-native-p1-0123abcd", 0.02, 3
POWER = {"period_s": 0.002, "rails": 3, "signal": [[0.004, 8.0], [0.007, 22.0]]}
FACTORS = {
    **{"backend": "host", "device": "host", "instance": "local", "model": "lenet"},
    **{"dataset": "mnist", "dataset_source": "digits", "dataset_scale": SCALE},
    **{"storage": "ssd", "num_workers": 0, "power_mode": "native", "dvfs": "on"},
    **{"torch_threads": 1},
}


def machine_settings(folder: Path) -> dict[str, Any]:
    """Return what the measuring side is told of the machine."""
    storage = {"root": str(folder / "data"), "mount": "", "block_device": ""}
    about = {"backend": "host", "root": "/", "kind": "", "unit": "", "storage": storage}
    return {**about, "power_source": "none", "settle": None}


def with_power() -> None:
    """Let each sampler of this process read made-up power too: epochs here are made of it."""
    start = Sampler.start
    Sampler.start = functools.partial(start, program=sampler_with(POWER))  # type: ignore[method-assign]


def collect(folder: Path, epochs: int = EPOCHS) -> None:
    """Write the run's tables as `collect_run` does."""
    tables = [str(folder / "results" / name) for name in ("epochs.csv", "energy.csv")]
    collect_run(str(folder / "measured"), RUN, epochs, columns.FLAG_EFFECTS, *tables)


def prepare(folder: Path) -> dict[str, Any]:
    """Make the data set and the file of factors; return the factors."""
    recipe_ = recipe("mnist", "digits", SCALE)
    factors = columns.with_defaults({**FACTORS, "recipe": recipe_})
    make_dataset(folder / "data" / folder_name("mnist", "digits", SCALE), recipe_)
    (folder / "factors.json").write_text(json.dumps(factors), "utf-8")
    return factors


def make(folder: Path) -> None:
    """Make the template in a process of its own, so that this one stays without torch."""
    command = [sys.executable, "-m", "benchmarks.template", str(folder)]
    paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    variables = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    run_command(command, PYTHONPATH=paths, TMPDIR=str(folder / "tmp"), **variables)


def main(folder: Path) -> None:
    """Make data set, run, receipt and tables."""
    from epochwatt.board.training.job import run_part

    tempfile.tempdir = None  # TMPDIR of the caller: a lock and a history of its own
    factors = prepare(folder)
    with_power()
    runs, receipt = RunFolder(str(folder / "measured"), RUN), str(folder / "receipt.json")
    machine = open_machine(machine_settings(folder))
    run_part(runs, factors, 0, EPOCHS - 1, str(folder / "data"), receipt, machine)
    collect(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
