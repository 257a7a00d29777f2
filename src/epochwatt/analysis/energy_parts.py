"""Split the energy of measured runs: constant power, and rails as far as they tell.

`results/tables/energy_parts.csv` has two stacks of a run's energy. `constant`: what the idle board
takes in the same mode over the same time, and the rest. `rails`: CPU, GPU and memory by the rails
of the board, or by the sensors of a host's CPU package and GPU, and what no rail of theirs tells.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from epochwatt.analysis.collect_study import counted_epochs, read_epochs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.epochs.energy import J_PER_WH, trapezoid
from epochwatt.epochs.telemetry import read_all
from epochwatt.tables import Cells, read_cells, write_entries

BOARDS = ("module", "board")  # scopes of a board's own rails
OF_HOST = {"gpu": "GPU", "cpu_package": "CPU package"}  # scope of a sensor -> what it feeds
# column of a board's samples -> what the rail feeds; none of these lies below another
RAILS = {
    "rail_gpu_w": "GPU",
    "rail_vdd_gpu_w": "GPU",
    "rail_pom_5v_gpu_w": "GPU",
    "rail_cpu_w": "CPU",
    "rail_pom_5v_cpu_w": "CPU",
    "rail_vdd_cpu_cv_w": "CPU",
    "rail_vdd_cpu_gpu_cv_w": "CPU and GPU",
    "rail_vdd_gpu_soc_w": "GPU and SoC",
    "rail_vdd_cpu_soc_mss_w": "CPU and SoC",
    "rail_vddrq_w": "memory",
    "rail_vddq_vdd2_1v8ao_w": "memory",
}
SAME_BOARD = ("backend", "device", "instance", "power_mode", "dvfs")


class Part(NamedTuple):
    """A row of the table."""

    run: str  # its id
    power_scope: str  # of its sensor, as in epochs.csv
    stack: str  # constant or rails
    part: str  # of the stack
    n_epochs: int  # valid epochs after the first, of which it is the mean
    energy_wh: float  # of an epoch
    share_pct: float  # of the stack


def write_energy_parts(
    epochs: Iterable[str], scopes: Iterable[str], idle: str, records: Mapping[str, str], path: str
) -> None:
    """Write `energy_parts.csv`: two stacks of energy for each run that has energy.

    `epochs`, `scopes`: `epochs.csv` and `energy.csv` of the measured runs
    `idle`: path of results/tables/idle.csv; empty: no idle power is there
    `records`: run -> folder of its records
    """
    counted = counted_epochs(read_epochs(epochs))
    idle_rows = read_cells(idle) if idle else []
    scope_rows = [row for path_ in scopes for row in read_cells(path_)]
    rows = []
    for run, valid in counted[counted.energy_wh.notna()].groupby("run", sort=False):
        name, first = str(run), valid.iloc[0]
        own = [row for row in scope_rows if row["run"] == name]
        stacks = {
            "constant": constant_parts(valid, idle_rows),
            "rails": rail_parts(valid, records[name], own),
        }
        for stack, parts in stacks.items():
            total = sum(parts.values())
            rows += [
                Part(name, first.power_scope, stack, part, len(valid), wh, 100.0 * wh / total)
                for part, wh in parts.items()
                if total > 0
            ]
    write_entries(path, "parts of energy", Part, rows)


def constant_parts(epochs: pd.DataFrame, idle: Sequence[Cells]) -> dict[str, float]:
    """Return the energy of an epoch that the idle board would take, and the rest, Wh.

    Empty where the board was not measured idle in the run's mode by the same sensor.
    """
    first = epochs.iloc[0]
    for row in idle:
        same = all(row[name] == str(first[name]) for name in SAME_BOARD)
        if same and row["state"] == "i" and row["power_scope"] == first.power_scope:
            constant_wh = float(row["power_w"]) * float(epochs.e2e_s.mean()) / J_PER_WH
            above_wh = float(epochs.energy_wh.mean()) - constant_wh
            return {"constant power": constant_wh, "above it": max(above_wh, 0.0)}
    return {}


def rail_parts(epochs: pd.DataFrame, folder: str, scopes: Sequence[Cells]) -> dict[str, float]:
    """Return part (CPU, GPU, memory, rest) -> energy of an epoch, Wh, as far as sensors tell.

    `epochs`: of one run: valid ones after the first, with energy
    `folder`: of its records
    `scopes`: its rows of energy.csv
    """
    scope, numbers = epochs.iloc[0].power_scope, [int(number) for number in epochs.epoch]
    if scope in BOARDS:
        by_epoch = [_module_parts(folder, number) for number in numbers]
    else:
        by_epoch = [
            {
                OF_HOST[row["power_scope"]]: float(row["energy_wh"])
                for row in scopes
                if row["power_scope"] in OF_HOST and row["energy_wh"] and int(row["epoch"]) == n
            }
            for n in numbers
        ]
    if len({tuple(parts) for parts in by_epoch}) != 1:  # a rail was lost in between
        by_epoch = [{} for _ in numbers]
    means = {part: sum(parts[part] for parts in by_epoch) / len(numbers) for part in by_epoch[0]}
    if scope not in OF_HOST:
        means["rest"] = max(float(epochs.energy_wh.mean()) - sum(means.values()), 0.0)
    return means


def _module_parts(folder: str, epoch: int) -> dict[str, float]:
    """Return part -> energy, Wh, of an epoch by its board's rails; empty: one has no energy."""
    path = Path(folder)
    record = RunFolder(str(path.parent), path.name).read(epoch)
    samples = read_all(record)
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    parts: dict[str, float] = {}
    for name, source in record.telemetry.get("sources", {}).items():
        if source["scope"] in BOARDS and source["total"]:
            table = samples[name]
            for column in table:
                if part := RAILS.get(column):
                    energy_j = trapezoid(table["t_mono_s"], table[column], *window).energy_j
                    parts[part] = parts.get(part, 0.0) + energy_j / J_PER_WH
    return {} if any(map(math.isnan, parts.values())) else parts
