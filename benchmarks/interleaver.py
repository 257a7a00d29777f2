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
from epochwatt.board.training.interleave.scheduler import HostClock, Interleaver, Plan
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
    rows, left_out = [], {}
    with _one_thread():
        others = {TWO_PROCESSES: Competitor(TWO_PROCESSES)}  # inherits the one CPU
        if torch.cuda.is_available():
            others[TWO_STREAMS] = Competitor(TWO_STREAMS)
        else:
            left_out[TWO_STREAMS] = "left out: torch sees no GPU here"
        try:
            for infer, plan in plans.items():
                jobs = _job("infer", infer, plan.batch_size), _job("train", TRAIN, TRAIN_SIZE)
                ways = [INTERLEAVED, *others]
                goes: dict[str, list[Measured]] = {way: [] for way in ways}
                for number in range(n_rounds * len(ways)):
                    # in another order each round
                    way = ways[sum(divmod(number, len(ways))) % len(ways)]
                    goes[way].append(_go(*jobs, plan, seconds, others.get(way)))
                rows += _rows(infer, plan, goes)
        finally:
            for other in others.values():
                other.close()
    return rows, left_out


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
    start_s, end_s = np.array(log.start_s), np.array(log.end_s)
    served = np.isfinite(end_s)
    trained_s = np.subtract(log.train_end_s, log.train_start_s)
    mean_s = trained_s.mean() if len(trained_s) else np.inf
    serving_s = (end_s - start_s)[served].mean()
    itself = {"infer_s": [serving_s], "train_s": [mean_s]}
    return Measured(
        latency_s=(end_s - log.arrival_s)[served],
        throughput_per_s=n_train / (log.t_end_s - log.t_start_s),
        expected=expected(plan._asdict(), {"infer_s": before[0], "train_s": before[1]}),
        trained_s=max(before[1]),
        itself=expected(plan._asdict(), itself),
        taken_s=max(job.taken_s for job in watched),
    )


def _rows(infer: str, plan: Plan, goes: dict[str, list[Measured]]) -> list[Row]:
    """Return latencies and training of each way, and ours against the others by goes of a round."""
    rows, found = [], {}
    for way, measured in goes.items():
        p50_s, p99_s, worst_s = np.transpose(
            [np.percentile(go.latency_s, (50, 99, 100)) for go in measured]
        )
        # of the last request of each mini-batch: it waits for no other
        size = plan.batch_size
        whole = [go.latency_s[: len(go.latency_s) // size * size] for go in measured]
        deviation_s = np.array([np.std(latency_s[size - 1 :: size]) for latency_s in whole])
        training = np.array([go.throughput_per_s for go in measured])
        found[way] = {"deviation": deviation_s, "p99": p99_s, "training": training}
        what = f"{infer}, {way}: "
        for name, of_s in (("p50", p50_s), ("p99", p99_s), ("worst", worst_s)):
            rows.append(Row(f"{what}{name}", list(1e3 * of_s), "ms", 1))
        rows.append(Row(f"{what}standard deviation", list(1e3 * deviation_s), "ms", 2))
        rows.append(Row(f"{what}training", list(training), "/s", 1))
    ours = found.pop(INTERLEAVED)
    for way, theirs in found.items():
        for name, values in ours.items():
            budget = at_most(1.0) if name == "deviation" else None
            ratios = list(values / theirs[name])
            rows.append(Row(f"{infer}: {name}, interleaved / {way}", ratios, "", 2, budget))
    return [*rows, *_training_rows(infer, goes[INTERLEAVED])]


def _training_rows(name: str, goes: Sequence[Measured]) -> list[Row]:
    """Return training beside the plan's; goes whose plan trains nothing have no ratio."""
    rows = []
    for times, of in (("times before", "expected"), ("times of the go", "itself")):
        planned = [(go.throughput_per_s, getattr(go, of).throughput_per_s) for go in goes]
        if ratios := [found / plan for found, plan in planned if plan > 0]:
            rows.append(Row(f"{name}: training / formula, {times}", ratios, "", 2))
    return rows


def long_rows(goes: Sequence[Measured]) -> list[Row]:
    """Return how many goes kept their worst latency within the formula, and within a margin."""
    worst, formula, margin, trained, taken = 1e3 * np.transpose(
        [
            (g.latency_s.max(), g.expected.latency_s, g.expected.margin_s, g.trained_s, g.taken_s)
            for g in goes
        ]
    )
    rows = [
        Row(f"{what}, of {len(goes)}", [100 * float((worst <= most).mean())], "%", 0, budget)
        for what, most, budget in (
            ("long goes within the formula", formula, None),
            ("long goes within formula + longest training before", formula + trained, None),
            (WITHIN, formula + margin, Budget(95.0, 100.0, "95 to 100")),
            (f"{WITHIN} + longest time taken away", formula + margin + taken, None),
        )
    ]
    rows.append(Row("long goes: requests", [float(len(go.latency_s)) for go in goes], "", 0))
    for name, of_ms in (
        ("formula", formula),
        ("margin", margin),
        ("worst", worst),
        ("longest time taken away", taken),
    ):
        rows.append(Row(f"long goes: {name}", of_ms.tolist(), "ms", 1))
    ratios = (worst / (formula + margin)).tolist()
    rows.append(Row("long goes: worst / (formula + margin)", ratios, "", 2))
    return [*rows, *_training_rows("long goes", goes)]


def cost_us(n_requests: int) -> float:
    """Return the interleaver's own time of a request, us, each in a mini-batch of its own."""
    plan = Plan(1e9, 1, 1, n_requests)
    runner = Interleaver(plan, lambda: None, lambda: None, [0.0])
    log = runner.run([0.0] * n_requests, 1e-9)
    return 1e6 * (HostClock.now() - log.t_start_s) / n_requests
