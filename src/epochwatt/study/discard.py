"""Taking a measurement back: the only way by which a finished epoch is measured again."""

import time
from pathlib import Path

from epochwatt.errors import EpochwattError
from epochwatt.records.run_folder import RunFolder
from epochwatt.text import first_of

RUNS = Path("results/runs")
SIMULATED = Path("results/simulated")


def discard(measured: str, run: str, epoch: int | None) -> list[str]:
    """Move a run's epoch (all of them for None) to the trash, with the receipts that name it.

    Returns the paths it was moved to. Raises EpochwattError when there is nothing of that name.
    """
    if (Path(measured) / run / "idle").is_dir():
        return _discard_idle(Path(measured), run)
    if (SIMULATED / run).is_dir() or (SIMULATED / "idle" / run).is_dir():
        raise EpochwattError(
            f"{run} is simulated: nothing is measured of it\n"
            "  it is simulated again when anything that it rests on changes, or when it is gone "
            f"from {SIMULATED}"
        )
    folder = RunFolder(measured, run)
    there = folder.measured()
    if not there:
        known = sorted(p.name for p in Path(measured).glob("[!.]*") if p.is_dir())
        raise EpochwattError(
            f"nothing is measured of run {run!r}\n  runs in {measured}: "
            + (first_of(known) or "none")
        )
    if epoch is not None and epoch not in there:
        raise EpochwattError(
            f"epoch {epoch} of {run} is not measured\n"
            f"  measured epochs: {', '.join(map(str, there))}"
        )
    # receipts first: one that outlives its epoch would say that it is measured
    for receipt in sorted((RUNS / run).glob("part-*.json")):
        first, last = map(int, receipt.stem.split("-")[1:])
        if epoch is None or first <= epoch <= last:
            receipt.unlink()
    return folder.discard(epoch)


def _discard_idle(measured: Path, idle: str) -> list[str]:
    """Move the idle power of a board in a mode to the trash, with its receipt."""
    Path(f"results/idle/{idle}.json").unlink(missing_ok=True)
    trash = measured / ".trash" / time.strftime("%Y%m%dT%H%M%S") / idle
    trash.parent.mkdir(parents=True, exist_ok=True)
    (measured / idle).rename(trash)
    return [str(trash)]
