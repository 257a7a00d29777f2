"""Play plans with steady and with random arrivals; training over power budgets; latencies.

A plan keeps its latency with steady arrivals. How often it does so where requests arrive at random
is stated for a sample: of each set of jobs with a stream, `N_DRAWN` problems of the sampler's grid,
drawn; the plans of two solvers for those that have one. A plan is played with `N_STREAMS` streams
of `N_BATCHES` mini-batches each, of a Poisson process or one request every 1 / rate.

Curves are of one problem of each pair that trains and serves: a stream of `LOAD` of the highest
rate, with a latency budget of `LATENCY`, relative as in the sampler.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from epochwatt.board.records.interleaved_folder import read
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.schedule import simulation
from epochwatt.schedule.config import required_schedule
from epochwatt.schedule.problem import NONE, SLACK, Answers, Indices, Numbers, Problems, Space
from epochwatt.schedule.sampler import N_BUDGETS, ONE_STREAM, TWO_STREAMS, problem_at, problems_of
from epochwatt.schedule.simulation import Arrivals, Interleaved
from epochwatt.schedule.solvers import exhaustive, gmd
from epochwatt.schedule.study import SET_COLUMNS, Set, Solver, sets_of, solvers_of
from epochwatt.tables import write_frame

KINDS: tuple[Arrivals, ...] = ("constant", "poisson")
N_DRAWN, SEED = 200, 0
N_STREAMS, N_BATCHES = 10, 100
_AT_ONCE = 1 << 20  # requests that are played at once
SOLVERS = {"exhaustive": exhaustive.solve, "gmd": gmd.solve}
LOAD, LATENCY = 0.3, 40.0
PERCENTILES = (*range(100), 99.5, 99.9, 100)
ARRIVAL_COLUMNS = (
    *(*SET_COLUMNS, "solver", "arrivals", "n_plans", "n_requests"),
    # mean share of late requests, and that which a tenth of plans exceeds; plans with 99 % of
    # requests in time, and with all of them
    *("late_pct", "late_p90_pct", "kept_p99_pct", "kept_worst_pct", "assumed"),
)
POWER_COLUMNS = (  # throughput_per_s is missing where no plan keeps the budgets
    *(*SET_COLUMNS, "rate_per_s", "max_latency_s", "solver", "max_power_w", "throughput_per_s"),
    "assumed",
)
LATENCY_COLUMNS = (
    *(*SET_COLUMNS, "plan", "arrivals", "rate_per_s", "batch_size", "n_train", "max_latency_s"),
    *("percentile", "latency_s", "assumed"),
)


def interleaved(space: Space, problems: Problems, choice: Indices) -> list[Interleaved]:
    """Return for each stream what one choice per problem (p,) runs; all fields are (p,)."""
    n_train = space.outcome(problems, choice[:, None]).n_train[:, 0]
    train_s = np.zeros(len(choice)) if space.train is None else space.costs(choice)[0][0]
    return [
        Interleaved(job.batch_sizes[size], job.time_s[mode, size], n_train, train_s)  # type: ignore[arg-type]
        for job, mode, size in space.runs(choice)[-len(space.infer) :]
    ]


def waits_s(
    space: Space, problems: Problems, choice: Indices, kind: Arrivals
) -> Iterator[tuple[Indices, tuple[Numbers, ...]]]:
    """Simulate the plans of p problems; yield indices of n problems, and latencies of each stream.

    Latencies, s, are (n, k). Plans of one stream and one mini-batch size are simulated together.

    `choice`: (p,), one for each problem
    """
    runs = interleaved(space, problems, choice)
    if len(runs) == 2:
        for i, rates in enumerate(problems.rates_per_s):
            plans = [Interleaved(int(run.batch_size[i]), run.infer_s[i]) for run in runs]  # type: ignore[index]
            pairs = list(zip(plans, rates, strict=True))
            longest_s = max(N_BATCHES * plan.batch_size / rate for plan, rate in pairs)
            shapes = [
                (N_STREAMS, int(longest_s * rate / plan.batch_size) * plan.batch_size)
                for plan, rate in pairs
            ]
            times_s = [
                simulation.arrivals_s(kind, rate, shape)
                for rate, shape in zip(rates, shapes, strict=True)
            ]
            both = simulation.latencies_of_two_s(times_s, plans)
            yield np.array([i]), tuple(latencies.reshape(1, -1) for latencies in both)
        return
    sizes, *parts = runs[0]
    for size in np.unique(sizes):
        n_at_once = max(_AT_ONCE // (N_STREAMS * N_BATCHES * int(size)), 1)
        alike = np.flatnonzero(sizes == size)
        for chunk in np.split(alike, range(n_at_once, len(alike), n_at_once)):
            run = Interleaved(int(size), *(np.asarray(part)[chunk] for part in parts))
            rates = problems.rates_per_s[chunk, 0]
            latencies = simulation.played_latencies_s(rates, run, kind, N_STREAMS, N_BATCHES)
            yield chunk, (latencies.reshape(len(chunk), -1),)


def arrival_rows(jobs: Set) -> pd.DataFrame:
    """Simulate the plans of a sample of problems; a row of late requests by solver and arrivals."""
    space = jobs.space
    size = TWO_STREAMS if len(space.infer) > 1 else ONE_STREAM
    problems = problems_of(space, size, budgets_w=jobs.study.power_w)
    drawn = np.random.default_rng(SEED).choice(len(problems), N_DRAWN, replace=False)
    problems = problems.subset(np.sort(drawn))
    rows = []
    for name, solve in SOLVERS.items():
        answers = solve(space, problems)
        for kind in KINDS:
            late, n_requests = _late(space, problems, answers, kind)
            shares = [np.nan] * 4
            if late.size:
                shares = [
                    100 * float(late.mean()),
                    100 * float(np.quantile(late, 0.9)),
                    100 * float((late <= 0.01).mean()),  # plans with 99 % in time
                    100 * float((late <= 0.0).mean()),
                ]
            rows.append((name, kind, len(late), n_requests, *shares))
    frame = pd.DataFrame(rows, columns=ARRIVAL_COLUMNS[len(SET_COLUMNS) : -1])
    return jobs.labelled(frame, ARRIVAL_COLUMNS)


def _late(
    space: Space, problems: Problems, answers: Answers, kind: Arrivals
) -> tuple[Numbers, int]:
    """Return the share of late requests of each solved problem, and the number of requests."""
    solved = np.flatnonzero(answers.choice != NONE)
    problems, choice = problems.subset(solved), answers.choice[solved]
    n_late, n_played = np.zeros((2, len(solved)))
    for plans, waited in waits_s(space, problems, choice, kind):
        for latencies, most_s in zip(waited, problems.max_latencies_s[plans].T, strict=True):
            n_late[plans] += (latencies > most_s[:, None] * (1 + SLACK)).sum(1)
            n_played[plans] += latencies.shape[1]
    return n_late / n_played, int(n_played.sum())


def power_rows(jobs: Set, solvers: dict[str, Solver]) -> pd.DataFrame:
    """Return a frame of each solver's training throughput under each power budget, at one rate."""
    space = jobs.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    powers = np.linspace(jobs.study.power_w[0], jobs.study.power_w[1], N_BUDGETS)
    problems = Problems(powers, np.tile(rate, (len(powers), 1)), np.tile(latency, (len(powers), 1)))
    frames = []
    for name, solver in {"exhaustive": Solver(exhaustive.solve), **solvers}.items():
        choice = solver.solve(space, problems, 0).choice
        judged = space.judge(problems, np.maximum(choice, 0)[:, None])
        kept = (choice != NONE) & judged.holds[:, 0]
        columns = {
            "rate_per_s": rate[0],
            "max_latency_s": latency[0],
            "solver": name,
            "max_power_w": powers,
            "throughput_per_s": np.where(kept, -judged.cost[:, 0], np.nan),
        }
        frames.append(pd.DataFrame(columns))
    return jobs.labelled(pd.concat(frames), POWER_COLUMNS)


def latency_rows(jobs: Set) -> pd.DataFrame:
    """Return a frame of latency percentiles under the best plan at the greatest power budget.

    Without a row where no plan keeps the budgets.
    """
    space = jobs.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    problem = Problems.one(jobs.study.power_w[1], (float(rate[0]), float(latency[0])))
    choice = exhaustive.solve(space, problem).choice
    if choice[0] == NONE:
        return pd.DataFrame(columns=LATENCY_COLUMNS)
    (run,) = interleaved(space, problem, choice)
    size, infer_s, n_train, train_s = (float(np.asarray(part)[0]) for part in run)
    plan = Interleaved(int(size), infer_s, int(n_train), train_s)
    frames = []
    for kind in KINDS:
        waited = simulation.played_latencies_s(float(rate[0]), plan, kind, N_STREAMS, N_BATCHES)
        frames.append(_percentiles(waited, plan, float(rate[0]), float(latency[0]), kind))
    return jobs.labelled(pd.concat(frames), LATENCY_COLUMNS)


def measured_rows(folder: str) -> pd.DataFrame:
    """Return a frame of a measurement's latency percentiles, and of its plan simulated.

    The budget is the formula's worst latency of steady arrivals, with the median time of a
    mini-batch alone; requests that were not served are left out.
    """
    record = read(folder)
    plan, before, backend = record.meta["plan"], record.meta["before"], record.meta["backend"]
    infer_s, train_s = (float(np.median(before[key])) for key in ("infer_s", "train_s"))
    rate, size = plan["rate_per_s"], plan["batch_size"]
    n_train = int(max(size / rate - infer_s, 0) / train_s)
    if plan["n_train"] is not None:
        n_train = min(n_train, plan["n_train"])
    run = Interleaved(size, infer_s, n_train, train_s)
    waited = record.requests["end_s"] - record.requests["arrival_s"]
    waited = waited[np.isfinite(waited)]
    kind: Arrivals = "constant" if plan["arrivals"] == "constant" else "poisson"
    expected = simulation.played_latencies_s(rate, run, kind)
    frames = [
        _percentiles(latencies, run, rate, (size - 1) / rate + infer_s, plan["arrivals"]).assign(
            provenance=provenance,
            device=backend,
            jobs="train_and_infer",
            train=plan["train"],
            infer=plan["infer"],
            plan=Path(folder).name,
            assumed="",
        )
        for provenance, latencies in (
            ("fake" if backend == "fake" else "measured", waited),
            ("simulated", expected),
        )
        if latencies.size
    ]
    return pd.concat(frames)[list(LATENCY_COLUMNS)]


def _percentiles(
    latencies_s: Numbers, run: Interleaved, rate_per_s: float, max_latency_s: float, arrivals: str
) -> pd.DataFrame:
    """Return a row for each of `PERCENTILES`; `run` is of one plan, which callers name."""
    return pd.DataFrame(
        {
            "plan": "",
            "arrivals": arrivals,
            "rate_per_s": rate_per_s,
            "batch_size": run.batch_size,
            "n_train": run.n_train,
            "max_latency_s": max_latency_s,
            "percentile": np.array(PERCENTILES, object),
            "latency_s": np.percentile(latencies_s, PERCENTILES),
        }
    )


def write_played(
    tables: Path,
    paths: Sequence[str],
    records: Sequence[str] = (),
    processes: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Simulate the plans of all sets with a stream; write arrivals.csv, power.csv, latencies.csv.

    Raises ConfigError: the tables lack a network of the study; RecordError: a record cannot be
    read.

    `paths`: of the three tables, in this order; `records`: folders of measurements of `epochwatt
    serve-and-train`
    """
    jobs = [jobs for jobs in sets_of(required_schedule(), tables) if jobs.infer]
    columns = (ARRIVAL_COLUMNS, POWER_COLUMNS, LATENCY_COLUMNS)
    frames = [[pd.DataFrame(columns=names)] for names in columns]
    with workers(min(processes, len(jobs)) or 1) as pool:
        for number, made in enumerate(pool.map(_played, jobs), 1):
            for table, frame in zip(frames, made, strict=False):  # some sets have arrivals alone
                table.append(frame)
            say(f"{number} of {len(jobs)} sets of jobs played")
    frames[2] += map(measured_rows, records)
    for path, table in zip(paths, frames, strict=True):
        write_frame(path, "schedules that were played", pd.concat(table))


def _played(jobs: Set) -> list[pd.DataFrame]:
    """Return the rows of one set for each table: the task of one process."""
    arrivals = arrival_rows(jobs)
    if jobs.jobs != "train_and_infer":
        return [arrivals]
    return [arrivals, power_rows(jobs, solvers_of(jobs)[0]), latency_rows(jobs)]
