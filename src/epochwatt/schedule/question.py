"""Answer `epochwatt schedule`: find mode tables, solve, and say what limits the plan."""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.registry import load_method
from epochwatt.schedule.config import ScheduleStudy
from epochwatt.schedule.problem import (
    NONE,
    Answers,
    Bools,
    Numbers,
    Plan,
    PowerRule,
    Problems,
    Space,
    outcome,
)
from epochwatt.schedule.simulated_tables import simulated_tables
from epochwatt.schedule.simulation import Interleaved, run_at_random
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted
from epochwatt.schedule.tables import tables_of_job, workload_of
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import aligned, answer_origin, counted
from epochwatt.twin.network import COUNTS, network_of
from epochwatt.twin.power_modes import load_twin_with_modes

GRIDS = {"orin": "fulcrum-orin"}  # of simulated boards
TRAIN_SIZE = 16  # mini-batch sizes that are simulated
INFER_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
METHOD, N_PROFILED = "physical", 10  # of solver `verified`
WORK = "mini-batch"  # of tables: a row is the time of one
NO_LIMIT = 1e9  # W or s: beyond any board
RULES = {"highest": "highest power", "mean": "mean power"}
NEARLY = 1e-6  # relative; a gain below it is none


@dataclass(frozen=True, kw_only=True)
class Request:
    """Question of `epochwatt schedule`."""

    train: str | None = None  # networks; None: no such job
    infer: str | None = None
    rate_per_s: float | None = None  # of the stream of requests
    max_latency_ms: float | None = None
    max_power_w: float
    power_rule: PowerRule = "highest"
    device: str | None = None  # simulated; of tables the one to take, where they have several
    solver: Literal["gain", "gmd", "verified", "exhaustive"] = "gain"
    tables: str | None = None  # a sweep or file of mode tables; None: the board is simulated

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """Network and task of each job, training first."""
        pairs = (self.train, "train"), (self.infer, "infer")
        return [(network, task) for network, task in pairs if network is not None]

    def problem(
        self, max_power_w: float | None = None, max_latency_s: float | None = None
    ) -> Problems:
        """Check the options and build the problem; budgets that are passed replace the requested.

        Raises ConfigError: options are missing, or do not go together.
        """
        stream = (self.rate_per_s, self.max_latency_ms)
        max_power_w = self.max_power_w if max_power_w is None else max_power_w
        if not self.jobs:
            raise ConfigError("nothing to run", do="add --train NETWORK, --infer NETWORK, or both")
        if self.infer is None:
            if stream != (None, None):
                raise ConfigError("--rate and --max-latency-ms are of requests", do="add --infer")
            return Problems.one(max_power_w, power_rule=self.power_rule)
        if self.rate_per_s is None or self.max_latency_ms is None:
            raise ConfigError("--infer needs --rate and --max-latency-ms")
        latency_s = 1e-3 * self.max_latency_ms if max_latency_s is None else max_latency_s
        return Problems.one(max_power_w, (self.rate_per_s, latency_s), power_rule=self.power_rule)


@dataclass(frozen=True)
class Answer:
    """Answer to a request."""

    request: Request
    space: Space
    provenance: str
    device: str
    plan: Plan | None  # None: the solver saw none that keeps the budgets
    n_profiles: int  # mini-batches that the solver asked for
    # of all choices; None: no choice keeps the budgets, and neither does serving alone
    best: Plan | None


def find_answer(request: Request) -> Answer:
    """Find tables, solve the request, and solve it by exhaustive search, too.

    Where no plan trains and serves within the budgets, serving alone is solved.

    Raises ConfigError: options do not fit each other; a board, network or table is not there.
    """
    problem = request.problem()
    tables = _tables_from_option(request) if request.tables else _simulated(request)
    chosen = [tables_of_job(name, task, tables) for name, task in request.jobs]
    first, *others = map(workload_of, chosen)
    space = Space(first, tuple(others)) if request.train else Space(None, (first, *others))
    plan, n_profiles = _solved(request.solver, space, problem)
    best = best_plan(space, problem)
    if best is None and request.train and request.infer:
        alone = Space(None, space.infer)
        plan, n_more = _solved(request.solver, alone, problem)
        n_profiles, best = n_profiles + n_more, best_plan(alone, problem)
    key = chosen[0][0].key
    return Answer(request, space, key.provenance, key.device, plan, n_profiles, best)


def best_plan(space: Space, problem: Problems) -> Plan | None:
    """Return the best plan of one problem; None where none keeps the budgets."""
    return _solved("exhaustive", space, problem)[0]


def _solved(solver: str, space: Space, problem: Problems) -> tuple[Plan | None, int]:
    """Return a solver's plan for a single problem, and how many mini-batches it profiled for it.

    The plan is None where the solver knows of none that keeps the budgets.
    """
    if solver == "verified":  # it learns from a few modes, drawn the same each time
        modes = exhaustive.random_modes(space, N_PROFILED, 0)
        seen = predicted.predicted_space(space, load_method(METHOD), modes)
        answers = predicted.solve_verified(space, problem, seen, modes)
    else:
        solve: dict[str, Callable[[Space, Problems], Answers]] = {
            "gain": gain.solve,
            "gmd": gmd.solve,
            "exhaustive": exhaustive.solve,
        }
        answers = solve[solver](space, problem)
    choice = int(answers.choice[0])
    return None if choice == NONE else space.plan(problem, choice), int(answers.n_profiles[0])


def _simulated(request: Request) -> list[ModeTable]:
    """Simulate the mode tables of the requested networks on the requested board."""
    device = request.device or "orin"
    if device not in GRIDS:
        raise ConfigError(
            f"--device {device} has no grid of modes that is simulated here",
            allowed=list(GRIDS),
            do="give measured modes by --tables FILE",
        )
    rows = read_rows(WorkloadRow, Path("config/workloads.yaml"))
    for name, task in request.jobs:
        if name not in rows:
            near = difflib.get_close_matches(name, rows, 1)
            raise ConfigError(
                f"unknown network in --{task}",
                found=name,
                allowed=list(rows),
                do=f"did you mean {near[0]}?" if near else "docs/tutorials/own-network.md adds one",
            )
    study = ScheduleStudy(
        device=device,
        grid=GRIDS[device],
        train={request.train: TRAIN_SIZE} if request.train else {},
        infer={request.infer: list(INFER_SIZES)} if request.infer else {},
        n_profiled=[N_PROFILED],
        draws=1,
    )
    twin = load_twin_with_modes(map(str, sorted(COUNTS.glob("*.json"))))
    works = [network_of(model, {}, twin, Path(), task).work for model, task in study.works]
    return simulated_tables(study, twin.knowing(*works))


def _tables_from_option(request: Request) -> list[ModeTable]:
    """Read the tables of --tables that are of mini-batches, and of --device where it is given."""
    from epochwatt.open_data.read import find_tables  # imports pandas

    tables = find_tables(str(request.tables))
    fitting = [
        table
        for table in tables
        if table.key.work == WORK and request.device in (None, table.key.device)
    ]
    if not fitting:
        works = sorted({f"{table.key.device}: time of one {table.key.work}" for table in tables})
        raise ConfigError(
            f"--tables {request.tables}: nothing of this device that gives the time of one {WORK}",
            found="; ".join(works),
        )
    return fitting


# -- what limits a plan ----------------------------------------------------------------------------


class Least(NamedTuple):
    """The least budgets that would do; NaN: no such budget helps."""

    power_w: float  # with the latency as it is
    power_to_train_w: float  # of a plan that serves in time and trains at all
    latency_s: float  # with the power as it is; NaN without a stream
    any_latency_s: float  # with any power
    rate_per_s: float  # the highest that some mode and mini-batch size serves, whatever it draws


def least_budgets(space: Space, problem: Problems) -> Least:
    """Find the least budgets with which a problem of at most one stream has a plan."""

    def least(values: Numbers, is_allowed: Bools) -> float:
        return float(values[is_allowed].min()) if is_allowed.any() else math.nan

    judged = space.judge(problem, np.arange(len(space.choices))[None])
    in_time, power_w = judged.in_time[0], judged.power_w[0]
    to_train_w = least(power_w, in_time & (judged.cost[0] < 0))
    if not space.infer:
        return Least(least(power_w, in_time), to_train_w, math.nan, math.nan, math.nan)
    infer, mode, size = space.runs(slice(None))[-1]
    batch, time_s, infer_w = infer.batch_sizes[size], infer.time_s[mode, size], infer.power_w
    (latency_s,) = outcome([(problem.rates_per_s[0], batch, time_s, infer_w[mode, size])]).latency_s
    is_stable = judged.is_stable[0]
    return Least(
        least(power_w, in_time),
        to_train_w,
        least(latency_s, is_stable & judged.keeps_power[0]),
        least(latency_s, is_stable),
        float((batch / time_s).max()),
    )


def answer_lines(answer: Answer) -> list[str]:
    """Write the answer as lines: the plan and what limits it, or why there is none."""
    request, space = answer.request, answer.space
    tasks = {"train": "training", "infer": "inference"}
    words = {task: f"{name} ({tasks[task]})" for name, task in request.jobs}
    asked = f"{RULES[request.power_rule]} at most {request.max_power_w:g} W"
    if request.infer:
        asked = (
            f"{request.rate_per_s:g} requests/s, each within {request.max_latency_ms:g} ms; {asked}"
        )
    n_all = sum(workload.time_s.size for workload in space.workloads)
    lines = [
        f"{answer_origin(answer.provenance)}: {' and '.join(words.values())} on {answer.device}",
        f"asked     {asked}",
        f"looked at {answer.n_profiles:,} of {n_all:,} profiles (job, mode, mini-batch size); "
        f"solver {request.solver}",
        "",
    ]
    if answer.plan is not None:
        return [*lines, *_plan_lines(answer, answer.plan), "", *_limits(answer, answer.plan)]
    if answer.best is not None:
        return [
            *lines,
            "answer    none: no profile that the solver looked at keeps the budgets",
            "",
            "A plan exists; --solver exhaustive finds it:",
            *_plan_lines(answer, answer.best),
        ]
    return [
        *lines,
        "answer    none: no mode and mini-batch size keeps the budgets",
        *_least_lines(answer),
    ]


def _plan_lines(answer: Answer, plan: Plan) -> list[str]:
    """Write a plan as lines: mode, mini-batch, latency, training, power."""
    space, request = answer.space, answer.request
    rows = [("mode", plan.mode.of_parts(space.workloads[0].parts))]
    training = f"{plan.throughput_per_s:.4g} mini-batches/s"
    gap_s, train_s, train_w = math.inf, 1.0, 0.0
    if space.train is not None:
        train_s, train_w = space.train.time_s[plan.place, 0], space.train.power_w[plan.place, 0]
    if space.infer:
        assert request.rate_per_s is not None
        assert request.max_latency_ms is not None
        (infer,), (size,), (latency_s,) = space.infer, plan.batch_sizes, plan.latency_s
        infer_s = infer.time_s[plan.place, infer.batch_sizes.tolist().index(size)]
        gap_s = size / request.rate_per_s - infer_s
        run = Interleaved(size, infer_s, plan.n_train, train_s)
        played = run_at_random(request.rate_per_s, run, 1e-3 * request.max_latency_ms)
        late = f"{100 * played.share_late:.3g} % of requests late"
        rows += [
            ("mini-batch", counted(size, "requests")),
            ("latency", f"{1e3 * latency_s:.4g} ms at worst, with steady arrivals"),
            ("", f"random arrivals (Poisson): {late}, 99 % within {1e3 * played.p99_s:.4g} ms"),
        ]
        training += (
            f" with steady arrivals, {plan.n_train} after each of inference; "
            f"{played.throughput_per_s:.4g}/s with random ones"
        )
    if request.train and not plan.n_train:
        training = f"none: it would draw {train_w:.4g} W, and no mode trains and serves within the "
        training += "budgets"
        if train_s > gap_s:
            training = (
                "none: no gap between mini-batches of inference holds one of training, which takes "
                f"{1e3 * train_s:.4g} ms of {1e3 * gap_s:.4g}"
            )
    if request.train:
        rows.append(("training", training))
    rows.append(("power", f"{plan.power_w:.4g} W ({RULES[request.power_rule]})"))
    return aligned(rows)


def _limits(answer: Answer, plan: Plan) -> list[str]:
    """Write lines: how far the plan is from the best, and what a wider budget would give."""
    request, space, trains = answer.request, answer.space, answer.request.train is not None

    def gain(plan: Plan, other: Plan) -> float:
        """Return by how much the other plan is better, relative."""
        if trains:
            return other.throughput_per_s / max(plan.throughput_per_s, 1e-12) - 1
        return max(plan.latency_s) / max(other.latency_s) - 1

    def value(plan: Plan) -> str:
        if trains:
            return f"{plan.throughput_per_s:.4g} mini-batches of training/s"
        return f"{1e3 * max(plan.latency_s):.4g} ms at worst"

    rows = []
    start = answer.best or plan
    if gain(plan, start) > NEARLY:
        rows.append(("best of all modes", value(start)))
    if trains and not start.throughput_per_s:
        least_w = least_budgets(space, request.problem()).power_to_train_w
        needs = "needs more latency" if math.isnan(least_w) else f"at least {least_w:.4g} W"
        rows.append(("to train at all", needs))
    for name, problem in (
        ("with any power", request.problem(max_power_w=NO_LIMIT)),
        ("with any latency", request.problem(max_latency_s=NO_LIMIT)),
    ):
        other = best_plan(space, problem)
        if other is not None and gain(start, other) > NEARLY:
            rows.append((name, f"{value(other)}, {other.power_w:.4g} W"))
    if not rows:
        return ["No budget holds it back: it is the best that the board can do."]
    return ["What limits it:", *aligned(rows)]


def _least_lines(answer: Answer) -> list[str]:
    """Write lines: which budgets fail, and the least that would do."""
    request = answer.request
    least = least_budgets(answer.space, request.problem())
    lines = []
    if not math.isnan(least.power_w):
        lines.append(f"power     needs at least {least.power_w:.4g} W, all else as asked")
    if request.max_latency_ms is not None:
        if math.isnan(least.any_latency_s):
            return [f"rate      no mode serves more than {least.rate_per_s:.4g} requests/s"]
        if least.any_latency_s > 1e-3 * request.max_latency_ms:
            lines.append(
                f"latency   {request.max_latency_ms:g} ms fail in every mode: "
                f"{1e3 * least.any_latency_s:.4g} at least"
            )
        if not math.isnan(least.latency_s):
            lines.append(
                f"latency   needs at least {1e3 * least.latency_s:.4g} ms "
                f"within {request.max_power_w:g} W"
            )
        else:
            lines.append(
                f"power     no mode that draws at most {request.max_power_w:g} W "
                f"serves {request.rate_per_s:g} requests/s, however late"
            )
    return lines
