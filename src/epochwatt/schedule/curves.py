"""Curves of plans: training throughput over power budgets, and latencies of single plans.

All are of one problem of each pair that trains and serves: a stream of `LOAD` of the highest rate,
with a latency budget of `LATENCY`, relative as in the sampler.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.records.interleaved_folder import read
from epochwatt.schedule import played, simulation
from epochwatt.schedule.evaluation import Named
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.problem import Problem, Stream
from epochwatt.schedule.sampler import N_BUDGETS, problem_at
from epochwatt.schedule.sets import Set
from epochwatt.schedule.simulation import Arrivals, Interleaved
from epochwatt.schedule.solution import NONE
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.space import Problems

LOAD, LATENCY = 0.3, 40.0
PERCENTILES = (*range(100), 99.5, 99.9, 100)
POWER_COLUMNS = (
    *(*played.SET_COLUMNS, "rate_per_s", "max_latency_s"),
    *("solver", "max_power_w", "throughput_per_s", "assumed"),
)
LATENCY_COLUMNS = (
    *(*played.SET_COLUMNS, "plan", "arrivals", "rate_per_s", "batch_size", "n_train"),
    *("max_latency_s", "percentile", "latency_s", "assumed"),
)


def power_rows(one: Set, named: Mapping[str, Named]) -> Iterator[dict[str, Any]]:
    """Yield the training throughput of each solver's plan under each power budget, at one rate."""
    space = one.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    powers = np.linspace(one.study.power_w[0], one.study.power_w[1], N_BUDGETS)
    problems = Problems(powers, np.tile(rate, (len(powers), 1)), np.tile(latency, (len(powers), 1)))
    solved = {"exhaustive": exhaustive.solve(space, problems)}
    solved |= {name: solver.solve(space, problems, 0) for name, solver in named.items()}
    for name, answers in solved.items():
        judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
        kept = (answers.choice != NONE) & judged.holds[:, 0]
        for power_w, keeps, cost in zip(powers, kept, judged.cost[:, 0], strict=True):
            yield {
                **{"solver": name, "max_power_w": float(power_w), "rate_per_s": float(rate[0])},
                "max_latency_s": float(latency[0]),
                "throughput_per_s": -float(cost) if keeps else "",
            }


def latency_rows(one: Set) -> Iterator[dict[str, Any]]:
    """Yield percentiles of latencies under the best plan at the greatest power budget."""
    space = one.space
    rate, latency = problem_at(space, LOAD, LATENCY)
    stream = Stream(rate_per_s=float(rate[0]), max_latency_s=float(latency[0]))
    problem = Problem(max_power_w=one.study.power_w[1], streams=(stream,), trains=True)
    choice = int(exhaustive.solve(space, Problems.from_one(problem)).choice[0])
    if choice == NONE:
        return
    (run,) = played.interleaved(space, problem, choice)
    shared = _plan_cells(run, stream.rate_per_s) | {"max_latency_s": stream.max_latency_s}
    for arrivals in played.KINDS:
        (waited,) = played.played(space, problem, choice, arrivals)
        yield from _percentiles(shared | {"arrivals": arrivals}, waited)


def measured_rows(folder: str) -> Iterator[dict[str, Any]]:
    """Yield percentiles of a measurement's latencies, and of its plan played with the same times.

    The budget is the formula's worst latency of steady arrivals, with the median time of a
    mini-batch alone; requests that were not served are left out.
    """
    record = read(folder)
    plan, before = record.meta["plan"], record.meta["before"]
    infer_s, train_s = (float(np.median(before[key])) for key in ("infer_s", "train_s"))
    rate, size = plan["rate_per_s"], plan["batch_size"]
    n_most = int(max(size / rate - infer_s, 0) / train_s)
    n_train = n_most if plan["n_train"] is None else min(n_most, plan["n_train"])
    run = Interleaved(size, infer_s, n_train, train_s)
    shared = {
        **{"device": record.meta["backend"], "jobs": "train_and_infer"},
        **{"train": plan["train"], "infer": plan["infer"], "arrivals": plan["arrivals"]},
        **(_plan_cells(run, rate) | {"plan": Path(folder).name}),
        "max_latency_s": (size - 1) / rate + infer_s,
    }
    waited = record.requests["end_s"] - record.requests["arrival_s"]
    waited = waited[np.isfinite(waited)]
    provenance = "fake" if record.meta["backend"] == "fake" else "measured"
    if waited.size:
        yield from _percentiles(shared | {"provenance": provenance}, waited)
    arrivals: Arrivals = "constant" if plan["arrivals"] == "constant" else "poisson"
    expected = simulation.played_latencies_s(rate, run, arrivals)
    yield from _percentiles(shared | {"provenance": "simulated"}, expected)


def _plan_cells(run: Interleaved, rate_per_s: float) -> dict[str, Any]:
    return {"rate_per_s": rate_per_s, "batch_size": run.batch_size, "n_train": run.n_train}


def _percentiles(shared: dict[str, Any], latencies: Numbers) -> Iterator[dict[str, Any]]:
    values = np.percentile(latencies, PERCENTILES)
    for percentile, value in zip(PERCENTILES, values, strict=True):
        yield shared | {"percentile": percentile, "latency_s": float(value)}
