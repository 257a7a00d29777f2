"""Split the energy of measured runs: constant power, and rails as far as they tell.

`results/tables/energy_parts.csv` has two stacks of a run's energy. `constant`: what the idle board
takes in the same mode over the same time, and the rest. `rails`: CPU, GPU and memory by the rails
of the board, or by the sensors of a host's CPU package and GPU, and what no rail of theirs tells.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from epochwatt.analysis.collect_study import epoch_sets, read_epochs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.epochs.energy import J_PER_WH, trapezoid
from epochwatt.epochs.telemetry import read_all
from epochwatt.tables import read_cells, write_entries

MODULE, GPU, PACKAGE = "module", "gpu", "cpu_package"
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
REST = "rest"
CONSTANT, RAIL = "constant", "rails"
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
    """Write the table; without a sensor it has no row.

    Parameters
    ----------
    epochs, scopes : `epochs.csv` and `energy.csv` of the measured runs
    idle : results/tables/idle.csv; empty: no idle power is there
    records : run -> folder of its records
    """
    table = read_epochs(epochs)
    later = epoch_sets(table)["1+"]
    valid = later[later.valid & later.energy_wh.notna()]
    idle_rows = read_cells(idle) if idle else []
    scope_rows = [row for path_ in scopes for row in read_cells(path_)]
    rows: list[Part] = []
    for run, of_run in valid.groupby("run", sort=False):
        name = str(run)
        rows += constant_parts(of_run, idle_rows)
        rows += rail_parts(of_run, records[name], [r for r in scope_rows if r["run"] == name])
    write_entries(path, "parts of energy", Part, rows)


def constant_parts(epochs: pd.DataFrame, idle: Sequence[Mapping[str, str]]) -> list[Part]:
    """Return the energy that the idle board takes over the same time, and the rest.

    Nothing where the board was not measured idle in the run's mode, seen by the same sensor.
    """
    first = epochs.iloc[0]
    for row in idle:
        same = all(row[name] == str(first[name]) for name in SAME_BOARD)
        if same and row["state"] == "i" and row["power_scope"] == first.power_scope:
            constant_wh = float(row["power_w"]) * float(epochs.e2e_s.mean()) / J_PER_WH
            above_wh = float(epochs.energy_wh.mean()) - constant_wh
            parts = {"constant power": constant_wh, "above it": max(above_wh, 0.0)}
            return _rows(first, CONSTANT, len(epochs), parts)
    return []


def rail_parts(
    epochs: pd.DataFrame, folder: str, scopes: Sequence[Mapping[str, str]]
) -> list[Part]:
    """Return the energy of CPU, GPU and memory, as far as a sensor tells.

    Parameters
    ----------
    epochs : of one run: valid ones after the first, with energy
    folder : of its records
    scopes : its rows of energy.csv
    """
    first, numbers = epochs.iloc[0], [int(number) for number in epochs.epoch]
    if first.power_scope == MODULE:
        of_epochs = [_of_module(folder, number) for number in numbers]
    else:
        of_epochs = [_of_scopes(scopes, number) for number in numbers]
    if len({tuple(parts) for parts in of_epochs}) != 1:  # a rail was lost in between
        of_epochs = [{} for _ in numbers]
    means = {part: sum(parts[part] for parts in of_epochs) / len(numbers) for part in of_epochs[0]}
    if first.power_scope not in (GPU, PACKAGE):
        means[REST] = max(float(epochs.energy_wh.mean()) - sum(means.values()), 0.0)
    return _rows(first, RAIL, len(numbers), means)


def _of_module(folder: str, epoch: int) -> dict[str, float]:
    """Return part -> energy, Wh, of an epoch by the rails of its board."""
    path = Path(folder)
    record = RunFolder(str(path.parent), path.name).read(epoch)
    samples = read_all(record)
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    parts: dict[str, float] = {}
    for name, source in record.telemetry.get("sources", {}).items():
        if source["scope"] == MODULE and source["total"]:
            table = samples[name]
            for column in table:
                if column in RAILS:
                    energy_j = trapezoid(table["t_mono_s"], table[column], *window).energy_j
                    part = RAILS[column]
                    parts[part] = parts.get(part, 0.0) + energy_j / J_PER_WH
    return {} if any(value != value for value in parts.values()) else parts


def _of_scopes(scopes: Sequence[Mapping[str, str]], epoch: int) -> dict[str, float]:
    """Return the same by the sensors of a host's GPU and CPU package."""
    names = {GPU: "GPU", PACKAGE: "CPU package"}
    return {
        names[row["power_scope"]]: float(row["energy_wh"])
        for row in scopes
        if row["power_scope"] in names and int(row["epoch"]) == epoch and row["energy_wh"]
    }


def _rows(
    first: "pd.Series[Any]", stack: str, n_epochs: int, parts: Mapping[str, float]
) -> list[Part]:
    total = sum(parts.values())
    if not total > 0:
        return []
    run, scope = str(first.run), str(first.power_scope)
    return [
        Part(run, scope, stack, part, n_epochs, energy_wh, 100.0 * energy_wh / total)
        for part, energy_wh in parts.items()
    ]
