"""Discard measured epochs, so that they are measured again: nothing else does that."""

import re
from collections.abc import Iterable
from pathlib import Path

from epochwatt.board.records.run_folder import MeasuredFolder, RunFolder
from epochwatt.errors import EpochwattError
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import Run
from epochwatt.text import first_of

RUNS = Path("results/runs")
SIMULATED = Path("results/simulated")


def discard(measured: str, run: str, epoch: int | None = None) -> list[str]:
    """Move a run's epoch (None: all; an idle power, too) to the trash and remove its receipts.

    Returns the paths it was moved to. Raises EpochwattError: nothing is measured of that name.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", run):  # a path would lead out of the folder
        raise EpochwattError(
            f"{run!r} is not the id of a run",
            allowed="small letters, digits, dots and dashes",
            do=f"name a folder in {measured}/",
        )
    if (Path(measured) / run / "idle").is_dir():
        Path(f"results/idle/{run}.json").unlink(missing_ok=True)
        return MeasuredFolder(measured, run).discard()
    if (SIMULATED / run).is_dir() or (SIMULATED / "idle" / run).is_dir():
        raise EpochwattError(
            f"{run} is simulated: nothing is measured of it",
            do=f"remove it from {SIMULATED}, and it is simulated again",
        )
    folder = RunFolder(measured, run)
    measured_epochs = folder.measured()
    if not measured_epochs:
        runs = sorted(p.name for p in Path(measured).glob("[!.]*") if p.is_dir())
        raise EpochwattError(
            f"nothing is measured of run {run!r}", where=measured, allowed=first_of(runs) or "none"
        )
    if epoch is not None and epoch not in measured_epochs:
        raise EpochwattError(f"epoch {epoch} of {run} is not measured", allowed=measured_epochs)
    # receipts first: one that outlives its epoch would say that it is measured
    for receipt in sorted((RUNS / run).glob("part-*.json")):
        first, last = map(int, receipt.stem.split("-")[1:])
        if epoch is None or first <= epoch <= last:
            receipt.unlink()
    return folder.discard(epoch)


def forget_lost(runs: Iterable[Run]) -> list[str]:
    """Remove the receipts of epochs that `measured/` no longer has; return a line for each.

    Without it Snakemake, which sees receipts only, would not measure epochs again whose folders
    were taken away. Without any `measured/` the results are a copy, and nothing is removed.
    """
    if not Path(MEASURED).is_dir():
        return []
    lines = []
    for run in runs:
        written = {path.name for path in (RUNS / run.id).glob("part-*.json")}
        if not run.parts or not run.here or not written:
            continue
        present = set(RunFolder(MEASURED, run.id).measured())
        for (first, last), receipt in zip(run.parts, run.receipts, strict=True):
            lost = sorted(set(range(first, last + 1)) - present)
            if lost and Path(receipt).name in written:
                Path(receipt).unlink()
                lines.append(
                    f"{run.id}: epoch {first_of([str(k) for k in lost])} is gone from "
                    f"{MEASURED}/ and is measured again"
                )
    return lines
