"""Answer `epochwatt profile`: find the board, the workload and what was asked before."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import TWIN, Factors
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.open_data.read import find_tables
from epochwatt.prediction.profile.bench import Bench, replayed, simulated
from epochwatt.prediction.profile.board_bench import Board
from epochwatt.prediction.profile.search import ENDLESS_S, MAX_RISK, Goal, Profile
from epochwatt.prediction.recommend.command import run_prefix
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.published.numbers import DEFAULTS
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.settings import CONFIG
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.other_power import OtherPower
from epochwatt.sweeps.table import load_sweep


@dataclass(frozen=True)
class Request:
    """A question of `epochwatt profile`; None: left open."""

    device: str | None  # a file of config/devices/, or that and one of its instances: `agx-d1`
    model: str | None  # a row of config/workloads.yaml
    max_minutes: float | None = None  # of board time
    max_runs: int | None = None
    max_power_w: float | None = None
    max_time_s: float | None = None  # of the work
    objective: str | None = None  # None: time, or energy where only time is limited
    max_risk: float = MAX_RISK  # highest probability that the next measurement breaks the limit
    idle_w: float = 0.0  # power of a board that idles, until `max_time_s` is over
    rest_w: float = 0.0  # power of what the sensor does not see
    backend: str | None = None  # where modes are run; None: where the device's file says first
    replay: str | None = None  # sweep whose table plays the board
    storage: str | None = None
    workers: int | None = None
    batch_size: int | None = None
    method: str = RECOMMENDED

    @property
    def goal(self) -> Goal:
        """Goal of the search. Raises ConfigError: limits or powers that do not go together."""
        limits_time_alone = self.max_time_s is not None and self.max_power_w is None
        objective = self.objective or ("energy" if limits_time_alone else "time")
        if self.max_minutes is None and self.max_runs is None:
            raise ConfigError("a search without an end", do="add --max-minutes or --max-runs")
        if objective != "energy" and (self.idle_w or self.rest_w):
            raise ConfigError(
                "--idle-w and --rest-w count in an energy", do="add --objective energy"
            )
        if self.idle_w and self.max_time_s is None:
            raise ConfigError("--idle-w counts until a deadline", do="add --max-time-s")
        return Goal(
            objective,
            self.max_power_w,
            ENDLESS_S if self.max_minutes is None else 60 * self.max_minutes,
            self.max_risk,
            self.max_runs,
            self.max_time_s,
            OtherPower(self.rest_w, self.idle_w, self.max_time_s),
        )


def profile_of(
    request: Request, root: Path = Path(), say: Callable[[str], None] = lambda line: None
) -> Profile:
    """Return a profile that has not begun.

    Raises EpochwattError: a name or number that cannot be, or a board that is not at hand.
    """
    goal, method = request.goal, load_method(request.method, root)
    bench = _board(request, root, say) if request.replay is None else _replayed(request, root)
    return Profile(bench, goal, method)


def _replayed(request: Request, root: Path) -> Bench:
    """Return the one table of the sweep that is of the device and workload."""
    if given := [
        f"--{name.replace('_', '-')}"
        for name in ("backend", "storage", "workers")
        if getattr(request, name) is not None
    ]:
        raise ConfigError(f"--replay runs nothing, so {', '.join(given)} cannot be chosen")
    tables = find_tables(str(request.replay), root)
    matching = [
        table
        for table in tables
        if request.device in (None, table.key.device)
        and request.model in (None, table.key.workload)
        and request.batch_size in (None, table.key.batch_size)
    ]
    if len(matching) == 1:
        return replayed(matching[0])
    names = [
        f"--device {t.key.device} --model {t.key.workload!r}"
        + ("" if t.key.batch_size is None else f" --batch-size {t.key.batch_size}")
        for t in matching or tables
    ]
    raise ConfigError(
        f"{len(matching) or 'no'} workloads of the sweep are of this device and model",
        where="--replay",
        allowed=list(dict.fromkeys(names))[:10],
    )


def _board(request: Request, root: Path, say: Callable[[str], None]) -> Bench:
    """Open the board of a request, measured or simulated, with all its modes."""
    if request.device is None or request.model is None:
        raise ConfigError(
            "a device and a network are needed", do="add --device and --model, or --replay SWEEP"
        )
    name, _, instance = request.device.partition("-")
    devices = Devices(root)
    device = devices.get(name, "--device")
    if request.model not in (models := read_rows(WorkloadRow, root / "config/workloads.yaml")):
        raise ConfigError(f"--model is {request.model!r}", allowed=models)
    backend = request.backend or device.backends[0]
    if backend not in device.backends:
        there = [n for n in devices.names() if backend in devices.get(n, "--device").backends]
        raise ConfigError(
            f"--device {name} has no backend {backend}, only {', '.join(device.backends)}",
            where="--backend",
            found=f"devices that have it: {', '.join(there)}",
        )
    if instance and instance not in device.instances:
        raise ConfigError(f"--device names the instance {instance!r}", allowed=device.instances)
    workers = request.workers
    if workers is None:  # threads that train share the CPUs of a host with every worker
        workers = 0 if backend == "host" else DEFAULTS["num_workers"]
    workload: Factors = {
        "model": request.model,
        "batch_size": request.batch_size or DEFAULTS["batch_size"],
        "num_workers": workers,
        **({"instance": instance} if instance else {}),
        **({"storage": request.storage} if request.storage is not None else {}),
    }
    kind = KINDS.get(device.board)
    grid: dict[str, object] = {"name": "all"}
    if kind is not None and "emc" in kind.seen_only:  # the memory clock is left as it is
        grid = {"parts": {"emc_mhz": []}}
    entry = {  # the sweep of all modes, as config/sweeps.yaml would have it
        "title": f"{request.model} in modes that epochwatt profile chose",
        "backend": backend,
        "device": name,
        "workload": workload,
        "grid": grid,
    }
    first = {"backend": backend, "device": name, "instance": "first", "storage": "first"}
    limit = "" if request.max_power_w is None else f"-{request.max_power_w:g}w"
    limit += "" if request.max_time_s is None else f"-{request.max_time_s:g}s"
    question = f"profile-{run_prefix({**first, **workload})}-{request.goal.objective}{limit}"
    question = question.lower().replace("_", ".").replace("+", "")  # the name of its files
    sweep, reason = load_sweep(question, validated(SweepEntry, entry, "epochwatt profile"), root)
    if reason is not None:
        do = "give the command on the board"
        if TWIN in device.backends:
            do += f", or add --backend {TWIN}: its answer is simulated"
        problem = f"--device {request.device} cannot be profiled here: {reason}"
        raise EpochwattError(problem, do=do)
    title = f"{request.model} on {device.title} {sweep.run.factors['instance']}"
    if sweep.is_simulated:
        say(f"simulating {len(sweep.modes):,} modes of {title}")
        bench: Bench = simulated(sweep, root)
    else:
        bench = Board(sweep, entry, read_yaml(root / CONFIG), say)
    bench.title = title
    return bench
