"""Receipts of modes that are not in `measured/` any more."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from epochwatt.records.mode_folder import ModeFolders, mode_name
from epochwatt.study.place import MEASURED
from epochwatt.sweeps.modes import SweepMode
from epochwatt.text import first_of


class Swept(Protocol):
    """What was measured mode by mode: a `Sweep`, or the ceilings of a device."""

    @property
    def id(self) -> str:
        """Name of its folder in `measured/`."""

    @property
    def name(self) -> str:
        """Its name for messages."""

    @property
    def modes(self) -> Sequence[SweepMode]:
        """Its modes, in order."""

    @property
    def chunks(self) -> Sequence[tuple[int, int]]:
        """First and last mode of each job."""

    @property
    def receipts(self) -> Sequence[str]:
        """Path of what each job leaves."""


def forget_lost_modes(sweeps: Iterable[Swept]) -> list[str]:
    """Remove the receipts of modes that are gone from `measured/`; return what to say.

    As `epochwatt.study.discard.forget_lost` does for epochs.
    """
    if not Path(MEASURED).is_dir():
        return []
    lines = []
    for sweep in sweeps:
        folder = ModeFolders(MEASURED, sweep.id)
        for (first, last), receipt in zip(sweep.chunks, sweep.receipts, strict=True):
            if not Path(receipt).exists():
                continue
            modes = [mode.settings() for mode in sweep.modes[first : last + 1]]
            if lost := [mode_name(mode) for mode in modes if not folder.has(mode)]:
                Path(receipt).unlink()
                where = f"{MEASURED}/{sweep.id}"
                lines.append(f"{sweep.name}: {first_of(lost)} gone from {where}, measured again")
    return lines
