"""Play plans with steady and with random arrivals; training over power budgets; latencies.

A plan keeps its latency with steady arrivals. How often it does so where requests arrive at random
is stated for a sample: of each set of jobs with a stream, `N_DRAWN` problems of the sampler's grid,
drawn; the plans of two solvers for those that have one. A plan is played with `N_STREAMS` streams
of `N_BATCHES` mini-batches each, of a Poisson process or one request every 1 / rate.

Curves are of one problem of each pair that trains and serves: a stream of `LOAD` of the highest
rate, with a latency budget of `LATENCY`, relative as in the sampler.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochwatt.board.records.interleaved_folder import read
from epochwatt.schedule import simulation
from epochwatt.schedule.evaluation import Named, Set, SetRow
from epochwatt.schedule.plans import SLACK, Numbers
from epochwatt.schedule.problem import NONE, Answers, Problem, Stream
from epochwatt.schedule.sampler import N_BUDGETS, ONE_STREAM, TWO_STREAMS, problem_at, problems_of
from epochwatt.schedule.simulation import Arrivals, Interleaved
from epochwatt.schedule.solvers import exhaustive, gmd
from epochwatt.schedule.space import Places, Problems, Space

KINDS: tuple[Arrivals, ...] = ("constant", "poisson")
N_DRAWN, SEED = 200, 0
N_STREAMS, N_BATCHES = 10, 100
_AT_ONCE = 1 << 20  # requests that are played at once
SOLVERS = {"exhaustive": exhaustive.solve, "gmd": gmd.solve}
LOAD, LATENCY = 0.3, 40.0
PERCENTILES = (*range(100), 99.5, 99.9, 100)


@dataclass(frozen=True, kw_only=True)
class ArrivalRow(SetRow):
    """Outcome of a solver's plans with one kind of arrivals: a row of arrivals.csv."""

    solver: str
    arrivals: Arrivals
    n_plans: int
    n_requests: int
    # mean share of late requests, and that which a tenth of plans exceeds
    late_pct: float | None = None
    late_p90_pct: float | None = None
    kept_p99_pct: float | None = None  # plans with 99 % of requests in time, and with all of them
    kept_worst_pct: float | None = None
    assumed: str = ""


@dataclass(frozen=True, kw_only=True)
class PowerRow(SetRow):
    """Training throughput of a solver's plan within a power budget: a row of power.csv."""

    rate_per_s: float
    max_latency_s: float
    solver: str
    max_power_w: float
    throughput_per_s: float | None = None  # None: no plan that keeps the budgets
    assumed: str = ""


@dataclass(frozen=True, kw_only=True)
class LatencyRow(SetRow):
    """A percentile of the latencies under a plan: a row of latencies.csv."""

    plan: str = ""
    arrivals: str = ""
    rate_per_s: float
    batch_size: int
    n_train: float
    max_latency_s: float
    percentile: float = 0
    latency_s: float = 0.0
    assumed: str = ""


def arrival_rows(jobs: Set) -> Iterator[ArrivalRow]:
    """Yield what comes of the plans of a set's problems, for each solver and kind of arrivals."""
    space = jobs.space
    size = TWO_STREAMS if len(space.infer) > 1 else ONE_STREAM
    problems = problems_of(space, size, budgets_w=jobs.study.power_w)
    drawn = np.random.default_rng(SEED).choice(len(problems), N_DRAWN, replace=False)
    problems = problems.only(np.sort(drawn))
    for name, solve in SOLVERS.items():
        answers: Answers = solve(space, problems)
        for arrivals in KINDS:
            late, n_requests = _late(space, problems, answers, arrivals)
            row = ArrivalRow(
                solver=name, arrivals=arrivals, n_plans=len(late), n_requests=n_requests
            )
            if late.size:
                row = replace(
                    row,
                    late_pct=100 * float(late.mean()),
                    late_p90_pct=100 * float(np.quantile(late, 0.9)),
                    kept_p99_pct=100 * float((late <= 0.01).mean()),
                    kept_worst_pct=100 * float((late == 0).mean()),
                )
            yield row


def _late(
    space: Space, problems: Problems, answers: Answers, arrivals: Arrivals
) -> tuple[Numbers, int]:
    """Return the share of late requests of each plan, and how many requests there were in all."""
    solved = np.flatnonzero(answers.choice != NONE)
    problems, choice = problems.only(solved), answers.choice[solved]
    n_late, n_played = np.zeros((2, len(solved)))
    for plans, waited in _played(space, problems, choice, arrivals):
        for latencies, most_s in zip(waited, problems.max_latencies_s[plans].T, strict=True):
            n_late[plans] += (latencies > most_s[:, None] * (1 + SLACK)).sum(1)
            n_played[plans] += latencies.shape[1]
    return n_late / n_played, int(n_played.sum())


def _played(
    space: Space, problems: Problems, choice: Places, arrivals: Arrivals
) -> Iterator[tuple[Places, tuple[Numbers, ...]]]:
    """Yield some of the plans, and how long the requests of each stream wait under them.

    Plans of one stream are played beside each other where their mini-batches are as large.
    """
    if len(space.infer) == 2:
        for i in range(len(problems)):
            problem = _problem(space, problems, i)
            waited = played(space, problem, int(choice[i]), arrivals)
            yield np.array([i]), tuple(latencies.reshape(1, -1) for latencies in waited)
        return
    mode, size = space.choices[choice].T
    infer, n_train = space.infer[0], space.n_train(problems, choice)
    train_s = np.zeros(len(choice)) if space.train is None else space.train.time_s[mode, 0]
    for step in np.unique(size):
        batch_size = int(infer.batch_sizes[step])
        n_at_once = max(_AT_ONCE // (N_STREAMS * N_BATCHES * batch_size), 1)
        alike = np.flatnonzero(size == step)
        for plans in np.split(alike, range(n_at_once, len(alike), n_at_once)):
            infer_s = infer.time_s[mode[plans], step]
            run = Interleaved(batch_size, infer_s, n_train[plans], train_s[plans])
            latencies = simulation.played_latencies_s(
                problems.rates_per_s[plans, 0], run, arrivals, N_STREAMS, N_BATCHES
            )
            yield plans, (latencies.reshape(len(plans), -1),)


def _problem(space: Space, problems: Problems, place: int) -> Problem:
    pairs = zip(problems.rates_per_s[place], problems.max_latencies_s[place], strict=True)
    return Problem(
        max_power_w=float(problems.max_power_w[place]),
        streams=tuple(
            Stream(rate_per_s=float(rate), max_latency_s=float(latency)) for rate, latency in pairs
        ),
        trains=space.train is not None,
        power_rule=problems.power_rule,
    )


def played(space: Space, problem: Problem, choice: int, arrivals: Arrivals) -> tuple[Numbers, ...]:
    """Return how long the requests of each stream wait under a choice, (r, k) each."""
    runs = interleaved(space, problem, choice)
    rates = [stream.rate_per_s for stream in problem.streams]
    if len(runs) == 1:
        return (simulation.played_latencies_s(rates[0], runs[0], arrivals, N_STREAMS, N_BATCHES),)
    pairs = list(zip(runs, rates, strict=True))
    longest_s = max(N_BATCHES * run.batch_size / rate for run, rate in pairs)
    first, second = (
        simulation.arrivals_s(
            arrivals, rate, (N_STREAMS, int(longest_s * rate / run.batch_size) * run.batch_size)
        )
        for run, rate in pairs
    )
    return simulation.latencies_of_two_s((first, second), (runs[0], runs[1]))


def interleaved(space: Space, problem: Problem, choice: int) -> list[Interleaved]:
    """Return what a choice runs, of each stream."""
    mode, *sizes = space.choices[choice]
    n_train = space.plan(problem, choice).n_train
    train_s = 0.0 if space.train is None else float(space.train.time_s[mode, 0])
    return [
        Interleaved(int(job.batch_sizes[k]), float(job.time_s[mode, k]), n_train, train_s)
        for job, k in zip(space.infer, sizes, strict=True)
    ]


# -- curves ----------------------------------------------------------------------------------------


def power_rows(jobs: Set, named: Mapping[str, Named]) -> Iterator[PowerRow]:
    """Yield the training throughput of each solver's plan under each power budget, at one rate."""
    space = jobs.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    powers = np.linspace(jobs.study.power_w[0], jobs.study.power_w[1], N_BUDGETS)
    problems = Problems(powers, np.tile(rate, (len(powers), 1)), np.tile(latency, (len(powers), 1)))
    solved = {"exhaustive": exhaustive.solve(space, problems)}
    solved |= {name: solver.solve(space, problems, 0) for name, solver in named.items()}
    for name, answers in solved.items():
        judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
        kept = (answers.choice != NONE) & judged.holds[:, 0]
        for power_w, keeps, cost in zip(powers, kept, judged.cost[:, 0], strict=True):
            yield PowerRow(
                rate_per_s=float(rate[0]),
                max_latency_s=float(latency[0]),
                solver=name,
                max_power_w=float(power_w),
                throughput_per_s=-float(cost) if keeps else None,
            )


def latency_rows(jobs: Set) -> Iterator[LatencyRow]:
    """Yield percentiles of latencies under the best plan at the greatest power budget."""
    space = jobs.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    stream = Stream(rate_per_s=float(rate[0]), max_latency_s=float(latency[0]))
    problem = Problem(max_power_w=jobs.study.power_w[1], streams=(stream,), trains=True)
    choice = int(exhaustive.solve(space, Problems.from_one(problem)).choice[0])
    if choice == NONE:
        return
    (run,) = interleaved(space, problem, choice)
    row = _latency_row(run, stream.rate_per_s, stream.max_latency_s)
    for arrivals in KINDS:
        (waited,) = played(space, problem, choice, arrivals)
        yield from _percentiles(replace(row, arrivals=arrivals), waited)


def measured_rows(folder: str) -> Iterator[LatencyRow]:
    """Yield percentiles of a measurement's latencies, and of its plan played with the same times.

    The budget is the formula's worst latency of steady arrivals, with the median time of a
    mini-batch alone; requests that were not served are left out.
    """
    record = read(folder)
    plan, before, backend = record.meta["plan"], record.meta["before"], record.meta["backend"]
    infer_s, train_s = (float(np.median(before[key])) for key in ("infer_s", "train_s"))
    rate, size = plan["rate_per_s"], plan["batch_size"]
    n_most = int(max(size / rate - infer_s, 0) / train_s)
    n_train = n_most if plan["n_train"] is None else min(n_most, plan["n_train"])
    run = Interleaved(size, infer_s, n_train, train_s)
    row = replace(
        _latency_row(run, rate, (size - 1) / rate + infer_s),
        device=backend,
        jobs="train_and_infer",
        train=plan["train"],
        infer=plan["infer"],
        arrivals=plan["arrivals"],
        plan=Path(folder).name,
    )
    waited = record.requests["end_s"] - record.requests["arrival_s"]
    waited = waited[np.isfinite(waited)]
    if waited.size:
        provenance = "fake" if backend == "fake" else "measured"
        yield from _percentiles(replace(row, provenance=provenance), waited)
    arrivals: Arrivals = "constant" if plan["arrivals"] == "constant" else "poisson"
    expected = simulation.played_latencies_s(rate, run, arrivals)
    yield from _percentiles(replace(row, provenance="simulated"), expected)


def _latency_row(run: Interleaved, rate_per_s: float, max_latency_s: float) -> LatencyRow:
    return LatencyRow(
        rate_per_s=rate_per_s,
        batch_size=run.batch_size,
        n_train=run.n_train,  # type: ignore[arg-type]
        max_latency_s=max_latency_s,
    )


def _percentiles(row: LatencyRow, latencies: Numbers) -> Iterator[LatencyRow]:
    values = np.percentile(latencies, PERCENTILES)
    for percentile, value in zip(PERCENTILES, values, strict=True):
        yield replace(row, percentile=percentile, latency_s=float(value))
