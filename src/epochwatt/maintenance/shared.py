"""Discard what was measured while others used this machine, so that it is measured again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import open_machine
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.columns import SHARED_FLAGS
from epochwatt.epochs.board_flags import BUSY_PCT
from epochwatt.epochs.table import read_rows
from epochwatt.roofline.wanted import WantedCeilings, ceiling_runs, wanted_ceilings
from epochwatt.study.discard import discard
from epochwatt.study.place import MEASURED
from epochwatt.study.plan import JOB_S, duration
from epochwatt.study.runs import Run
from epochwatt.study.settings import CONFIG, load_settings
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.discard import discard_modes
from epochwatt.sweeps.table import load_sweeps
from epochwatt.tables import read_cells
from epochwatt.text import counted

LOOK_S = 1.0  # how long the load is looked at
CEILINGS = Path("results/roofline/ceilings.csv")


class Shared(NamedTuple):
    """Something measured here while others used the machine."""

    id: str  # its folder in measured/
    is_run: bool  # a run; else ceilings
    seconds: float  # that it takes to measure again
    machine: str  # JSON that tells the measuring side about its machine


def discard_shared(
    within_s: float | None = None, on_wait: Callable[[str], None] | None = None
) -> list[str]:
    """Discard what was measured here while others used the machine; return messages for the user.

    `within_s`: discard the shortest first, as much as is measured again within that time, and only
    while nobody uses the machine; None: discard all of it
    `on_wait`: called with the holder of the machine's lock before it is waited for
    """
    shared = sorted(find_shared(), key=lambda entry: entry.seconds)
    if not shared:
        return (
            [] if within_s is not None else ["nothing was measured while others used the machine"]
        )
    chosen, left_s = [], float("inf") if within_s is None else within_s
    for entry in shared:
        if entry.seconds <= left_s:
            chosen.append(entry)
            left_s -= entry.seconds
    names = _shared_were(shared)
    if within_s is not None:
        busy_pct = open_machine(json.loads(shared[0].machine)).busy_pct(LOOK_S)
        if busy_pct is None or busy_pct > BUSY_PCT:
            return [
                f"{names} measured while others used the machine, which they still do: measured "
                "again once it is quiet, or after epochwatt discard --shared"
            ]
    lines = []
    with machine_lock().acquire({"discarding": names}, on_wait=on_wait):
        for entry in chosen:
            away = discard if entry.is_run else discard_modes
            away(MEASURED, entry.id)
            lines.append(
                f"{entry.id}: measured while others used the machine, and now again; what there "
                f"was is in {MEASURED}/.trash"
            )
    if len(chosen) < len(shared):
        rest = [entry for entry in shared if entry not in chosen]
        took = duration(sum(entry.seconds for entry in rest))
        lines.append(
            f"{_shared_were(rest)} measured while others used the machine; to measure again, "
            f"which takes about {took}: epochwatt discard --shared"
        )
    return lines


def _shared_were(shared: list[Shared]) -> str:
    """Return the subject of a sentence, such as `2 runs and ceilings were`."""
    n_runs = sum(entry.is_run for entry in shared)
    parts = [counted(n_runs, "runs")] if n_runs else []
    parts += ["ceilings"] if n_runs < len(shared) else []
    return f"{' and '.join(parts)} {'was' if parts == ['1 run'] else 'were'}"


def find_shared() -> list[Shared]:
    """Find what the selected studies measured here while others used the machine."""
    config = read_yaml(Path(CONFIG))
    settings = load_settings(config)
    result = []
    for run in settings.table.runs.values():
        is_here = run.here and not run.node and run.parts
        if is_here and Path(run.epochs_csv).exists() and (seconds := _seconds(run)):
            result.append(Shared(run.id, True, seconds, run.machine))
    here = {
        (run.factors["backend"], run.factors["instance"])
        for run in ceiling_runs(settings)
        if run.here and not run.node
    }
    for job in wanted_ceilings(settings, load_sweeps(config)).values():
        if (job.backend, job.instance) in here and _is_shared(job):
            folder = CeilingFolder(MEASURED, job.id)
            metas = [folder.read(mode).meta for mode in job.settings if folder.has(mode)]
            if metas:
                took_s = sum(meta["t_end_mono_s"] - meta["t_start_mono_s"] for meta in metas)
                result.append(Shared(job.id, False, took_s + JOB_S, job.machine))
    return result


def _seconds(run: Run) -> float:
    """Return how long a run takes to measure again, s; 0: nobody else used the machine."""
    rows = read_rows(run.epochs_csv)
    if not any(SHARED_FLAGS & {*row["flags"].split()} for row in rows):
        return 0.0
    return sum(row["e2e_s"] for row in rows) + JOB_S * len(run.parts)


def _is_shared(job: WantedCeilings) -> bool:
    if not CEILINGS.exists():
        return False
    return any(
        (row["device"], row["instance"]) == (job.device, job.instance)
        and SHARED_FLAGS & {*row["flags"].split()}
        for row in read_cells(CEILINGS)
    )
