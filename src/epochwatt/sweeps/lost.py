"""Receipts of modes that are not in `measured/` any more."""

from collections.abc import Iterable
from pathlib import Path

from epochwatt.records.mode_folder import SweepFolder, mode_name
from epochwatt.study.place import MEASURED
from epochwatt.sweeps.table import Sweep
from epochwatt.text import first_of


def forget_lost_modes(sweeps: Iterable[Sweep]) -> list[str]:
    """Remove the receipts of modes that are gone from `measured/`; return what to say.

    As `epochwatt.study.discard.forget_lost` does for epochs.
    """
    if not Path(MEASURED).is_dir():
        return []
    lines = []
    for sweep in sweeps:
        folder = SweepFolder(MEASURED, sweep.id)
        for (first, last), receipt in zip(sweep.chunks, sweep.receipts, strict=True):
            if not Path(receipt).exists():
                continue
            modes = [mode.settings() for mode in sweep.modes[first : last + 1]]
            if lost := [mode_name(mode) for mode in modes if not folder.has(mode)]:
                Path(receipt).unlink()
                where = f"{MEASURED}/{sweep.id}"
                lines.append(f"{sweep.name}: {first_of(lost)} gone from {where}, measured again")
    return lines
