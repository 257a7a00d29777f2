"""Answer `epochwatt profile`: find the board, the workload and what was asked before."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochwatt.columns import TWIN, Factors
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.open_data.read import find_tables
from epochwatt.prediction.profile.bench import Bench
from epochwatt.prediction.profile.board import Board
from epochwatt.prediction.profile.replay import Replayed, Simulated, table_to_replay
from epochwatt.prediction.profile.search import Goal, Profile
from epochwatt.prediction.recommend.command import run_prefix
from epochwatt.prediction.registry import load_method
from epochwatt.published.numbers import DEFAULTS
from epochwatt.study.config import Device, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.settings import CONFIG
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.table import load_sweep

METHOD = "utilisation"  # where --method is not given: docs/how-to/profile-a-board.md has the scores


@dataclass(frozen=True)
class Request:
    """A question of `epochwatt profile`; None: left open."""

    device: str | None  # a file of config/devices/, or that and one of its instances: `agx-d1`
    model: str | None  # a row of config/workloads.yaml
    max_minutes: float  # of board time
    max_power_w: float | None = None
    objective: str = "time"
    backend: str | None = None  # where modes are run; None: where the device's file says first
    replay: str | None = None  # sweep whose table plays the board
    storage: str | None = None
    workers: int | None = None
    batch_size: int | None = None
    method: str = METHOD

    @property
    def goal(self) -> Goal:
        """Goal of the search."""
        return Goal(self.objective, self.max_power_w, 60 * self.max_minutes)


def profile_of(
    request: Request, root: Path = Path(), say: Callable[[str], None] = lambda line: None
) -> Profile:
    """Return a profile that has not begun.

    Raises EpochwattError: a name or number that cannot be, or a board that is not at hand.
    """
    method = load_method(request.method, root)
    if request.replay is not None:
        bench: Bench = _replayed(request, root)
    else:
        bench = _board(request, root, say)
    return Profile(bench, request.goal, method)


def _replayed(request: Request, root: Path) -> Replayed:
    if given := [
        f"--{name.replace('_', '-')}"
        for name in ("backend", "storage", "workers")
        if getattr(request, name) is not None
    ]:
        raise ConfigError(f"--replay runs nothing, so {', '.join(given)} cannot be chosen")
    tables = find_tables(str(request.replay), root)
    table = table_to_replay(tables, request.device, request.model, request.batch_size)
    return Replayed(table)


def _board(request: Request, root: Path, say: Callable[[str], None]) -> Bench:
    if request.device is None or request.model is None:
        raise ConfigError(
            "a device and a network are needed", do="add --device and --model, or --replay SWEEP"
        )
    name, _, instance = request.device.partition("-")
    device = Devices(root).get(name, "--device")
    if request.model not in (models := read_rows(WorkloadRow, root / "config/workloads.yaml")):
        raise ConfigError(f"--model is {request.model!r}", allowed=models)
    backend = request.backend or device.backends[0]
    if backend not in device.backends:
        devices = Devices(root)
        there = [n for n in devices.names() if backend in devices.get(n, "--device").backends]
        raise ConfigError(
            f"--device {name} has no backend {backend}, only {', '.join(device.backends)}",
            where="--backend",
            found=f"devices that have it: {', '.join(there)}",
        )
    entry = _entry(request, name, instance, backend, device)
    question = _question(request, entry, backend)
    sweep, reason = load_sweep(question, validated(SweepEntry, entry, "epochwatt profile"), root)
    if reason is not None:
        raise _not_here(reason, request, device)
    title = f"{request.model} on {device.title} {sweep.run.factors['instance']}"
    if sweep.is_simulated:
        say(f"simulating {len(sweep.modes):,} modes of {title}")
        bench: Bench = Simulated(sweep, root)
    else:
        bench = Board(sweep, entry, read_yaml(root / CONFIG), say)
    bench.title = title
    return bench


def _entry(request: Request, name: str, instance: str, backend: str, device: Device) -> Factors:
    """Return the sweep of all modes, as config/sweeps.yaml would have it."""
    workload: Factors = {
        "model": request.model,
        "batch_size": request.batch_size or DEFAULTS["batch_size"],
        "num_workers": DEFAULTS["num_workers"] if request.workers is None else request.workers,
    }
    if backend == "host" and request.workers is None:
        workload["num_workers"] = 0  # threads that train share the CPUs with every worker
    if instance:
        if instance not in device.instances:
            raise ConfigError(f"--device names the instance {instance!r}", allowed=device.instances)
        workload["instance"] = instance
    if request.storage is not None:
        workload["storage"] = request.storage
    return {
        "title": f"{request.model} in modes that epochwatt profile chose",
        "backend": backend,
        "device": name,
        "workload": workload,
        "grid": {"name": "all"},
    }


def _question(request: Request, entry: Factors, backend: str) -> str:
    """Return the name of a question, which its files are called by."""
    workload = entry["workload"]
    place = {
        "backend": backend,
        "device": entry["device"],
        "instance": workload.get("instance", "first"),
        "model": request.model,
        "storage": workload.get("storage", "first"),
    }
    limit = "" if request.max_power_w is None else f"-{request.max_power_w:g}w"
    name = f"profile-{run_prefix({**place, **workload})}-{request.objective}{limit}"
    return name.lower().replace("_", ".").replace("+", "")


def _not_here(reason: str, request: Request, device: Device) -> EpochwattError:
    do = "give the command on the board"
    if TWIN in device.backends:
        do += f", or add --backend {TWIN}: its answer is simulated"
    return EpochwattError(f"--device {request.device} cannot be profiled here: {reason}", do=do)
