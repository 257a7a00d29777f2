"""How long does a simulated sweep take? PowerTrain's 4,368 modes of AGX Orin, seven workloads."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt.counting.count_workload import write_workload
from epochwatt.errors import EpochwattError
from epochwatt.sweeps.grids import NAMED, named_grid, steps_of_kind
from epochwatt.sweeps.modes import mode_rows
from epochwatt.twin.power_modes import CONFIG
from epochwatt.twin.predicted import DATASETS
from epochwatt.twin.sweep import simulate_sweep
from epochwatt.twin.twin import Twin, load_twin

GRID, DEVICE = "powertrain-orin", "orin"
WORKLOADS = (  # network, batch size, workers
    ("lenet", 16, 4),
    ("mobilenet", 16, 4),
    ("resnet", 16, 4),
    ("vgg11", 16, 4),
    ("mobilenet", 16, 0),
    ("mobilenet", 64, 4),
    ("resnet", 64, 4),
)
ONE_BUDGET, ALL_BUDGET = at_most(1.0), at_most(10.0)
N_ROUNDS = 7


def run(quick: bool = False) -> Result:
    """Time each network's sweep by itself, and all workloads in a process from the shell."""
    rounds = range(1 if quick else N_ROUNDS)
    modes = grid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in DATASETS:
            write_workload({"model": model}, str(folder / f"{model}.json"))
        twin = load(folder)
        walls: dict[str, list[float]] = {model: [] for model in DATASETS}
        whole = []
        for _ in rounds:
            for model, values in walls.items():
                start_s = time.perf_counter()
                simulate_sweep(modes, factors(model, 16, 4), twin, twin.parameters)
                values.append(time.perf_counter() - start_s)
            whole.append(from_the_shell(folder))
    kernels = {model: len(work.kind) for model, work in twin.works.items()}
    title = f"{len(modes):,} modes of AGX Orin"
    rows = [
        Row(f"{title}, {model} ({kernels[model]:,} kernels)", values, "s", 2, ONE_BUDGET)
        for model, values in walls.items()
    ]
    seven = f"{title}, {len(WORKLOADS)} workloads, from the shell"
    return Result([*rows, Row(seven, whole, "s", 2, ALL_BUDGET)])


def grid() -> NDArray[np.float64]:
    """Return PowerTrain's modes, shape (4368, 5)."""
    board = NAMED[GRID].board
    return mode_rows(named_grid(GRID, board, steps_of_kind(board)))


def load(folder: Path) -> Twin:
    """Return the simulated boards of this checkout with the networks counted in a folder."""
    return load_twin(REPOSITORY / CONFIG, map(str, folder.glob("*.json")))


def factors(model: str, batch_size: int, num_workers: int) -> Mapping[str, Any]:
    """Return the factors of a workload."""
    return {
        **{"device": DEVICE, "instance": "d1", "model": model, "dataset": DATASETS[model]},
        **{"storage": "ssd", "num_workers": num_workers, "batch_size": batch_size},
    }


def from_the_shell(folder: Path) -> float:
    """Return the wall time of a process that simulates all workloads, s."""
    command = [sys.executable, "-m", "benchmarks.simulated_sweeps", str(folder)]
    start_s = time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - start_s
    if done.returncode:
        raise EpochwattError(f"{' '.join(command)} failed:\n{done.stderr}")
    return wall_s


def main(folder: str) -> None:
    """Simulate all workloads with the networks counted in a folder."""
    twin, modes = load(Path(folder)), grid()
    for workload in WORKLOADS:
        simulate_sweep(modes, factors(*workload), twin, twin.parameters)


if __name__ == "__main__":
    main(sys.argv[1])
