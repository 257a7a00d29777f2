"""Does taking turns keep answers steady? `python -m benchmarks interleaver`, under five minutes.

One network trains and another answers, both ways in turn: interleaved in one process, and as two
processes that the system shares the machine out to; on a GPU also as two CUDA streams of one
process. Without a GPU all of it is pinned to one CPU, as a board has one GPU, with one thread each.
Requests arrive at a constant rate, so the formulas of `schedule.problem` hold.

Whether the worst latency keeps to the formula and its margin (`schedule.interleaved.expected`) is
asked of longer goes. Each has as many requests as ten minutes of ten a second, so as many chances
to be late; they come faster, so it takes seconds. Beside them stands the longest time for which a
mini-batch did not have the CPU: no scheduler inside a process can do anything about that.

The cost of a request is that of the interleaver's own code: jobs that do nothing, and requests that
are all there.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.results import Budget, Result, Row, at_most
from epochwatt.board.training.interleave.arrivals import CONSTANT, arrivals
from epochwatt.board.training.interleave.scheduler import HostClock, Interleaver, Log, Plan
from epochwatt.board.training.interleave.session import Job, make_job, time_before
from epochwatt.schedule.interleaved import Expected, expected

N_ROUNDS, SECONDS = 6, 3.0
TRAIN, TRAIN_SIZE = "lenet", 16
PLANS = {
    "mobilenet": Plan(rate_per_s=8.0, batch_size=1, n_train=None, queue=1000),
    "lenet": Plan(rate_per_s=200.0, batch_size=8, n_train=None, queue=1000),
}
N_LONG, LONG_S = 20, 8.0
# 6,000 requests, as many as in ten minutes of ten a second
LONG = Plan(rate_per_s=750.0, batch_size=16, n_train=None, queue=1000)
BEFORE_SHARE = 0.1  # of a go's time, to time single mini-batches
INTERLEAVED, TWO_PROCESSES, TWO_STREAMS = "interleaved", "two processes", "two streams"
WITHIN = "long goes within formula + margin"
N_REQUESTS = 100_000  # for the cost of one
START_S = 60.0  # that the competing process may take to be ready


class Measured(NamedTuple):
    """What one go took."""

    latency_s: Any  # (n,), of the requests
    throughput_per_s: float  # mini-batches of training
    expected: Expected  # what the times before it promise
    trained_s: float  # the longest mini-batch of training before it
    itself: Expected  # what the mean times of the go itself promise
    # longest time for which a mini-batch did not have the CPU; of a GPU that means nothing
    taken_s: float


class Watched:
    """A job that notes the longest time in which its thread did not have the CPU, s."""

    def __init__(self, job: Job) -> None:
        self._job, self.taken_s = job, 0.0

    def __call__(self) -> None:
        wall_s, cpu_s = HostClock.now(), time.thread_time()
        self._job()
        taken_s = (HostClock.now() - wall_s) - (time.thread_time() - cpu_s)
        self.taken_s = max(self.taken_s, taken_s)


class Competitor:
    """A process, or a thread with a stream of the GPU for itself, that trains while it is let."""

    def __init__(self, way: str) -> None:
        if way == TWO_PROCESSES:
            context: Any = multiprocessing.get_context("spawn")
            start, self._count = context.Process, context.Value("q", 0)
        else:
            context, start, self._count = threading, threading.Thread, SimpleNamespace(value=0)
        self._go, self._ready, self._end = context.Event(), context.Event(), context.Event()
        parts = (self._go, self._ready, self._end, self._count)
        self._runs = start(target=_compete, args=(way, *parts), daemon=True)
        self._runs.start()
        if not self._ready.wait(START_S):
            raise TimeoutError(f"what competes ({way}) is not ready")

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
        self._runs.join()


def _compete(way: str, go: Any, ready: Any, end: Any, count: Any) -> None:
    torch.set_num_threads(1)
    with torch.cuda.stream(torch.cuda.Stream()) if way == TWO_STREAMS else nullcontext():
        train = _job("train", TRAIN, TRAIN_SIZE)
        train()
        ready.set()
        while go.wait() and not end.is_set():
            train()
            count.value += 1


def _job(task: str, model: str, size: int) -> Job:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return make_job({"model": model, "task": task, "seed": 0}, size, device)


def run(quick: bool = False) -> Result:
    """Measure all ways in turn, then the long goes; `quick` only shows that it works."""
    load = [os.getloadavg()[0]]
    rows, details = compared(PLANS, 1 if quick else N_ROUNDS, 0.3 if quick else SECONDS)
    with _one_thread():
        serve = _job("infer", TRAIN, LONG.batch_size), _job("train", TRAIN, TRAIN_SIZE)
        n, seconds = (1, 0.3) if quick else (N_LONG, LONG_S)
        rows += long_rows([_go(*serve, LONG, seconds) for _ in range(n)])
    costs = [cost_us(1000 if quick else N_REQUESTS) for _ in range(1 if quick else N_ROUNDS)]
    rows.append(Row("interleaver's cost of a request", costs, "us", 1, at_most(50.0)))
    load.append(os.getloadavg()[0])
    return Result(rows, {"load_average": load, **details})


def compared(
    plans: dict[str, Plan], n_rounds: int, seconds: float
) -> tuple[list[Row], dict[str, str]]:
    """Measure the ways in turn; return the rows, and which way was left out, and why."""
    ways, left_out = competing()
    rows = []
    with _one_thread():
        others: dict[str, Competitor] = {}
        try:
            for way in ways:
                others[way] = Competitor(way)  # a process inherits the one CPU
            for infer, plan in plans.items():
                rows += _rows(infer, plan, _goes(infer, plan, others, n_rounds, seconds))
        finally:
            for other in others.values():
                other.close()
    return rows, left_out


def competing() -> tuple[list[str], dict[str, str]]:
    """Return the ways beside ours that can be measured here, and why another one cannot."""
    if torch.cuda.is_available():
        return [TWO_PROCESSES, TWO_STREAMS], {}
    why = "left out: torch sees no GPU here"
    print(f"{TWO_STREAMS}: {why}", file=sys.stderr)
    return [TWO_PROCESSES], {TWO_STREAMS: why}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread inside the block, and without a GPU on one CPU."""
    threads, cpus = torch.get_num_threads(), os.sched_getaffinity(0)
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        os.sched_setaffinity(0, {max(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
        torch.set_num_threads(threads)


def _goes(
    infer: str, plan: Plan, others: dict[str, Competitor], n_rounds: int, seconds: float
) -> dict[str, list[Measured]]:
    """Return what was measured, one of each way a round, in another order each round."""
    jobs = _job("infer", infer, plan.batch_size), _job("train", TRAIN, TRAIN_SIZE)
    ways = [INTERLEAVED, *others]
    goes: dict[str, list[Measured]] = {way: [] for way in ways}
    for number in range(n_rounds):
        for place in range(len(ways)):
            way = ways[(number + place) % len(ways)]
            goes[way].append(_go(*jobs, plan, seconds, others.get(way)))
    return goes


def _go(
    serve: Job, train: Job, plan: Plan, seconds: float, other: Competitor | None = None
) -> Measured:
    """Measure once: interleaved, or beside what competes."""
    before = time_before(serve, train, BEFORE_SHARE * seconds)
    limits = plan if other is None else plan._replace(n_train=0)
    watched = Watched(serve), Watched(train)
    runner = Interleaver(limits, *watched, before[1])
    times = arrivals(CONSTANT, plan.rate_per_s, seconds, 0)
    if other is None:
        log = runner.run(times, seconds)
        n_train = len(log.train_end_s)
    else:
        with other.training() as count:
            log = runner.run(times, seconds)
            n_train = count.value
    measured = _measured(log, n_train, plan, before)
    return measured._replace(taken_s=max(job.taken_s for job in watched))


def _measured(
    log: Log, n_train: int, plan: Plan, before: tuple[list[float], list[float]]
) -> Measured:
    start_s, end_s = np.array(log.start_s), np.array(log.end_s)
    served = np.isfinite(end_s)
    trained_s = np.subtract(log.train_end_s, log.train_start_s)
    mean_s = trained_s.mean() if len(trained_s) else np.inf
    serving_s = (end_s - start_s)[served].mean()
    return Measured(
        latency_s=(end_s - log.arrival_s)[served],
        throughput_per_s=n_train / (log.t_end_s - log.t_start_s),
        expected=_expected(plan, *before),
        trained_s=max(before[1]),
        itself=_expected(plan, [serving_s], [mean_s]),
        taken_s=0.0,
    )


def _expected(plan: Plan, infer_s: Sequence[float], train_s: Sequence[float]) -> Expected:
    return expected(plan._asdict(), {"infer_s": infer_s, "train_s": train_s})


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
        rates = [go.throughput_per_s for go in measured]
        rows.append(Row(f"{infer}, {way}: training", rates, "/s", 1))
    ours = goes[INTERLEAVED]
    for way in list(goes)[1:]:
        rows += _ratios(infer, plan, way, list(zip(ours, goes[way], strict=True)))
    return [*rows, *_training_rows(infer, ours)]


def _ratios(infer: str, plan: Plan, way: str, pairs: list[tuple[Measured, Measured]]) -> list[Row]:
    """Return how interleaving does against another way, by goes of one round."""
    deviation = [float(np.std(_served_s(a, plan)) / np.std(_served_s(b, plan))) for a, b in pairs]
    p99 = [float(np.percentile(a.latency_s, 99) / np.percentile(b.latency_s, 99)) for a, b in pairs]
    training = [a.throughput_per_s / b.throughput_per_s for a, b in pairs]
    beside = f"interleaved / {way}"
    return [
        Row(f"{infer}: deviation, {beside}", deviation, "", 2, at_most(1.0)),
        Row(f"{infer}: p99, {beside}", p99, "", 2),
        Row(f"{infer}: training, {beside}", training, "", 2),
    ]


def _training_rows(name: str, goes: Sequence[Measured]) -> list[Row]:
    """Return training beside the plan's; goes whose plan trains nothing have no ratio."""
    ratios = {
        "times before": [
            go.throughput_per_s / go.expected.throughput_per_s
            for go in goes
            if go.expected.throughput_per_s > 0
        ],
        "times of the go": [
            go.throughput_per_s / go.itself.throughput_per_s
            for go in goes
            if go.itself.throughput_per_s > 0
        ],
    }
    return [
        Row(f"{name}: training / formula, {times}", values, "", 2)
        for times, values in ratios.items()
        if values
    ]


def long_rows(goes: Sequence[Measured]) -> list[Row]:
    """Return how many goes kept their worst latency within the formula, and within a margin."""
    worst_s = np.array([go.latency_s.max() for go in goes])
    formula_s = np.array([go.expected.latency_s for go in goes])
    trained_s = np.array([go.trained_s for go in goes])
    bound_s = formula_s + [go.expected.margin_s for go in goes]
    taken_s = np.array([go.taken_s for go in goes])
    shares = {
        "long goes within the formula": (formula_s, None),
        "long goes within formula + longest training before": (formula_s + trained_s, None),
        WITHIN: (bound_s, Budget(95.0, 100.0, "95 to 100")),
        f"{WITHIN} + longest time taken away": (bound_s + taken_s, None),
    }
    rows = [
        Row(f"{what}, of {len(goes)}", [100 * float((worst_s <= most_s).mean())], "%", 0, budget)
        for what, (most_s, budget) in shares.items()
    ]
    return [
        *rows,
        Row("long goes: requests", [float(len(go.latency_s)) for go in goes], "", 0),
        Row("long goes: formula", list(1e3 * formula_s), "ms", 1),
        Row("long goes: margin", list(1e3 * (bound_s - formula_s)), "ms", 1),
        Row("long goes: worst", list(1e3 * worst_s), "ms", 1),
        Row("long goes: longest time taken away", list(1e3 * taken_s), "ms", 1),
        Row("long goes: worst / (formula + margin)", list(worst_s / bound_s), "", 2),
        *_training_rows("long goes", goes),
    ]


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
