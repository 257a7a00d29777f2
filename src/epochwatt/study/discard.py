"""Taking a measurement back: the only way by which a finished epoch is measured again."""

import json
from pathlib import Path

from epochwatt.errors import EpochwattError
from epochwatt.records.run_folder import RunFolder

RUNS = Path("results/runs")


def discard(measured: str, run: str, epoch: int | None) -> list[str]:
    """Move a run's epoch (all of them for None) to the trash, with the receipts that name it.

    Returns the paths it was moved to. Raises EpochwattError when there is nothing of that name.
    """
    folder = RunFolder(measured, run)
    there = folder.measured()
    if not there:
        known = sorted(p.name for p in Path(measured).glob("[!.]*") if p.is_dir())
        raise EpochwattError(
            f"nothing is measured of run {run!r}\n  measured runs: {', '.join(known) or 'none'}"
        )
    if epoch is not None and epoch not in there:
        raise EpochwattError(
            f"epoch {epoch} of {run} is not measured\n"
            f"  measured epochs: {', '.join(map(str, there))}"
        )
    moved = folder.discard(epoch)
    for receipt in sorted((RUNS / run).glob("part-*.json")):
        named = [entry["epoch"] for entry in json.loads(receipt.read_text("utf-8"))["epochs"]]
        if epoch is None or epoch in named:
            receipt.unlink()
    return moved
