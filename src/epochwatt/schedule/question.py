"""Answer `epochwatt schedule`: find mode tables, solve, and say what limits the plan."""

import difflib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.open_data.read import find_tables
from epochwatt.prediction.registry import load_method
from epochwatt.schedule.as_run import AsRun, at_random
from epochwatt.schedule.config import ScheduleStudy
from epochwatt.schedule.plans import Numbers, serve
from epochwatt.schedule.problem import NONE, Answers, Plan, PowerRule, Problem, Stream
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.simulated_tables import simulated_tables
from epochwatt.schedule.solvers import exhaustive, gain, gmd, predicted, profiled
from epochwatt.schedule.solvers.exhaustive import best_plan
from epochwatt.schedule.space import Bools, Problems, Space
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import aligned, counted
from epochwatt.twin.network import WORKLOADS, network_of
from epochwatt.twin.power_modes import load_twin_with_modes

GRIDS = {"orin": "fulcrum-orin"}  # of simulated boards
TRAIN_SIZE = 16  # mini-batch sizes that are simulated
INFER_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
METHOD, N_PROFILED = "physical", 10  # of solver `verified`
WORK = "mini-batch"  # of tables: a row is the time of one
NO_LIMIT = 1e9  # W or s: beyond any board
ORIGINS = {
    "simulated": "SIMULATED, not measured",
    "measured": "measured",
    "fake": "NOT MEASURED, on a fake board",
    "public": "measured by others",
}
RULES = {"highest": "highest power", "mean": "mean power"}
NEARLY = 1e-6  # relative; a gain below it is none
SolverName = Literal["gain", "gmd", "verified", "exhaustive"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Question of `epochwatt schedule`."""

    train: str | None = None  # networks; None: no such job
    infer: str | None = None
    rate_per_s: float | None = None  # of the stream of requests
    max_latency_ms: float | None = None
    max_power_w: float  # as of `Problem`
    power_rule: PowerRule = "highest"
    device: str | None = None  # simulated; of tables the one to take, where they have several
    solver: SolverName = "gain"  # by which the plan is looked for
    tables: str | None = None  # a sweep or file of mode tables; None: the board is simulated

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
    """The answer."""

    problem: Problem
    space: Space
    provenance: str
    device: str
    plan: Plan | None  # None: the solver saw none that keeps the budgets
    n_profiles: int  # mini-batches that the solver asked for
    # of all choices; None: no choice keeps the budgets, and neither does serving alone
    best: Plan | None


def find_answer(request: Request, root: Path = Path()) -> Answer:
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
    problems = Problems.from_one(problem)
    if solver == "verified":
        modes = profiled.random_modes(space, N_PROFILED, 0)
        seen = predicted.predicted_space(space, load_method(METHOD), modes)
        answers = predicted.solve_verified(space, problems, seen, modes)
    else:
        solve: dict[str, Callable[[Space, Problems], Answers]] = {
            "gain": gain.solve,
            "gmd": gmd.solve,
            "exhaustive": exhaustive.solve,
        }
        answers = solve[solver](space, problems)
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


# -- what limits a plan ----------------------------------------------------------------------------


class Least(NamedTuple):
    """The least budgets that would do; NaN: no such budget helps."""

    power_w: float  # with the latency as it is
    latency_s: float  # with the power as it is; NaN without a stream
    any_latency_s: float  # with any power
    rate_per_s: float  # the highest that some mode and mini-batch size serves, whatever it draws


def least_budgets(space: Space, problem: Problem) -> Least:
    """Return what budgets a problem of at most one stream would need."""
    every = np.arange(len(space.choices))[None]
    judged = space.judge(Problems.from_one(problem), every)
    in_time = (judged.keeps_latency & judged.is_stable)[0]
    power_w = _minimum(judged.power_w[0], in_time)
    if not problem.streams:
        return Least(power_w, math.nan, math.nan, math.nan)
    ((mode, size), infer) = space.choices.T, space.infer[0]
    batch, time_s = infer.batch_sizes[size], infer.time_s[mode, size]
    rate = problem.streams[0].rate_per_s
    latency_s = serve(rate, batch, time_s, infer.power_w[mode, size]).latency_s
    is_stable, keeps_power = judged.is_stable[0], judged.keeps_power[0]
    return Least(
        power_w,
        _minimum(latency_s, is_stable & keeps_power),
        _minimum(latency_s, is_stable),
        float((batch / time_s).max()),
    )


def least_power_to_train_w(space: Space, problem: Problem) -> float:
    """Return the least power of a plan that serves in time and trains at all; NaN: none does."""
    judged = space.judge(Problems.from_one(problem), np.arange(len(space.choices))[None])
    trains = judged.keeps_latency & judged.is_stable & (judged.cost < 0)
    return _minimum(judged.power_w[0], trains[0])


def _minimum(values: Numbers, which: Bools) -> float:
    return float(values[which].min()) if which.any() else math.nan


def answer_lines(answer: Answer, solver: str) -> list[str]:
    """Return the answer: the plan with its numbers, what limits it, or why there is none."""
    names = " and ".join(
        [f"{one.name} (training)" for one in [answer.space.train] if one is not None]
        + [f"{one.name} (inference)" for one in answer.space.infer]
    )
    n_all = sum(one.time_s.size for one in answer.space.workloads)
    lines = [
        f"{ORIGINS[answer.provenance]}: {names} on {answer.device}",
        f"asked     {_asked(answer)}",
        f"looked at {answer.n_profiles:,} of {n_all:,} profiles (job, mode, mini-batch size); "
        f"solver {solver}",
        "",
    ]
    if answer.plan is not None:
        return [*lines, *_plan_lines(answer, answer.plan), "", *_limits(answer)]
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


def _asked(answer: Answer) -> str:
    problem = answer.problem
    words = [
        f"{one.rate_per_s:g} requests/s, each within {1e3 * one.max_latency_s:g} ms"
        for one in problem.streams
    ]
    return "; ".join([*words, f"{RULES[problem.power_rule]} at most {problem.max_power_w:g} W"])


def _plan_lines(answer: Answer, plan: Plan) -> list[str]:
    rows = [("mode", plan.mode.of_parts(answer.space.workloads[0].parts))]
    trains, training = answer.problem.trains, f"{plan.throughput_per_s:.4g} mini-batches/s"
    for size, latency_s in zip(plan.batch_sizes, plan.latency_s, strict=True):
        played = _at_random(answer, plan)
        late = f"{100 * played.share_late:.3g} % of requests late"
        rows.append(("mini-batch", counted(size, "requests")))
        rows.append(("latency", f"{1e3 * latency_s:.4g} ms at worst, with steady arrivals"))
        rows.append(
            ("", f"random arrivals (Poisson): {late}, 99 % within {1e3 * played.p99_s:.4g} ms")
        )
        training += (
            f" with steady arrivals, {plan.n_train} after each of inference; "
            f"{played.throughput_per_s:.4g}/s with random ones"
        )
    if trains and plan.n_train:
        rows.append(("training", training))
    elif trains:
        rows.append(("training", f"none: {_why_none(answer, plan)}"))
    rows.append(("power", f"{plan.power_w:.4g} W ({RULES[answer.problem.power_rule]})"))
    return aligned(rows)


def _infer_s(answer: Answer, plan: Plan) -> float:
    """Return the time of a mini-batch of the one stream."""
    (infer,) = answer.space.infer
    return float(infer.time_s[plan.place, infer.batch_sizes.tolist().index(plan.batch_sizes[0])])


def _at_random(answer: Answer, plan: Plan) -> AsRun:
    """Return what comes of requests of the one stream that arrive at random."""
    (stream,), train = answer.problem.streams, answer.space.train
    return at_random(
        stream.rate_per_s,
        plan.batch_sizes[0],
        _infer_s(answer, plan),
        plan.n_train,
        1.0 if train is None else float(train.time_s[plan.place, 0]),
        stream.max_latency_s,
    )


def _why_none(answer: Answer, plan: Plan) -> str:
    """Return why a plan trains nothing beside its stream."""
    (stream,), train = answer.problem.streams, answer.space.train
    assert train is not None
    gap_s = plan.batch_sizes[0] / stream.rate_per_s - _infer_s(answer, plan)
    train_s, train_w = (float(values[plan.place, 0]) for values in (train.time_s, train.power_w))
    if train_s > gap_s:
        return (
            "no gap between mini-batches of inference holds one of training, which takes "
            f"{1e3 * train_s:.4g} ms of {1e3 * gap_s:.4g}"
        )
    return f"it would draw {train_w:.4g} W, and no mode trains and serves within the budgets"


def _limits(answer: Answer) -> list[str]:
    """Return how far the plan is from the best, and what each budget costs."""
    assert answer.plan is not None
    rows = []
    best = answer.best
    if best is not None and _gain(answer, answer.plan, best) > NEARLY:
        rows.append(("best of all modes", _value(answer, best)))
    start = best or answer.plan
    if answer.problem.trains and not start.throughput_per_s:
        least_w = least_power_to_train_w(answer.space, answer.problem)
        nothing = math.isnan(least_w)
        rows.append(
            ("to train at all", "needs more latency" if nothing else f"at least {least_w:.4g} W")
        )
    patient = tuple(replace(stream, max_latency_s=NO_LIMIT) for stream in answer.problem.streams)
    for name, problem in (
        ("with any power", replace(answer.problem, max_power_w=NO_LIMIT)),
        ("with any latency", replace(answer.problem, streams=patient)),
    ):
        other = best_plan(answer.space, problem)
        if other is not None and _gain(answer, start, other) > NEARLY:
            rows.append((name, f"{_value(answer, other)}, {other.power_w:.4g} W"))
    if not rows:
        return ["No budget holds it back: it is the best that the board can do."]
    return ["What limits it:", *aligned(rows)]


def _value(answer: Answer, plan: Plan) -> str:
    if answer.problem.trains:
        return f"{plan.throughput_per_s:.4g} mini-batches of training/s"
    return f"{1e3 * max(plan.latency_s):.4g} ms at worst"


def _gain(answer: Answer, plan: Plan, other: Plan) -> float:
    """Return by how much another plan is better, relative."""
    if answer.problem.trains:
        return other.throughput_per_s / max(plan.throughput_per_s, 1e-12) - 1
    return max(plan.latency_s) / max(other.latency_s) - 1


def _least_lines(answer: Answer) -> list[str]:
    """Return which budget fails, and the least that would do."""
    least, problem = least_budgets(answer.space, answer.problem), answer.problem
    lines = []
    if not math.isnan(least.power_w):
        lines.append(f"power     needs at least {least.power_w:.4g} W, all else as asked")
    if problem.streams:
        (stream,) = problem.streams
        asked_ms = 1e3 * stream.max_latency_s
        if math.isnan(least.any_latency_s):
            return [f"rate      no mode serves more than {least.rate_per_s:.4g} requests/s"]
        if least.any_latency_s > stream.max_latency_s:
            shortest = 1e3 * least.any_latency_s
            lines.append(f"latency   {asked_ms:g} ms fail in every mode: {shortest:.4g} at least")
        if not math.isnan(least.latency_s):
            lines.append(
                f"latency   needs at least {1e3 * least.latency_s:.4g} ms "
                f"within {problem.max_power_w:g} W"
            )
        else:
            lines.append(
                f"power     no mode that draws at most {problem.max_power_w:g} W "
                f"serves {stream.rate_per_s:g} requests/s, however late"
            )
    return lines
