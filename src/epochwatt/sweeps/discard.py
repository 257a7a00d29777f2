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
    """Move measured modes of a sweep to the trash, and delete the receipts that name them.

    Returns the folder in the trash; empty where `name` is no sweep. Raises EpochwattError: nothing
    is measured of the sweep, or it has no such mode.

    `name`: of the sweep in config/sweeps.yaml, or its id; of one mode `SWEEP/MODE`
    """
    sweep, _, mode = name.partition("/")
    if sweep in sweep_names(root):
        table = load_sweeps({"studies": "auto", "sweeps": [sweep]}, root)
        selected = [*table.sweeps.values(), *(other for other, _ in table.elsewhere)][0]
        if selected.is_simulated:
            raise EpochwattError(
                f"{sweep} is simulated: nothing is measured of it",
                do=f"remove {selected.table}, and it is simulated again",
            )
        sweep_id = selected.id
    elif sweep[:1] != "." and sweep in {path.name for path in Path(measured).glob("*")}:
        sweep_id = sweep
    else:
        return []
    modes = SweepFolder(measured, sweep_id).measured()
    if not modes:
        if sweep_id == sweep:  # the id of a run
            return []
        raise EpochwattError(f"nothing is measured of sweep {sweep!r}", where=measured)
    if mode and mode not in modes:
        raise EpochwattError(f"mode {mode!r} of {sweep} is not measured", allowed=first_of(modes))
    discarded = {mode} if mode else set(modes)
    for listed in (TABLES / sweep_id).glob("*/modes.json"):
        names = [mode_name(settings) for settings in json.loads(listed.read_text("utf-8"))]
        for receipt in listed.parent.glob("[0-9]*-[0-9]*.json"):
            first, last = map(int, receipt.stem.split("-"))
            if discarded.intersection(names[first : last + 1]):
                receipt.unlink()
    trash = Path(new_trash(measured, sweep_id), mode)
    trash.parent.mkdir(parents=True, exist_ok=True)
    Path(measured, sweep_id, mode).rename(trash)
    return [str(trash)]


class _Swept(Protocol):
    """Measurements mode by mode: of a `Sweep`, or the ceilings of a device."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def modes(self) -> Sequence[SweepMode]: ...
    @property
    def chunks(self) -> Sequence[tuple[int, int]]: ...
    @property
    def receipts(self) -> Sequence[str]: ...


def forget_lost_modes(sweeps: Iterable[_Swept]) -> list[str]:
    """Delete the receipts of modes that are gone from `measured/`; return lines that say so.

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
