"""How long `epochwatt recommend` takes from the shell: all modes of a board, block, figure, CSV."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt import columns
from epochwatt.board.device.kinds import KINDS, Kind
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.model_store import ENERGY_FILE, SCHEMA_VERSION, TIME_FILE
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.recommend.board_tables import board_of_kind
from epochwatt.prediction.recommend.recommend import modes_to_measure
from epochwatt.prediction.registry import RECOMMENDED

BUDGET = at_most(2.0)
DEVICES = {"agx": "agx_xavier", "orin": "agx_orin"}  # device file -> kind of board
N_ROUNDS = 15


def run(quick: bool = False) -> Result:
    """Ask of each board in turn; `quick` only shows that it works."""
    walls: dict[str, list[float]] = {device: [] for device in DEVICES}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config", "workflow"):
            (Path(folder) / name).symlink_to(REPOSITORY / name)
        counts = write_models(Path(folder))
        for device in DEVICES:  # untimed: caches of files and byte code
            ask(folder, device)
        for _ in range(1 if quick else N_ROUNDS):
            for device, values in walls.items():
                values.append(ask(folder, device))
    rows = [
        Row(f"recommend, {counts[device]:,} modes of {device}", values, "s", 2, BUDGET)
        for device, values in walls.items()
    ]
    return Result(rows)


def ask(folder: str, device: str) -> float:
    """Return the wall time of one question, s."""
    command = [sys.executable, "-m", "epochwatt", "recommend", "--backend", "twin"]
    command += ["--device", device, "--model", "mobilenet", "--max-power-w", "20"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    start_s = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall_s = time.perf_counter() - start_s
    if done.returncode:
        raise EpochwattError(f"{' '.join(command)} failed:\n{done.stderr}")
    return wall_s


def write_models(folder: Path) -> dict[str, int]:
    """Write models of a made-up network on each board; return how many modes a board has."""
    times: list[dict[str, Any]] = []
    energies: list[dict[str, Any]] = []
    counts = {}
    for device, kind in DEVICES.items():
        workload, models, counts[device] = fitted(device, KINDS[kind])
        for workloads, target in ((times, "time_s"), (energies, "power_w")):
            fit = {"method": RECOMMENDED, "learned_from": "all", "target": target}
            workloads.append({**workload, "fits": [{**fit, "model": models[target]}]})
    place = folder / "results/models/twin"
    place.mkdir(parents=True)
    for name, rows in ((TIME_FILE, times), (ENERGY_FILE, energies)):
        content = {"schema_version": SCHEMA_VERSION, "workloads": rows}
        (place / name).write_text(json.dumps(content), encoding="utf-8")
    return counts


def fitted(device: str, kind: Kind) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Return a workload, its models of four modes by target, and how many modes the board has."""
    board = board_of_kind(kind)
    modes = modes_to_measure(board)
    time_s = [1e5 / mode.gpu_mhz + 1e5 / mode.cpu_mhz for mode in modes]
    power_w = [5 + mode.gpu_mhz / 100 + mode.cpu_mhz / 200 for mode in modes]
    seen = observations_from_rows("mobilenet", modes, time_s, power_w)
    workload = {factor.name: factor.default for factor in columns.FACTORS} | {
        **{"backend": "twin", "device": device, "instance": "d1", "model": "mobilenet"},
        **{"dataset": "gld23k", "dataset_source": "official", "storage": "ssd"},
    }
    del workload["power_mode"]
    row = {"workload": workload, "runs": [f"{device}-{n}" for n in range(len(modes))]}
    models = {
        "time_s": fit_physical_time(seen).to_json(),
        "power_w": fit_power(seen).to_json(),
    }
    return row, models, len(board.all_modes())
