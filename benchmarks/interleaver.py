"""Does taking turns keep answers steady? `python -m benchmarks interleaver`, some three minutes.

One network trains and another answers, `SECONDS` at a time and in turn: interleaved in one process;
as two processes, which the system shares the CPU out to; and the answers alone. All of it is pinned
to one CPU, as a board has one GPU, with one thread each. Requests arrive at a constant rate, so the
formulas of `schedule.plans` hold.

The cost of a request is that of the interleaver's own code: jobs that do nothing, and requests that
are all there.
"""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.results import Result, Row, at_most
from epochwatt.schedule.plans import serve_and_train
from epochwatt.training.interleave.arrivals import CONSTANT, arrivals
from epochwatt.training.interleave.jobs import Job, make_job, time_before
from epochwatt.training.interleave.scheduler import HostClock, Interleaver, Log, Plan

N_ROUNDS, SECONDS = 6, 4.0
TRAIN, TRAIN_SIZE = "lenet", 16
PLANS = {
    "mobilenet": Plan(rate_per_s=8.0, batch_size=1, n_train=None, queue=1000),
    "lenet": Plan(rate_per_s=200.0, batch_size=8, n_train=None, queue=1000),
}
INTERLEAVED, TWO_PROCESSES, ALONE = WAYS = ("interleaved", "two processes", "answers alone")
N_REQUESTS = 100_000  # for the cost of one
START_S = 60.0  # that the competing process may take to be ready


class Measured(NamedTuple):
    """One go: latencies (n,), s; training, mini-batches/s; formulas of the times before it."""

    latency_s: Any
    throughput_per_s: float
    formula_latency_s: float
    formula_throughput_per_s: float
    trained_s: float  # longest mini-batch of training
    busy_throughput_per_s: float  # what the formula gives with the mean times of the go itself


class Competitor:
    """A process that trains while it is let."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._go, self._ready, self._end = context.Event(), context.Event(), context.Event()
        self._count = context.Value("q", 0)
        parts = (self._go, self._ready, self._end, self._count)
        self._process = context.Process(target=_compete, args=parts, daemon=True)
        self._process.start()
        if not self._ready.wait(START_S):
            raise TimeoutError("the competing process is not ready")

    @contextmanager
    def training(self) -> Iterator[Any]:
        """Let it train inside the block; yields a counter of its mini-batches."""
        self._count.value = 0
        self._go.set()
        try:
            yield self._count
        finally:
            self._go.clear()

    def close(self) -> None:
        """End it."""
        self._end.set()
        self._go.set()
        self._process.join()


def _compete(go: Any, ready: Any, end: Any, count: Any) -> None:
    torch.set_num_threads(1)
    train = _job("train", TRAIN, TRAIN_SIZE)
    train()
    ready.set()
    while go.wait() and not end.is_set():
        train()
        count.value += 1


def _job(task: str, model: str, size: int) -> Job:
    return make_job({"model": model, "task": task, "seed": 0}, size, torch.device("cpu"))


def run(quick: bool = False) -> Result:
    """Measure all ways in turn; `quick` only shows that it works."""
    threads, cpus = torch.get_num_threads(), os.sched_getaffinity(0)
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(cpus)})  # the competitor inherits it
    competitor = Competitor()
    try:
        rows: list[Row] = []
        load = [os.getloadavg()[0]]
        for infer, plan in PLANS.items():
            rows += _rows(infer, plan, _goes(infer, plan, competitor, quick))
        load.append(os.getloadavg()[0])
    finally:
        competitor.close()
        os.sched_setaffinity(0, cpus)
        torch.set_num_threads(threads)
    costs = [cost_us(1000 if quick else N_REQUESTS) for _ in range(1 if quick else N_ROUNDS)]
    rows.append(Row("interleaver's cost of a request", costs, "us", 1, at_most(50.0)))
    return Result(rows, {"load_average": load})


def _goes(infer: str, plan: Plan, competitor: Competitor, quick: bool) -> dict[str, list[Measured]]:
    """Return what was measured, one of each way a round, in another order each round."""
    serve, train = _job("infer", infer, plan.batch_size), _job("train", TRAIN, TRAIN_SIZE)
    goes: dict[str, list[Measured]] = {way: [] for way in WAYS}
    seconds = 0.3 if quick else SECONDS
    for number in range(1 if quick else N_ROUNDS):
        for place in range(len(WAYS)):
            way = WAYS[(number + place) % len(WAYS)]
            before = time_before(serve, train)
            limits = plan if way == INTERLEAVED else plan._replace(n_train=0)
            runner = Interleaver(limits, serve, train, before[1])
            times = arrivals(CONSTANT, plan.rate_per_s, seconds, 0)
            if way == TWO_PROCESSES:
                with competitor.training() as count:
                    log = runner.run(times, seconds)
                    n_train = count.value
            else:
                log = runner.run(times, seconds)
                n_train = len(log.train_end_s)
            goes[way].append(_measured(log, n_train, plan, before))
    return goes


def _measured(
    log: Log, n_train: int, plan: Plan, before: tuple[list[float], list[float]]
) -> Measured:
    infer_s, train_s = map(np.median, before)
    formula = serve_and_train(plan.rate_per_s, plan.batch_size, (infer_s, 0), (train_s, 0))
    start_s, end_s = np.array(log.start_s), np.array(log.end_s)
    served = np.isfinite(end_s)
    trained_s = np.subtract(log.train_end_s, log.train_start_s)
    mean_s = trained_s.mean() if len(trained_s) else np.inf
    serving_s = (end_s - start_s)[served].mean()
    itself = serve_and_train(plan.rate_per_s, plan.batch_size, (serving_s, 0), (mean_s, 0))
    return Measured(
        latency_s=(end_s - log.arrival_s)[served],
        throughput_per_s=n_train / (log.t_end_s - log.t_start_s),
        formula_latency_s=float(formula.latency_s),
        formula_throughput_per_s=float(formula.throughput_per_s),
        trained_s=float(trained_s.max(initial=0.0)),
        busy_throughput_per_s=float(itself.throughput_per_s),
    )


def _rows(infer: str, plan: Plan, goes: dict[str, list[Measured]]) -> list[Row]:
    rows = []
    for way, measured in goes.items():
        percentiles = [1e3 * np.percentile(go.latency_s, (50, 99, 100)) for go in measured]
        for name, place in (("p50", 0), ("p99", 1), ("worst", 2)):
            rows.append(
                Row(f"{infer}, {way}: {name}", [float(p[place]) for p in percentiles], "ms", 1)
            )
        deviations = [1e3 * float(np.std(_served_s(go, plan))) for go in measured]
        rows.append(Row(f"{infer}, {way}: standard deviation", deviations, "ms", 2))
        if way != ALONE:
            rates = [go.throughput_per_s for go in measured]
            rows.append(Row(f"{infer}, {way}: training", rates, "/s", 1))
    ours, theirs = goes[INTERLEAVED], goes[TWO_PROCESSES]
    pairs = list(zip(ours, theirs, strict=True))
    ratios = {
        "deviation, interleaved / two processes": [
            float(np.std(_served_s(a, plan)) / np.std(_served_s(b, plan))) for a, b in pairs
        ],
        "p99, interleaved / two processes": [
            float(np.percentile(a.latency_s, 99) / np.percentile(b.latency_s, 99)) for a, b in pairs
        ],
        "training, interleaved / two processes": [
            a.throughput_per_s / b.throughput_per_s for a, b in pairs
        ],
        "training / formula, times before": [
            go.throughput_per_s / go.formula_throughput_per_s for go in ours
        ],
        "training / formula, times of the go": [
            go.throughput_per_s / go.busy_throughput_per_s for go in ours
        ],
        "worst / formula": [float(go.latency_s.max()) / go.formula_latency_s for go in ours],
        "worst / (formula + longest training)": [
            float(go.latency_s.max()) / (go.formula_latency_s + go.trained_s) for go in ours
        ],
    }
    budget = {"deviation, interleaved / two processes": at_most(1.0)}
    rows += [
        Row(f"{infer}: {what}", values, "", 2, budget.get(what)) for what, values in ratios.items()
    ]
    return rows


def _served_s(go: Measured, plan: Plan) -> Any:
    """Return latencies of the last request of each mini-batch: it waits for no other, (n,), s."""
    whole = len(go.latency_s) // plan.batch_size * plan.batch_size
    return go.latency_s[plan.batch_size - 1 : whole : plan.batch_size]


def cost_us(n_requests: int) -> float:
    """Return the interleaver's own time of a request, us, each in a mini-batch of its own."""
    plan = Plan(1e9, 1, 1, n_requests)
    runner = Interleaver(plan, _nothing, _nothing, [0.0])
    log = runner.run([0.0] * n_requests, 1e-9)
    return 1e6 * (HostClock.now() - log.t_start_s) / n_requests


def _nothing() -> None:
    """Do nothing."""
