"""Find the run that `epochwatt explain` explains, its counted kernels and rooflines.

Apart from the explanation, which the workflow imports: this reads the configuration and may count.
"""

import platform
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epochwatt.board.records import files
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.table import EpochRow, read_rows
from epochwatt.errors import EpochwattError
from epochwatt.project import is_studied_here, start_command
from epochwatt.roofline.explain import RUNS, TABLE, TO_MEASURE
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.points import RunInMode
from epochwatt.roofline.wanted import run_in_mode
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices
from epochwatt.study.devices import read_rows as read_yaml_rows
from epochwatt.study.imported import COUNTS, find_own_runs, write_own_tables
from epochwatt.study.runs import MEASURED, counts_path
from epochwatt.text import first_of

MOST = 12  # runs that a message lists
HERE = "local"  # how the workflow calls this machine (config/devices/host.yaml)


def find_run(run: str, root: Path = Path()) -> tuple[RunInMode, Sequence[EpochRow]]:
    """Find the one run whose id begins with `run`; return it and the rows of its epochs.

    Looks in results/runs/, then for runs of `EpochMonitor` (`find_own_runs`), without a checkout.

    Raises EpochwattError: there is none, there are several, or it has no epoch yet.
    """
    ids = sorted(path.parent.name for path in (root / RUNS).glob("*/epochs.csv"))
    matches = [run] if run in ids else [name for name in ids if name.startswith(run)]
    folder, own = (root / MEASURED, {}) if matches else find_own_runs(run)
    matches = matches or [name for name in own if ".rank" not in name]
    if not matches:
        candidates = [*ids, *(name for name in find_own_runs(MEASURED)[1] if ".rank" not in name)]
        do = "name one of them, or the folder of a run of EpochMonitor"
        if is_studied_here():
            do = f"`epochwatt plan --runs` lists the runs, and `{start_command()}` measures them"
        raise EpochwattError(
            f"no run {run!r} was measured or simulated here",
            allowed=first_of(candidates, MOST) or "none: nothing was measured or simulated yet",
            do=do,
        )
    if len(matches) > 1:
        raise EpochwattError(
            f"{len(matches)} runs begin with {run!r}",
            allowed=first_of(matches, MOST),
            do="type more of the id",
        )
    with tempfile.TemporaryDirectory() as scratch:
        path: str | Path = root / RUNS / matches[0] / "epochs.csv"
        if own:
            (path,) = write_own_tables(folder, [own[matches[0]]], Path(scratch))
        epochs = read_rows(path)
    if not epochs:
        raise EpochwattError(f"{matches[0]} has no epoch yet")
    first = epochs[0]
    if first["imported"]:
        return _own_run(folder, matches[0], epochs)
    device = Devices(root).of_run(first)
    mode = device.power_modes.get(first["power_mode"]) if device else None
    board = device.board if device else first["device"]  # imported: it may be a kind
    return run_in_mode(matches[0], first, board, mode.model_dump() if mode else {}), epochs


def _own_run(
    folder: Path, run: str, rows: Sequence[EpochRow]
) -> tuple[RunInMode, Sequence[EpochRow]]:
    """Return a run of a user's own loop, and its rows completed from record and counts."""
    first, counts = rows[0], folder / run / COUNTS
    batch_size = first["batch_size"]
    if counts.is_file() and not batch_size:
        batch_size = files.read_json(str(counts)).get("batch_size")
    meta = RunFolder(str(folder), run).read(first["epoch"]).meta
    is_here = first["backend"] == "host" and first["instance"] == platform.node()
    completed = {
        "torch_threads": meta.get("torch_threads_used"),
        "instance": HERE if is_here else first["instance"],
        "batch_size": batch_size or 0,
    }
    epochs = [{**row, **completed} for row in rows]
    found = run_in_mode(run, epochs[0], "", {})
    return replace(found, counts=str(counts) if counts.is_file() else ""), epochs


def measured_fits(root: Path = Path()) -> list[FitRow]:
    """Return the rooflines of measured ceilings; EpochwattError: none were measured."""
    if not (root / TABLE).exists():
        raise EpochwattError(f"{TABLE} does not exist: no ceilings were measured", do=TO_MEASURE)
    return read_fits(root / TABLE)


def find_counts(run: RunInMode, is_own: bool, root: Path = Path()) -> KernelCounts:
    """Return the kernels of a run's network, task and precision, counted now if need be.

    Raises EpochwattError: it is a run of one's own loop, and its network was not counted.
    """
    path = Path(run.counts or root / counts_path(run.workload, run.task, run.precision))
    if path.exists():
        return load_kernel_counts(str(path))
    if is_own:
        raise EpochwattError(
            "its network was not counted",
            do="call `monitor.count(model, minibatch)` of EpochMonitor in the script",
        )
    from epochwatt.counting.count_workload import network_factors, write_workload  # imports torch

    rows = read_yaml_rows(WorkloadRow, root / "config/workloads.yaml")
    with tempfile.TemporaryDirectory() as folder:
        network = network_factors(run.workload, rows)
        write_workload(network, f"{folder}/counts.json", run.task, run.precision)
        return load_kernel_counts(f"{folder}/counts.json")
