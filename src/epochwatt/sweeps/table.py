"""The sweep table: what config/sweeps.yaml asks for, its modes, and the jobs that measure them.

The id of a sweep carries all that would cause a new measurement, as a run's does, but not the grid:
a larger grid of the same workload continues, and what is measured of it counts.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from epochwatt import columns
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.procedure import procedure_of
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.study.config import Config, FactorValues, PowerMode, Study, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.expand import WORKLOADS_FILE, expanded, machine_settings
from epochwatt.study.place import MEASURED, absence, is_board
from epochwatt.study.runs import TWIN, Run, canonical_json, run_id
from epochwatt.study.selection import STUDIES
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps import grids
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.modes import SweepFacts, SweepMode

SWEEPS = "config/sweeps.yaml"
PUBLIC = "config/sweeps/registry.yaml"  # of sweeps that others measured
TWIN_MODE = PowerMode.model_validate(dict.fromkeys(CLOCKS, 1))  # one that a twin takes
MODE = "sweep"  # stands for the power mode in the factors of a sweep: each mode has its own
OUR_TABLES = ("scores", "sweep_scores")  # in results/sweeps/, beside those of sweeps
# factors that a sweep does not have
NOT_OURS = ("device", "power_mode", "dvfs", "cache_policy", "epochs_per_job", "container")

PROVENANCE: dict[str, Literal["measured", "simulated", "fake"]] = {
    "host": "measured",
    "jetson": "measured",
    "fake": "fake",
    TWIN: "simulated",
}


@dataclass(frozen=True)
class Sweep:
    """One workload on one device, and the modes to measure it in."""

    name: str  # in config/sweeps.yaml, and of the table that comes out
    title: str
    run: Run  # its id, factors, data and machine, as of a run without epochs
    # to measure, in that order; empty: all that is measured, on another machine
    modes: tuple[SweepMode, ...]
    chunk: int
    board: str  # kind of board, empty for a host
    ceilings: bool = False  # whether what the device reaches at best is measured in each mode, too

    @property
    def id(self) -> str:
        """Everything that would cause a new measurement of its modes."""
        return self.run.id

    @property
    def is_simulated(self) -> bool:
        """Whether nothing is measured for it anywhere."""
        return self.run.is_simulated

    @property
    def command(self) -> str:
        """Command of the program that measures: interpreter, folder of the data, machine."""
        words = [*(self.run.python or ["python3"]), "-m", "epochwatt.board.training.sweep"]
        words += ["--data-root", self.run.data_root, "--machine", self.run.machine]
        return shlex.join(words)

    @property
    def settings(self) -> list[dict[str, float]]:
        """Settings of each mode, as the measuring side takes them."""
        return [mode.settings() for mode in self.modes]

    @property
    def facts(self) -> Document:
        """Facts from which a job makes its table (`SweepFacts`), as plain values."""
        f = self.run.factors
        facts = SweepFacts(
            name=self.name,
            id=self.id,
            provenance=PROVENANCE[f["backend"]],
            device=self.board or f["device"],
            instance=f["instance"],
            workload=f["model"],
            task=f.get("task", "train"),
            batch_size=f["batch_size"],
            precision=f.get("precision", "fp32"),
            factors=self.run.canonical,
            modes=[list(mode) for mode in self.modes],
        )
        return asdict(facts)

    @property
    def table(self) -> str:
        """Path of its table of modes."""
        return f"results/sweeps/{self.name}.csv"

    @property
    def digest(self) -> str:
        """Eight hex digits of its modes in their order."""
        text = json.dumps(self.modes, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:8]

    @property
    def modes_file(self) -> str:
        """Path of the list of modes that the measuring side reads."""
        return f"results/sweeps/{self.id}/{self.digest}/modes.json"

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """First and last mode of each job, in order; none where nothing is measured here."""
        if self.is_simulated or not self.run.here:
            return []
        n = len(self.modes)
        return [(k, min(k + self.chunk, n) - 1) for k in range(0, n, self.chunk)]

    @property
    def receipts(self) -> list[str]:
        """Paths of what the jobs leave."""
        folder = str(Path(self.modes_file).parent)
        return [f"{folder}/{first}-{last}.json" for first, last in self.chunks]


@dataclass(frozen=True)
class SweepTable:
    """The selected sweeps by name, in order, and those of other machines with the reason."""

    sweeps: dict[str, Sweep] = field(default_factory=dict)
    elsewhere: list[tuple[Sweep, str]] = field(default_factory=list)
    _others: dict[str, Sweep] = field(default_factory=dict)

    def named(self, name: str, root: Path = Path()) -> Sweep:
        """Return a selected sweep by name, or load and keep one that a study simulates."""
        if name in self.sweeps:
            return self.sweeps[name]
        if name not in self._others:
            self._others[name] = load_sweep(name, _selected([name], root)[name], root)[0]
        return self._others[name]

    def of_id(self, sweep_id: str) -> Sweep:
        """Return a sweep of that id; several differ in their modes only."""
        return next(sweep for sweep in self.sweeps.values() if sweep.id == sweep_id)

    def of_grid(self, sweep_id: str, digest: str) -> Sweep:
        """Return the sweep of an id and of these modes."""
        return next(s for s in self.sweeps.values() if (s.id, s.digest) == (sweep_id, digest))

    def priority(self, sweep_id: str, first: int) -> int:
        """Return the priority of the job that starts at mode `first`: below all runs, in order."""
        n_before = 0
        for sweep in self.sweeps.values():
            if sweep.id == sweep_id:
                return -(n_before + first)
            n_before += len(sweep.modes)
        return -n_before


def sweep_names(root: Path = Path()) -> list[str]:
    """Return the names of config/sweeps.yaml; none where there is no such file."""
    path = root / SWEEPS
    return list(read_rows(SweepEntry, path)) if path.is_file() else []


def load_sweeps(config: Document, root: Path = Path()) -> SweepTable:
    """Load the sweeps that the configuration selects.

    A sweep of another machine is left alone, unless it has records here: then its modes are those.

    Raises ConfigError: a key or value is not allowed.
    """
    wanted = validated(Config, config, "config/config.yaml").sweeps
    table = SweepTable()
    for name, entry in _selected([wanted] if isinstance(wanted, str) else wanted, root).items():
        sweep, reason = load_sweep(name, entry, root)
        if reason is None:
            table.sweeps[name] = sweep
        elif SweepFolder(str(root / MEASURED), sweep.id).measured():
            run = replace(sweep.run, python=(), here=False)
            table.sweeps[name] = replace(sweep, run=run, modes=())
        else:
            table.elsewhere.append((sweep, reason))
    return table


def _selected(names: Sequence[str], root: Path) -> dict[str, SweepEntry]:
    """Read the entries of sweeps by name; a name that ends in .yaml is a file, all of its entries.

    `epochwatt profile` writes such files.
    """
    selected: dict[str, SweepEntry] = {}
    entries: dict[str, SweepEntry] = {}
    for name in names:
        if name.endswith(".yaml"):
            selected |= read_rows(SweepEntry, root / name)
            continue
        entries = entries or read_rows(SweepEntry, root / SWEEPS)
        if name not in entries:
            raise ConfigError(
                f"sweeps names {name!r}",
                where="config/config.yaml",
                allowed=f"{SWEEPS} has: {', '.join(entries)}",
            )
        selected[name] = entries[name]
    return selected


def load_sweep(name: str, entry: SweepEntry, root: Path = Path()) -> tuple[Sweep, str | None]:
    """Build a sweep from its entry, and say why it cannot be measured here.

    The reason is None where it can, or where it is simulated. Raises ConfigError: a key or value of
    the entry is not allowed.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise ConfigError(f"{name!r} is no name of a sweep", where=SWEEPS, allowed="[a-z0-9.-]")
    if name in OUR_TABLES:
        raise ConfigError(
            f"{name!r} cannot be the name of a sweep",
            where=SWEEPS,
            found=f"results/sweeps/{name} is a table of the workflow itself",
            do="give yours another name",
        )
    public = read_yaml(root / PUBLIC) if (root / PUBLIC).is_file() else None  # unchecked: names do
    if isinstance(public, dict) and name in (public.get("sweeps") or ()):
        raise ConfigError(
            f"{name!r} is the name of a public sweep", where=SWEEPS, do="give yours another name"
        )
    devices = Devices(root)
    run = _run(name, entry, devices, read_rows(WorkloadRow, root / WORKLOADS_FILE))
    device = devices.get(entry.device, f"{SWEEPS}: {name}.device")
    reason = None if run.is_simulated else absence(run, device)
    if entry.backend == "host":
        steps = grids.steps_of_host(device.sysroot)
    elif not run.is_simulated and reason is None and is_board(device.board, device.sysroot):
        steps = grids.steps_of_board(device.title, device.sysroot)
    else:
        steps = grids.steps_of_kind(device.board)
    with _about(f"{name}.grid"):
        modes = tuple(grids.grid_modes(entry.grid, device.board, steps))
    if run.is_simulated and any(None in mode for mode in modes):
        raise ConfigError(
            f"{name}.grid has modes that leave a part as it is",
            where=SWEEPS,
            allowed=f"on the twin: modes with all of {', '.join(CLOCKS)}",
        )
    if run.is_simulated and entry.ceilings:
        raise ConfigError(
            f"{name}.ceilings: nothing is measured on the twin",
            where=SWEEPS,
            do="leave `ceilings` out",
        )
    return Sweep(name, entry.title, run, modes, entry.chunk, device.board, entry.ceilings), reason


def _run(name: str, entry: SweepEntry, devices: Devices, workloads: dict[str, WorkloadRow]) -> Run:
    """Build the run of a sweep, without epochs: its id, factors, data and machine.

    Raises ConfigError: a key of its workload is unknown, or a value not allowed.
    """
    is_host = entry.backend == "host"
    not_ours = (*NOT_OURS, "torch_threads") if is_host else NOT_OURS
    allowed = [key for key in FactorValues.model_fields if key not in not_ours]
    for key, value in entry.workload.items():
        if key not in allowed:
            raise ConfigError(
                f"unknown key {key!r} in {name}.workload (value {value!r})",
                where=SWEEPS,
                allowed=allowed,
            )
        if isinstance(value, list | dict):
            raise ConfigError(
                f"{name}.workload.{key} is {value!r}",
                where=SWEEPS,
                allowed="one value: a sweep is of one workload",
            )
    study = Study(
        setup="own",
        title=entry.title,
        backend=entry.backend,
        device=entry.device,
        epochs=1,
        sweep=[entry.workload],
    )
    with _about(f"{name}.workload", instead_of=f"{name}.sweep[0]"):
        if entry.backend == TWIN and entry.device in devices.names():
            # One mode in place of the device's own, so that there is one run; MODE replaces it
            # below. The twin may know none of the device's own.
            devices = devices.with_mode(entry.device, TWIN_MODE)
        (run,) = expanded(name, study, devices, workloads)
    factors = {**run.factors, "power_mode": MODE, "minibatches": entry.minibatches}
    if entry.procedure:
        factors["procedure"] = dict(entry.procedure)
    with _about(f"{name}.procedure"):
        procedure_of(factors)  # raises where it is not allowed
    factors["dvfs"] = "on" if is_host else "off"
    factors.pop("power_mode_settings", None)
    if is_host:  # the number of threads is part of each mode, not of the sweep's id
        factors["torch_threads"] = columns.FACTOR_DEFAULTS["torch_threads"]
    canonical = canonical_json(factors)
    device = devices.get(entry.device, f"{SWEEPS}: {name}.device")
    return replace(
        run,
        id=run_id(factors, canonical),
        factors=factors,
        canonical=canonical,
        epochs=0,
        studies=(),
        machine=json.dumps(machine_settings(factors, device), sort_keys=True),
    )


@contextmanager
def _about(key: str, instead_of: str = "") -> Iterator[None]:
    """Raise ConfigErrors of the block again, as errors about a key of config/sweeps.yaml.

    `instead_of`: text of the problem that the key replaces
    """
    try:
        yield
    except ConfigError as error:
        if error.where not in (None, STUDIES):
            raise
        problem = error.problem.replace(instead_of, key) if instead_of else error.problem
        raise ConfigError(
            problem,
            where=f"{SWEEPS}: {key}" if key not in problem else SWEEPS,
            found=error.found,
            allowed=error.allowed,
            do=error.do,
        ) from None
