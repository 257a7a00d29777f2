"""`epochwatt explain`: a run, its counts and the rooflines of its mode, measured or simulated."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.roofline.explain_lines import explanation_lines
from epochwatt.roofline.explain_runs import TABLE, TO_MEASURE, explain_run
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.next_mode import KNOBS
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices
from epochwatt.study.devices import read_rows as read_yaml_rows
from epochwatt.study.runs import counts_path
from epochwatt.sweeps.table import PROVENANCE
from epochwatt.text import first_of
from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.clocks import Clocks
from epochwatt.twin.inputs.numbers import Values
from epochwatt.twin.inputs.power_modes import load_twin_with_modes
from epochwatt.twin.model.compute import FLOP_PER_CORE_CLOCK
from epochwatt.twin.model.cpu import MAIN_OTHERS, slowdown, work_s
from epochwatt.twin.model.power import Load, parts

RUNS = Path("results/runs")


def explain_lines(run: str, root: Path = Path()) -> list[str]:
    """Return what holds a run back, as lines for the terminal.

    Parameters
    ----------
    run : its id, or the beginning of it
    root : the checkout

    Raises
    ------
    EpochwattError : no such run, or ceilings that were never measured; what to type
    """
    name = find_run(run, root)
    epochs = read_rows(root / RUNS / name / "epochs.csv")
    if not epochs:
        raise EpochwattError(f"{name} has no epoch yet")
    columns = columns_of(epochs[0], root)
    simulated = columns["provenance"] == "simulated"
    fits = simulated_fits(columns["device"], root) if simulated else _measured_fits(root)
    explained = explain_run(name, columns, epochs, _work(columns, root), fits)
    return explanation_lines(explained)


def find_run(run: str, root: Path) -> str:
    """Return the id of the one run in results/runs/ that begins so."""
    ids = sorted(path.parent.name for path in (root / RUNS).glob("*/epochs.csv"))
    if run in ids:
        return run
    matches = [name for name in ids if name.startswith(run)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise EpochwattError(
            f"{len(matches)} runs begin with {run!r}",
            allowed=first_of(matches),
            do="type more of the id; `epochwatt plan` lists all",
        )
    raise EpochwattError(
        f"no run {run!r} in {RUNS}",
        allowed=first_of(ids) or "none: nothing was measured or simulated yet",
        do="`epochwatt plan` lists the runs, and `make run` measures them",
    )


def columns_of(row: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return what tells a run's device, mode and workload from others, from a row of its epochs."""
    device = Devices(root).get(row["device"], "the run")
    provenance = PROVENANCE[row["backend"]]
    mode: Mapping[str, Any] = {}
    if row["backend"] == "host":
        mode = {"cores": row["torch_threads"]} if row["torch_threads"] else {}
    elif row["power_mode"] in device.power_modes:
        settings = device.power_modes[row["power_mode"]].model_dump()
        mode = {knob: settings[knob] for knob in KNOBS if settings.get(knob) is not None}
    is_board = device.board and provenance != "simulated"
    return {
        "provenance": provenance,
        "device": device.board if is_board else row["device"],
        "instance": row["instance"],
        **mode,
        "precision": row["precision"],
        "workload": row["model"],
        "task": row["task"],
        "batch_size": row["batch_size"],
    }


def simulated_fits(device: str, root: Path) -> list[FitRow]:
    """Return the rooflines of a simulated board in its named power modes: its own constants.

    Nothing is fitted. Its constant power is that of the mode without work. Its GPU draws power
    while it is busy, whatever it does: at the ceilings, that is so much for an operation or a byte.
    """
    twin = load_twin_with_modes([], root)
    board, p = twin.boards[device], twin.parameters
    modes = dict.fromkeys(tuple(map(float, clocks)) for clocks in twin.modes[device].values())
    return [_simulated_fit(device, board, Clocks(*mode), p) for mode in modes]


def _simulated_fit(device: str, board: Board, clocks: Clocks, p: Values) -> FitRow:
    cores, cpu_mhz, gpu_mhz, emc_mhz = map(float, clocks)
    launch_s = work_s(p["launch_kcycles"], board, cpu_mhz, emc_mhz, p)
    launch_s = float(launch_s * slowdown(MAIN_OTHERS, cores, p))
    idle_w, busy_w = (
        float(parts(board, clocks, Load(p["monitor_cores"] / board.ipc, util, 0.0), p).module_w)
        for util in (0.0, 1.0)
    )
    flops_per_s = 1e6 * gpu_mhz * FLOP_PER_CORE_CLOCK * board.cuda_cores * p["dense_efficiency"]
    bytes_per_s = 1e6 * emc_mhz * board.emc_bytes_per_clock * p["memory_efficiency"]
    return FitRow(
        provenance="simulated",
        device=device,
        cores=int(cores),
        cpu_mhz=cpu_mhz,
        gpu_mhz=gpu_mhz,
        emc_mhz=emc_mhz,
        processor="gpu",
        precision="fp32",
        flops_per_s=float(flops_per_s),
        bytes_per_s=float(bytes_per_s),
        # the GPU's front end fetches one launch after the other, too
        launch_s=max(launch_s, 1e-3 * float(p["front_kcycles"]) / emc_mhz),
        j_per_flop=float((busy_w - idle_w) / flops_per_s),
        j_per_byte=float((busy_w - idle_w) / bytes_per_s + 1e-12 * p["memory_pj_per_byte"]),
        constant_w=idle_w,
        ridge_flop_per_byte=float(flops_per_s / bytes_per_s),
        power_scope="module",
        n=0,
    )


def _measured_fits(root: Path) -> Sequence[FitRow]:
    if not (root / TABLE).exists():
        raise EpochwattError(f"{TABLE} does not exist: no ceilings were measured", do=TO_MEASURE)
    return read_fits(root / TABLE)


def _work(columns: Mapping[str, Any], root: Path) -> KernelCounts:
    """Return the counted kernels of a run's network, task and precision; counted now if need be."""
    model, task, precision = (columns[name] for name in ("workload", "task", "precision"))
    path = root / counts_path(model, task, precision)
    if path.exists():
        return load_kernel_counts(str(path))
    from epochwatt.counting.count_workload import network_factors, write_workload  # imports torch

    rows = read_yaml_rows(WorkloadRow, root / "config/workloads.yaml")
    with tempfile.TemporaryDirectory() as folder:
        write_workload(network_factors(model, rows), f"{folder}/counts.json", task, precision)
        return load_kernel_counts(f"{folder}/counts.json")
