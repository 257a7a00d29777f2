"""Plans played with steady and with random arrivals: how often they hold.

A plan keeps its latency with steady arrivals. How often it does so where requests arrive at random
is stated for a sample: of each set of jobs with a stream, `N_DRAWN` problems of the sampler's grid,
drawn; the plans of two solvers for those that have one. A plan is played with `N_STREAMS` streams
of `N_BATCHES` mini-batches each, of a Poisson process or one request every 1 / rate.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from epochwatt.schedule import simulation
from epochwatt.schedule.plans import SLACK, Numbers
from epochwatt.schedule.problem import Problem, Stream
from epochwatt.schedule.sampler import ONE_STREAM, TWO_STREAMS, problems_of
from epochwatt.schedule.sets import Set
from epochwatt.schedule.simulation import Arrivals, Interleaved
from epochwatt.schedule.solution import NONE, Answers
from epochwatt.schedule.solvers import exhaustive, gmd
from epochwatt.schedule.space import Places, Problems, Space

KINDS: tuple[Arrivals, ...] = ("constant", "poisson")
N_DRAWN, SEED = 200, 0
N_STREAMS, N_BATCHES = 10, 100
_AT_ONCE = 1 << 20  # requests that are played at once
SOLVERS = {"exhaustive": exhaustive.solve, "gmd": gmd.solve}
SET_COLUMNS = ("provenance", "device", "jobs", "train", "infer")
COLUMNS = (
    *(*SET_COLUMNS, "solver", "arrivals", "n_plans", "n_requests"),
    *("late_pct", "late_p90_pct", "kept_p99_pct", "kept_worst_pct", "assumed"),
)


def arrival_rows(one: Set) -> Iterator[dict[str, Any]]:
    """Yield what comes of the plans of a set's problems, for each solver and kind of arrivals.

    Of plans: the mean share of late requests, and that which a tenth of them exceeds; shares of
    plans with 99 % of requests in time, and with all of them.
    """
    space = one.space
    size = (ONE_STREAM, TWO_STREAMS)[len(space.infer) > 1]
    problems = problems_of(space, size, budgets_w=one.study.power_w)
    drawn = np.random.default_rng(SEED).choice(len(problems), N_DRAWN, replace=False)
    problems = problems.only(np.sort(drawn))
    for name, solve in SOLVERS.items():
        answers: Answers = solve(space, problems)
        for arrivals in KINDS:
            late, n_requests = _late(space, problems, answers, arrivals)
            yield {
                **{"solver": name, "arrivals": arrivals},
                **{"n_plans": len(late), "n_requests": n_requests},
                **(_statistics(late) if late.size else {}),
            }


def _statistics(late: Numbers) -> dict[str, float]:
    return {
        "late_pct": 100 * float(late.mean()),
        "late_p90_pct": 100 * float(np.quantile(late, 0.9)),
        "kept_p99_pct": 100 * float((late <= 0.01).mean()),
        "kept_worst_pct": 100 * float((late == 0).mean()),
    }


def _late(
    space: Space, problems: Problems, answers: Answers, arrivals: Arrivals
) -> tuple[Numbers, int]:
    """Return the share of late requests of each plan, and how many requests there were in all."""
    solved = np.flatnonzero(answers.choice != NONE)
    problems, choice = problems.only(solved), answers.choice[solved]
    n_late, n_played = np.zeros((2, len(solved)))
    for some, waited in _played(space, problems, choice, arrivals):
        for latencies, most_s in zip(waited, problems.max_latencies_s[some].T, strict=True):
            n_late[some] += (latencies > most_s[:, None] * (1 + SLACK)).sum(1)
            n_played[some] += latencies.shape[1]
    return n_late / n_played, int(n_played.sum())


def _played(
    space: Space, problems: Problems, choice: Places, arrivals: Arrivals
) -> Iterator[tuple[Places, tuple[Numbers, ...]]]:
    """Yield some of the plans, and how long the requests of each stream wait under them.

    Plans of one stream are played beside each other where their mini-batches are as large.
    """
    if len(space.infer) == 2:
        for place in range(len(problems)):
            waited = played(space, _problem(space, problems, place), int(choice[place]), arrivals)
            yield np.array([place]), tuple(latencies.reshape(1, -1) for latencies in waited)
        return
    mode, size = space.choices[choice].T
    infer, n_train = space.infer[0], space.n_train(problems, choice)
    train_s = np.zeros(len(choice)) if space.train is None else space.train.time_s[mode, 0]
    for step in np.unique(size):
        batch_size = int(infer.batch_sizes[step])
        n_at_once = max(_AT_ONCE // (N_STREAMS * N_BATCHES * batch_size), 1)
        alike = np.flatnonzero(size == step)
        for some in np.split(alike, range(n_at_once, len(alike), n_at_once)):
            infer_s = infer.time_s[mode[some], step]
            run = Interleaved(batch_size, infer_s, n_train[some], train_s[some])
            latencies = simulation.played_latencies_s(
                problems.rates_per_s[some, 0], run, arrivals, N_STREAMS, N_BATCHES
            )
            yield some, (latencies.reshape(len(some), -1),)


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
    longest_s = max(
        N_BATCHES * run.batch_size / rate for run, rate in zip(runs, rates, strict=True)
    )
    times = tuple(
        simulation.arrivals_s(
            arrivals, rate, (N_STREAMS, int(longest_s * rate / run.batch_size) * run.batch_size)
        )
        for run, rate in zip(runs, rates, strict=True)
    )
    return simulation.latencies_of_two_s((times[0], times[1]), (runs[0], runs[1]))


def interleaved(space: Space, problem: Problem, choice: int) -> list[Interleaved]:
    """Return what a choice runs, of each stream."""
    mode, *sizes = space.choices[choice]
    n_train = space.plan(problem, choice).n_train
    train_s = 0.0 if space.train is None else float(space.train.time_s[mode, 0])
    return [
        Interleaved(int(one.batch_sizes[k]), float(one.time_s[mode, k]), n_train, train_s)
        for one, k in zip(space.infer, sizes, strict=True)
    ]
