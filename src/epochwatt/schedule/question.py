"""`epochwatt schedule`: where its mode tables come from, and its answer."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from epochwatt.errors import ConfigError
from epochwatt.open_data.read import find_tables
from epochwatt.prediction.registry import load_method
from epochwatt.schedule.config import ScheduleStudy
from epochwatt.schedule.problem import PowerRule, Problem, Stream
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.simulated_tables import simulated_tables
from epochwatt.schedule.solution import NONE, Answers, Plan
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted, profiled
from epochwatt.schedule.space import Problems, Space
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.twin.inputs.power_modes import load_twin_with_modes
from epochwatt.twin.what_if.question import WORKLOADS, network_of

GRIDS = {"orin": "fulcrum-orin"}  # of simulated boards
TRAIN_SIZE = 16  # mini-batch sizes that are simulated
INFER_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
METHOD, N_PROFILED = "physical", 10  # of solver `verified`
WORK = "mini-batch"  # of tables: a row is the time of one
SolverName = Literal["gain", "gmd", "verified", "exhaustive"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for.

    Attributes
    ----------
    train, infer : networks; None: no such job
    rate_per_s, max_latency_ms : of the stream of requests
    max_power_w, power_rule : as of `Problem`
    device : simulated; of tables the one to take, where they have several
    solver : by which the plan is looked for
    tables : a sweep or file of mode tables; None: the board is simulated
    """

    train: str | None = None
    infer: str | None = None
    rate_per_s: float | None = None
    max_latency_ms: float | None = None
    max_power_w: float
    power_rule: PowerRule = "highest"
    device: str | None = None
    solver: SolverName = "gain"
    tables: str | None = None

    @property
    def problem(self) -> Problem:
        """The problem; ConfigError where options are missing or too many."""
        given = (self.rate_per_s, self.max_latency_ms)
        if self.train is None and self.infer is None:
            raise ConfigError("nothing to run", do="add --train NETWORK, --infer NETWORK, or both")
        if self.infer is None:
            if given != (None, None):
                raise ConfigError("--rate and --max-latency-ms are of requests", do="add --infer")
            return Problem(max_power_w=self.max_power_w, trains=True, power_rule=self.power_rule)
        if self.rate_per_s is None or self.max_latency_ms is None:
            raise ConfigError("--infer needs --rate and --max-latency-ms")
        stream = Stream(rate_per_s=self.rate_per_s, max_latency_s=1e-3 * self.max_latency_ms)
        return Problem(
            max_power_w=self.max_power_w,
            streams=(stream,),
            trains=self.train is not None,
            power_rule=self.power_rule,
        )


@dataclass(frozen=True)
class Answer:
    """The answer.

    Attributes
    ----------
    plan : None: the solver saw none that keeps the budgets
    n_profiles : mini-batches that the solver asked for
    best : of all choices; None: no choice keeps the budgets, and neither does serving alone
    """

    problem: Problem
    space: Space
    provenance: str
    device: str
    plan: Plan | None
    n_profiles: int
    best: Plan | None


def answer(request: Request, root: Path = Path()) -> Answer:
    """Answer a request.

    Raises ConfigError: options that do not fit each other; a board, network or table that is not
    there.
    """
    problem = request.problem
    tables = _given(request) if request.tables else _simulated(request, root)
    chosen = [_tables_of(tables, name, task) for name, task in _jobs(request)]
    workloads = [workload_of(some) for some in chosen]
    space = Space(
        workloads[0] if request.train else None, tuple(workloads[1 if request.train else 0 :])
    )
    plan, n_profiles = _solved(request.solver, space, problem)
    best = exhaustive.best_plan(space, problem)
    if best is None and problem.jobs == "train_and_infer":  # then serving alone is better than none
        alone, serving = Space(None, space.infer), replace(problem, trains=False)
        plan, n_more = _solved(request.solver, alone, serving)
        n_profiles, best = n_profiles + n_more, exhaustive.best_plan(alone, serving)
    key = chosen[0][0].key
    return Answer(problem, space, key.provenance, key.device, plan, n_profiles, best)


def _solved(solver: SolverName, space: Space, problem: Problem) -> tuple[Plan | None, int]:
    """Return the plan of a solver, if it saw one, and how many profiles it asked for."""
    answers = _SOLVERS[solver](space, Problems.from_one(problem))
    choice = int(answers.choice[0])
    plan = None if choice == NONE else space.plan(problem, choice)
    return plan, int(answers.n_profiles[0])


def _jobs(request: Request) -> Iterator[tuple[str, str]]:
    """Yield network and task of each job, training first."""
    if request.train is not None:
        yield request.train, "train"
    if request.infer is not None:
        yield request.infer, "infer"


def _simulated(request: Request, root: Path) -> list[ModeTable]:
    device = request.device or "orin"
    if device not in GRIDS:
        raise ConfigError(
            f"--device {device} has no grid of modes that is simulated here",
            allowed=list(GRIDS),
            do="give measured modes by --tables FILE",
        )
    _check_names(request, root)
    study = ScheduleStudy(
        device=device,
        grid=GRIDS[device],
        train={request.train: TRAIN_SIZE} if request.train else {},
        infer={request.infer: list(INFER_SIZES)} if request.infer else {},
        n_profiled=[N_PROFILED],
        draws=1,
    )
    twin = load_twin_with_modes(map(str, sorted((root / WORKLOADS).glob("*.json"))), root)
    works = [network_of(model, {}, twin, root, task).work for model, task in study.works]
    return simulated_tables(study, twin.knowing(*works), root)


def _check_names(request: Request, root: Path) -> None:
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    for name, task in _jobs(request):
        if name not in rows:
            near = difflib.get_close_matches(name, rows, 1)
            raise ConfigError(
                f"unknown network in --{task}",
                found=name,
                allowed=list(rows),
                do=f"did you mean {near[0]}?" if near else "docs/tutorials/own-network.md adds one",
            )


def _given(request: Request) -> list[ModeTable]:
    tables = find_tables(str(request.tables))
    left = [
        table
        for table in tables
        if table.key.work == WORK and request.device in (None, table.key.device)
    ]
    if not left:
        works = sorted({f"{table.key.device}: time of one {table.key.work}" for table in tables})
        raise ConfigError(
            f"--tables {request.tables}: nothing of this device that gives the time of one {WORK}",
            found="; ".join(works),
        )
    return left


def _tables_of(tables: Sequence[ModeTable], name: str, task: str) -> list[ModeTable]:
    chosen = [table for table in tables if (table.key.workload, table.key.task) == (name, task)]
    if not chosen:
        raise ConfigError(
            f"no table of {name} ({task})",
            allowed=sorted({f"{table.key.workload} ({table.key.task})" for table in tables}),
        )
    return chosen


def _verified(space: Space, problems: Problems) -> Answers:
    modes = profiled.random_modes(space, N_PROFILED, 0)
    seen = predicted.predicted_space(space, load_method(METHOD), modes)
    return predicted.solve_verified(space, problems, seen, modes)


_SOLVERS: dict[SolverName, Callable[[Space, Problems], Answers]] = {
    "gain": gain.solve,
    "gmd": gmd.solve,
    "verified": _verified,
    "exhaustive": exhaustive.solve,
}
