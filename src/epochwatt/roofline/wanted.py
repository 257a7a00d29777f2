"""List whose ceilings are to be measured, and find the runs that are held against them."""

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.board.records.mode_folder import CeilingFolder
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS, Factors
from epochwatt.epochs.table import EpochRow
from epochwatt.errors import ConfigError
from epochwatt.roofline.points import RunInMode
from epochwatt.study.place import MEASURED
from epochwatt.study.runs import Run
from epochwatt.study.selection import STUDIES
from epochwatt.study.settings import Settings
from epochwatt.sweeps.modes import SweepMode
from epochwatt.sweeps.table import PROVENANCE, SweepTable

_SAME = ("backend", "device", "instance", "dvfs", "board_settings")  # of the factors


@dataclass(frozen=True)
class WantedCeilings:
    """One device, and the modes in which its ceilings are measured by one job."""

    # everything that would cause a new measurement of a mode; which modes there are is not in it
    id: str
    name: str  # for messages
    backend: str  # host, jetson or fake
    device: str  # as in the tables of sweeps
    instance: str
    dvfs: str  # on or off
    precisions: tuple[str, ...]  # of matrix products
    modes: tuple[SweepMode, ...]  # to measure, or measured
    python: tuple[str, ...]  # words that start the interpreter owning torch; empty: ours
    machine: str  # JSON that tells the measuring side about its machine
    node: str  # features of the Slurm node that measures them; empty: none is asked for

    @property
    def settings(self) -> list[dict[str, float]]:
        """Settings of each mode, as the measuring side takes it."""
        return [mode.settings() for mode in self.modes]

    @property
    def digest(self) -> str:
        """Eight hex digits of the modes in their order."""
        return _digest(self.modes)

    @property
    def modes_file(self) -> str:
        """Path of the list of modes that the measuring side reads."""
        return f"results/roofline/{self.id}/{self.digest}/modes.json"

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """First and last mode of its one job."""
        return [(0, len(self.modes) - 1)]

    @property
    def receipts(self) -> list[str]:
        """Path of what the job leaves, alone in a list."""
        return [str(Path(self.modes_file).with_name("receipt.json"))]

    @property
    def command(self) -> str:
        """Command of the program that measures."""
        words = [*(self.python or ["python3"]), "-m", "epochwatt.board.training.ceilings"]
        words += ["--dvfs", self.dvfs, "--precisions", *self.precisions, "--machine", self.machine]
        return shlex.join(words)

    @property
    def place(self) -> Document:
        """Plain values that a job makes its rows of: `epochwatt.roofline.collect.Place`."""
        names = {name: getattr(self, name) for name in ("id", "device", "instance")}
        return {**names, "provenance": PROVENANCE[self.backend], "modes": self.settings}


def wanted_ceilings(settings: Settings, sweeps: SweepTable) -> dict[str, WantedCeilings]:
    """Return id -> ceilings that the selected studies and sweeps with `ceilings: true` ask for.

    Modes of other machines count only where they are measured already.

    Raises ConfigError: a power mode without numbers.
    """
    wanted: dict[str, WantedCeilings] = {}
    for run in ceiling_runs(settings):
        device = settings.devices.of_run(run.factors)
        board = device.board if device else ""
        _add_modes(wanted, run, board or run.factors["device"], [_mode_of(run)])
    for sweep in sweeps.sweeps.values():
        if sweep.ceilings:
            board = sweep.board or str(sweep.run.factors["device"])
            _add_modes(wanted, sweep.run, board, sweep.modes)
    return wanted


def ceiling_runs(settings: Settings) -> list[Run]:
    """Return the measured runs of the studies that ask for ceilings."""
    return [
        run
        for run in settings.table.runs.values()
        if set(run.studies) & settings.ceiling_studies
        and run.factors["backend"] in PROVENANCE
        and not run.is_simulated
        and not run.factors["imported"]
    ]


def run_in_mode(run: str, factors: EpochRow, board: str, mode: Factors) -> RunInMode:
    """Return workload and mode of a run.

    `factors`: of the run, or a row of its epochs
    `board`: kind of its device; empty: it is none
    `mode`: what its power mode sets
    """
    provenance = PROVENANCE[factors["backend"]]
    return RunInMode(
        run=run,
        provenance=provenance,
        device=board if board and provenance != "simulated" else factors["device"],
        instance=factors["instance"],
        precision=factors["precision"],
        workload=factors["model"],
        task=factors["task"],
        batch_size=factors["batch_size"],
        **_known_parts(factors, mode),  # type: ignore[arg-type]
    )


def _known_parts(factors: EpochRow, mode: Factors) -> dict[str, float]:
    """Return the known cores and clocks of a run's mode; on a host torch's threads as cores."""
    if factors["backend"] == "host":
        threads = factors["torch_threads"]
        return {"cores": threads} if threads else {}
    return {part: mode[part] for part in CLOCKS if mode.get(part) is not None}


def point_run(run: Run, settings: Settings) -> Document:
    """Return what a job has to know of a run to place or explain it: `RunInMode`, plain values."""
    device = settings.devices.of_run(run.factors)
    board = device.board if device else run.factors["device"]  # imported: it may be a kind
    mode = run.factors.get("power_mode_settings", {})
    placed = run_in_mode(run.id, run.factors, board, mode)
    return asdict(replace(placed, epochs=run.epochs_csv, counts=run.counts))


def _mode_of(run: Run) -> SweepMode:
    """Return the mode that a run is measured in; ConfigError: its power mode names no clock."""
    parts = _known_parts(run.factors, run.factors.get("power_mode_settings", {}))
    if run.factors["backend"] != "host" and not parts:
        raise ConfigError(
            f"ceilings of power mode {run.factors['power_mode']!r}: it names no clock",
            where=f"config/devices/{run.factors['device']}.yaml",
            allowed=f"a mode with numbers: {', '.join(CLOCKS)}",
            do=f"give it numbers, or leave `ceilings` out in {STUDIES}",
        )
    return SweepMode(**parts)  # type: ignore[arg-type]


def _add_modes(
    wanted: dict[str, WantedCeilings], run: Run, device: str, modes: Iterable[SweepMode]
) -> None:
    """Add modes of a device to `wanted`, in place; what several studies want is there once."""
    f = run.factors
    precisions = tuple(dict.fromkeys(["fp32", f.get("precision", "fp32")]))
    identity = {key: f[key] for key in _SAME if key in f} | {"precisions": precisions}
    where = [f["backend"]] if f["backend"] == f["device"] else [f["backend"], f["device"]]
    words = ["ceilings", *where, f["instance"], *precisions]
    words += [f"p{columns.PROTOCOL}", _digest(identity)]
    new = WantedCeilings(
        id="-".join(words).lower(),
        name=f"ceilings of {f['device']}/{f['instance']}",
        backend=f["backend"],
        device=device,
        instance=f["instance"],
        dvfs=f["dvfs"],
        precisions=precisions,
        modes=(),
        python=run.python,
        machine=run.machine,
        node=run.node,
    )
    folder = CeilingFolder(MEASURED, new.id)
    reachable = [mode for mode in modes if run.here or folder.has(mode.settings())]
    if reachable:
        earlier = wanted.get(new.id, new)
        merged = tuple(dict.fromkeys([*earlier.modes, *reachable]))
        wanted[new.id] = replace(earlier, modes=merged)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:8]
