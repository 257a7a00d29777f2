"""Discard measured modes of a sweep, and forget the receipts of those that are gone."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from epochwatt.board.records.mode_folder import ModeFolders, SweepFolder, mode_name
from epochwatt.board.records.run_folder import new_trash
from epochwatt.errors import EpochwattError
from epochwatt.study.place import MEASURED
from epochwatt.sweeps.modes import SweepMode
from epochwatt.sweeps.table import load_sweeps, sweep_names
from epochwatt.text import first_of

TABLES = Path("results/sweeps")


def discard_modes(measured: str, name: str, root: Path = Path()) -> list[str]:
    """Move the modes of a sweep to the trash, with the receipts that name them.

    Raises EpochwattError: nothing is measured of the sweep, or it has no such mode.

    Parameters
    ----------
    name : of the sweep in config/sweeps.yaml, or its id; one mode only: `SWEEP/MODE`
    root : the checkout

    Returns
    -------
    the paths they were moved to; none where there is no such sweep
    """
    sweep, _, mode = name.partition("/")
    sweep_id = _id_of(sweep, measured, root)
    if not sweep_id:
        return []
    there = SweepFolder(measured, sweep_id).measured()
    if not there:
        raise EpochwattError(f"nothing is measured of sweep {sweep!r}", where=measured)
    if mode and mode not in there:
        raise EpochwattError(f"mode {mode!r} of {sweep} is not measured", allowed=first_of(there))
    _forget_receipts(sweep_id, {mode} if mode else set(there))
    source = Path(measured, sweep_id, mode)
    trash = Path(new_trash(measured, sweep_id), mode)
    trash.parent.mkdir(parents=True, exist_ok=True)
    source.rename(trash)
    return [str(trash)]


def _id_of(sweep: str, measured: str, root: Path) -> str:
    """Return the id of a sweep; empty: there is none."""
    if sweep in sweep_names(root):
        table = load_sweeps({"studies": "auto", "sweeps": [sweep]}, root)
        selected = [*table.sweeps.values(), *(one for one, _ in table.elsewhere)][0]
        if selected.is_simulated:
            raise EpochwattError(
                f"{sweep} is simulated: nothing is measured of it",
                do=f"remove {selected.table}, and it is simulated again",
            )
        return selected.id
    is_id = "." not in sweep[:1] and sweep in {p.name for p in Path(measured).glob("*")}
    return sweep if is_id and SweepFolder(measured, sweep).measured() else ""


def _forget_receipts(sweep_id: str, gone: set[str]) -> None:
    """Remove the receipts of jobs that measured a mode which is gone."""
    for listed in (TABLES / sweep_id).glob("*/modes.json"):
        names = [mode_name(mode) for mode in json.loads(listed.read_text(encoding="utf-8"))]
        for receipt in listed.parent.glob("[0-9]*-[0-9]*.json"):
            first, last = map(int, receipt.stem.split("-"))
            if gone.intersection(names[first : last + 1]):
                receipt.unlink()


class Swept(Protocol):
    """Measurements mode by mode: of a `Sweep`, or the ceilings of a device."""

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
