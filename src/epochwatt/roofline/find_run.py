"""Find the run that `epochwatt explain` explains, its counted kernels and rooflines.

Apart from the explanation, which the workflow imports: this reads the configuration and may count.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.table import EpochRow, read_rows
from epochwatt.errors import EpochwattError
from epochwatt.roofline.explain import RUNS, TABLE, TO_MEASURE
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.points import RunInMode
from epochwatt.roofline.wanted import run_in_mode
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices
from epochwatt.study.devices import read_rows as read_yaml_rows
from epochwatt.study.runs import counts_path
from epochwatt.text import first_of


def find_run(run: str, root: Path = Path()) -> tuple[RunInMode, Sequence[EpochRow]]:
    """Return the one run in results/runs/ whose id begins so, and the rows of its epochs.

    Raises EpochwattError: there is none, there are several, or it has no epoch yet.
    """
    ids = sorted(path.parent.name for path in (root / RUNS).glob("*/epochs.csv"))
    matches = [run] if run in ids else [name for name in ids if name.startswith(run)]
    if not matches:
        raise EpochwattError(
            f"no run {run!r} in {RUNS}",
            allowed=first_of(ids) or "none: nothing was measured or simulated yet",
            do="`epochwatt plan` lists the runs, and `make run` measures them",
        )
    if len(matches) > 1:
        raise EpochwattError(
            f"{len(matches)} runs begin with {run!r}",
            allowed=first_of(matches),
            do="type more of the id; `epochwatt plan` lists all",
        )
    epochs = read_rows(root / RUNS / matches[0] / "epochs.csv")
    if not epochs:
        raise EpochwattError(f"{matches[0]} has no epoch yet")
    first = epochs[0]
    device = Devices(root).of_run(first)
    mode = device.power_modes.get(first["power_mode"]) if device else None
    board = device.board if device else first["device"]  # imported: it may be a kind
    return run_in_mode(matches[0], first, board, mode.model_dump() if mode else {}), epochs


def measured_fits(root: Path = Path()) -> list[FitRow]:
    """Return the rooflines of measured ceilings; EpochwattError: none were measured."""
    if not (root / TABLE).exists():
        raise EpochwattError(f"{TABLE} does not exist: no ceilings were measured", do=TO_MEASURE)
    return read_fits(root / TABLE)


def find_counts(run: RunInMode, root: Path = Path()) -> KernelCounts:
    """Return the kernels of a run's network, task and precision, counted now if need be."""
    path = root / counts_path(run.workload, run.task, run.precision)
    if path.exists():
        return load_kernel_counts(str(path))
    from epochwatt.counting.count_workload import network_factors, write_workload  # imports torch

    rows = read_yaml_rows(WorkloadRow, root / "config/workloads.yaml")
    with tempfile.TemporaryDirectory() as folder:
        network = network_factors(run.workload, rows)
        write_workload(network, f"{folder}/counts.json", run.task, run.precision)
        return load_kernel_counts(f"{folder}/counts.json")
