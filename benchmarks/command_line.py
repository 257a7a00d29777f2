"""How long commands take from the shell.

* `starts`: `epochwatt --help`, a command's help and jobs, beside a bare Python.
* `recommend`: `epochwatt recommend` of all modes of a board, with block, figure and CSV.
* `simulated_sweeps`: PowerTrain's 4,368 modes of AGX Orin, each network by itself, and seven
  workloads in a process (`python -m benchmarks.command_line FOLDER`).
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.results import REPOSITORY, Result, Row, at_most, run_command
from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.counting.count_workload import write_workload
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.model_store import ENERGY_FILE, SCHEMA_VERSION, TIME_FILE
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context
from epochwatt.prediction.recommend.board_tables import board_of_kind
from epochwatt.prediction.recommend.recommend import modes_to_measure
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.sweeps.grids import NAMED, named_grid, steps_of_kind
from epochwatt.sweeps.modes import mode_rows
from epochwatt.twin.power_modes import CONFIG
from epochwatt.twin.predicted import DATASETS
from epochwatt.twin.sweep import simulate_sweep
from epochwatt.twin.twin import load_twin

SOURCES = str(REPOSITORY / "src")
N_ROUNDS = 15
OURS = ("epochwatt --help", "epochwatt plan --help", "epochwatt.twin --help")
OURS += ("epochwatt.board.training --help",)
DEVICES = {"agx": "agx_xavier", "orin": "agx_orin"}  # device file -> kind of board
GRID, N_SWEEPS = "powertrain-orin", 7
WORKLOADS = (  # network, batch size, workers
    *((model, 16, 4) for model in ("lenet", "mobilenet", "resnet", "vgg11")),
    *(("mobilenet", 16, 0), ("mobilenet", 64, 4), ("resnet", 64, 4)),
)


def starts(quick: bool = False) -> Result:
    """Start each in turn, after a bare Python; `quick` only shows that it works."""
    with tempfile.TemporaryDirectory() as folder:
        paths = f"{SOURCES}{os.pathsep}{folder}"
        # empty: byte code is written
        variables = {"PYTHONPYCACHEPREFIX": f"{folder}/bytes", "PYTHONDONTWRITEBYTECODE": ""}

        def start_ms(*words: str) -> float:
            command = [sys.executable, *words]
            return 1e3 * run_command(command, ".", PYTHONPATH=paths, **variables).wall_s

        for name in OURS:  # untimed: byte code
            start_ms("-m", *name.split())
        times: dict[str, list[float]] = {name: [] for name in ("bare", *OURS)}
        for _ in range(1 if quick else N_ROUNDS):
            for name in OURS:
                times["bare"].append(start_ms("-c", "pass"))
                times[name].append(start_ms("-m", *name.split()))
    rows = [Row("a bare Python: -c pass", times["bare"], "ms", 1)]
    for n, name in enumerate(OURS):
        bare_ms = times["bare"][n :: len(OURS)]
        ratios = [ours / bare for ours, bare in zip(times[name], bare_ms, strict=True)]
        rows.append(Row(name, times[name], "ms", 1, at_most(100.0) if n == 0 else None))
        rows.append(Row("  / bare", ratios, "", 2))
    return Result(rows)


def recommend(quick: bool = False) -> Result:
    """Ask for a mode of each board in turn; `quick` only shows that it works."""
    walls: dict[str, list[float]] = {device: [] for device in DEVICES}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config", "workflow"):
            (Path(folder) / name).symlink_to(REPOSITORY / name)
        n_modes = write_models(Path(folder))
        for number in range(2 if quick else N_ROUNDS + 1):
            for device, values in walls.items():
                command = [sys.executable, "-m", "epochwatt", "recommend", "--backend", "twin"]
                command += ["--device", device, "--model", "mobilenet", "--max-power-w", "20"]
                wall_s = run_command(command, folder, PYTHONPATH=SOURCES).wall_s
                if number:  # the first fills caches of files and byte code
                    values.append(wall_s)
    return Result(
        [
            Row(f"recommend, {n_modes[device]:,} modes of {device}", values, "s", 2, at_most(2.0))
            for device, values in walls.items()
        ]
    )


def write_models(folder: Path) -> dict[str, int]:
    """Write models of a made-up network on each board; return how many modes each board has."""
    stored: dict[str, list[dict[str, Any]]] = {TIME_FILE: [], ENERGY_FILE: []}
    n_modes = {}
    for device, kind in DEVICES.items():
        board = board_of_kind(KINDS[kind])
        n_modes[device], modes = len(board.all_modes()), modes_to_measure(board)
        time_s = [1e5 / mode.gpu_mhz + 1e5 / mode.cpu_mhz for mode in modes]
        power_w = [5 + mode.gpu_mhz / 100 + mode.cpu_mhz / 200 for mode in modes]
        seen = observations_from_rows("mobilenet", modes, time_s, power_w)
        workload = {factor.name: factor.default for factor in columns.FACTORS} | {
            **{"backend": "twin", "device": device, "instance": "d1", "model": "mobilenet"},
            **{"dataset": "gld23k", "dataset_source": "official", "storage": "ssd"},
        }
        del workload["power_mode"]
        runs = [f"{device}-{n}" for n in range(len(modes))]
        method = load_method(RECOMMENDED)
        for name, target in ((TIME_FILE, TIME), (ENERGY_FILE, POWER)):
            model = {"method": RECOMMENDED, "learned_from": "all", "target": target}
            model |= {"model": method.fit(seen, Context(target)).to_json()}
            stored[name].append({"workload": workload, "runs": runs, "fits": [model]})
    place = folder / "results/models/twin"
    place.mkdir(parents=True)
    for name, rows in stored.items():
        content = {"schema_version": SCHEMA_VERSION, "workloads": rows}
        (place / name).write_text(json.dumps(content), encoding="utf-8")
    return n_modes


class SimulatedOrin:
    """PowerTrain's modes of AGX Orin, on the simulated board of this checkout.

    Parameters
    ----------
    folder : of the networks' counts
    """

    def __init__(self, folder: Path) -> None:
        board = NAMED[GRID].board
        self.modes = mode_rows(named_grid(GRID, board, steps_of_kind(board)))  # (4368, 5)
        self.twin = load_twin(REPOSITORY / CONFIG, map(str, folder.glob("*.json")))

    def sweep(self, model: str, batch_size: int, num_workers: int) -> None:
        """Simulate a workload in all modes."""
        factors = {
            **{"device": "orin", "instance": "d1", "model": model, "dataset": DATASETS[model]},
            **{"storage": "ssd", "num_workers": num_workers, "batch_size": batch_size},
        }
        simulate_sweep(self.modes, factors, self.twin, self.twin.parameters)


def simulated_sweeps(quick: bool = False) -> Result:
    """Time each network's sweep by itself, and all workloads in a process from the shell."""
    walls: dict[str, list[float]] = {model: [] for model in DATASETS}
    whole = []
    with tempfile.TemporaryDirectory() as folder:
        for model in DATASETS:
            write_workload({"model": model}, f"{folder}/{model}.json")
        orin = SimulatedOrin(Path(folder))
        for _ in range(1 if quick else N_SWEEPS):
            for model, values in walls.items():
                start_s = time.perf_counter()
                orin.sweep(model, 16, 4)
                values.append(time.perf_counter() - start_s)
            command = [sys.executable, "-m", "benchmarks.command_line", folder]
            whole.append(run_command(command).wall_s)
    title = f"{len(orin.modes):,} modes of AGX Orin"
    rows = [
        Row(f"{title}, {model} ({len(orin.twin.works[model].kind):,} kernels)", values, "s", 2,
            at_most(1.0))
        for model, values in walls.items()
    ]  # fmt: skip
    seven = f"{title}, {len(WORKLOADS)} workloads, from the shell"
    return Result([*rows, Row(seven, whole, "s", 2, at_most(10.0))])


if __name__ == "__main__":
    simulated_orin = SimulatedOrin(Path(sys.argv[1]))
    for workload in WORKLOADS:
        simulated_orin.sweep(*workload)
