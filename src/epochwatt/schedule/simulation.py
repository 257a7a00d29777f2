"""Play the arrivals of streams under a plan: how long each request waits, and what is trained.

The board runs one mini-batch at a time. One of inference starts as soon as its last request is
there and nothing runs; in the time between, up to n mini-batches of training run, each of which is
started only while no mini-batch of inference waits, and never stopped. Mini-batches of two streams
run in the order in which they are complete. That is Fulcrum's rule (`play`, `latencies_of_two_s`).

`epochwatt serve-and-train` has a more careful one, which begins a mini-batch of training only where
it will have ended when the next mini-batch of requests is expected: `run_as` plays its scheduler on
a clock of its own, so that a plan and what runs it have one rule.
"""

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.board.training.interleave.arrivals import POISSON, arrivals
from epochwatt.board.training.interleave.plan import QUEUE
from epochwatt.board.training.interleave.scheduler import Interleaver, Plan
from epochwatt.schedule.problem import SLACK, Numbers

Arrivals = Literal["constant", "poisson"]
N_STREAMS, N_BATCHES = 50, 400  # of the simulation of one plan
N_EVENTS = 40_000  # requests, and mini-batches of training between them, of `at_random`


class Interleaved(NamedTuple):
    """Mini-batches that a plan runs; all but the batch size may differ from stream to stream: (r,).

    `batch_size`: requests of a mini-batch
    `infer_s`, `train_s`: time of one mini-batch
    `n_train`: mini-batches of training after one of inference, at most
    """

    batch_size: int
    infer_s: ArrayLike
    n_train: ArrayLike = 0
    train_s: ArrayLike = 0.0


class Slot(NamedTuple):
    """A stretch of time that begins at 0 with nothing waiting, while clocks may still settle."""

    end_s: float  # no training begins later
    settled_s: Numbers  # (r,), no training begins earlier
    settling_infer_s: Numbers  # (r,), time of a mini-batch of inference that begins earlier


class Played(NamedTuple):
    """Outcome of arrivals under a plan."""

    latency_s: Numbers  # (r, k), from each request's arrival to its answer; infinite: refused
    n_trained: Numbers  # (r,), mini-batches of training


def arrivals_s(kind: Arrivals, rate_per_s: ArrayLike, shape: tuple[int, int]) -> Numbers:
    """Draw arrival times of r streams of k requests, s, shape (r, k); the same in each call.

    A Poisson process, or one request every 1 / rate after a random start within the first period.

    `rate_per_s`: of several rates (n,) the shape is (n, r, k).
    """
    rng, rate = np.random.default_rng(0), np.asarray(rate_per_s, float)[..., None, None]
    if kind == "constant":
        start = rng.uniform(size=(shape[0], 1))  # in periods
        return np.asarray((start + np.arange(shape[1])) / rate)
    return np.asarray((rng.standard_exponential(shape) * (1 / rate)).cumsum(axis=-1))


def play(times_s: Numbers, plan: Interleaved, slot: Slot | None = None) -> Played:
    """Simulate independent streams under a plan; return latencies and mini-batches trained.

    `times_s`: (r, k), of r streams, ascending; k whole mini-batches; infinite: none comes
    `slot`: None: time begins as the first mini-batch is complete, and does not end. In a slot a
    mini-batch is refused while `QUEUE` others wait
    """
    batches = times_s.reshape(len(times_s), -1, plan.batch_size)
    done, n_trained = np.empty(batches.shape[:2]), np.zeros(len(batches))
    max_train = np.asarray(plan.n_train, float)  # may be more than fits an integer
    train_s = np.where(max_train > 0, plan.train_s, 1.0)
    free: Numbers = batches[:, 0, -1]  # when the board is free
    end_s, settled_s = np.inf, np.full(len(batches), -np.inf)
    if slot is not None:
        free, end_s, settled_s = np.zeros(len(batches)), slot.end_s, slot.settled_s
    for i in range(batches.shape[1]):
        complete = batches[:, i, -1]
        begin = np.maximum(free, settled_s)
        n_fit = np.maximum(np.minimum(complete, end_s) - begin, 0) / train_s
        n = np.minimum(np.ceil(n_fit - SLACK * (1 + n_fit)), max_train)
        n_trained += n
        start = np.maximum(complete, np.where(n > 0, begin + n * train_s, free))
        infer_s = np.asarray(plan.infer_s)
        is_refused = np.zeros(len(batches), bool)
        if slot is not None:
            infer_s = np.where(start < settled_s, slot.settling_infer_s, infer_s)
            is_refused = start > complete + QUEUE * infer_s
        done[:, i] = np.where(is_refused, np.inf, start + infer_s)
        free = np.where(is_refused, start, start + infer_s)
    return Played((done[:, :, None] - batches).reshape(len(batches), -1), n_trained)


def latencies_of_two_s(
    times_s: Sequence[Numbers], plans: Sequence[Interleaved]
) -> tuple[Numbers, ...]:
    """Simulate two streams on one board without training; return latencies of each, s.

    `times_s`: arrivals of each stream, (r, k) and (r, l), as of `play`.
    """
    n_streams = len(times_s[0])
    batches = [
        times.reshape(n_streams, -1, plan.batch_size)
        for times, plan in zip(times_s, plans, strict=True)
    ]
    complete = np.hstack([stream[:, :, -1] for stream in batches])
    counts = [stream.shape[1] for stream in batches]
    infer_s = np.repeat([np.asarray(plan.infer_s, float) for plan in plans], counts)
    order = np.argsort(complete, axis=1, kind="stable")
    rows, free = np.arange(n_streams), np.zeros(n_streams)
    done = np.empty(complete.shape)
    for batch in order.T:  # of each row the next complete mini-batch
        free = np.maximum(complete[rows, batch], free) + infer_s[batch]
        done[rows, batch] = free
    ends = np.split(done, counts[:1], axis=1)
    return tuple(
        (end[:, :, None] - stream).reshape(n_streams, -1)
        for end, stream in zip(ends, batches, strict=True)
    )


def played_latencies_s(
    rate_per_s: ArrayLike,
    plan: Interleaved,
    kind: Arrivals = "poisson",
    n_streams: int = N_STREAMS,
    n_batches: int = N_BATCHES,
) -> Numbers:
    """Simulate a plan on r drawn streams of k requests; return their latencies, s, (r, k).

    Several plans of one mini-batch size have rates (n,), and what differs in `plan` is (n,): the
    shape is (n, r, k).
    """
    times = arrivals_s(kind, rate_per_s, (n_streams, n_batches * plan.batch_size))
    infer_s, n_train, train_s = (
        np.repeat(np.broadcast_to(part, np.shape(rate_per_s)), n_streams) for part in plan[1:]
    )
    repeated = Interleaved(plan.batch_size, infer_s, n_train, train_s)  # a row for each stream
    return play(times.reshape(-1, times.shape[-1]), repeated).latency_s.reshape(times.shape)


# -- the scheduler of serve-and-train --------------------------------------------------------------


class AsRun(NamedTuple):
    """Outcome of a plan as `serve-and-train` runs it."""

    share_late: float  # of the requests; refused ones are late
    p99_s: float  # what 99 % of the answered ones wait at most
    throughput_per_s: float  # mini-batches of training a second


class _PlayedClock:
    """A clock that stands still while nothing is waited for."""

    def __init__(self) -> None:
        self._t_s = 0.0

    def now(self) -> float:
        return self._t_s

    def sleep_until(self, t_s: float) -> None:
        self._t_s = max(self._t_s, t_s)


def run_at_random(rate_per_s: float, plan: Interleaved, max_latency_s: float) -> AsRun:
    """Run the scheduler of serve-and-train on Poisson arrivals, the same in each call.

    Where the plan trains at all, it trains as many mini-batches as fit.
    """
    n_train, size = float(plan.n_train), plan.batch_size  # type: ignore[arg-type]
    seconds = N_EVENTS / (1 + n_train / size) / rate_per_s
    limits = Plan(rate_per_s, size, None if n_train else 0, QUEUE * size)
    times_s = arrivals(POISSON, rate_per_s, seconds, 0)
    infer_s, train_s = [float(plan.infer_s)], [float(plan.train_s)]  # type: ignore[arg-type]
    return run_as(limits, infer_s, train_s, times_s, seconds, max_latency_s)


def run_as(
    plan: Plan,
    infer_s: Sequence[float],
    train_s: Sequence[float],
    times_s: Sequence[float],
    seconds: float,
    max_latency_s: float = np.inf,
) -> AsRun:
    """Run the scheduler of serve-and-train on arrivals `times_s`, for `seconds`.

    `infer_s`, `train_s`: times of single mini-batches, of which each that runs takes one at random:
    the scheduler leaves room for the longest of the latest, so their scatter counts
    """
    clock, drawn = _PlayedClock(), random.Random(0)

    def serve() -> None:
        clock.sleep_until(clock.now() + drawn.choice(infer_s))

    def train() -> None:
        clock.sleep_until(clock.now() + drawn.choice(train_s))

    log = Interleaver(plan, serve, train, train_s, clock).run(times_s, seconds)
    waits_s = np.array(log.end_s) - np.array(log.arrival_s)
    refused = np.array(log.refused, bool)
    served = waits_s[np.isfinite(waits_s)]
    n_late = int((served > max_latency_s * (1 + SLACK)).sum() + refused.sum())
    return AsRun(
        n_late / max(len(served) + int(refused.sum()), 1),
        float(np.quantile(served, 0.99)) if len(served) else float("nan"),
        len(log.train_end_s) / log.t_end_s if log.t_end_s else 0.0,
    )
