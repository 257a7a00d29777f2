"""Play the arrivals of streams under a plan: how long each request waits.

The board runs one mini-batch at a time. One of inference starts as soon as its last request is
there and nothing runs; in the time between, up to n mini-batches of training run, each of which is
started only while no mini-batch of inference waits, and never stopped. Mini-batches of two streams
run in the order in which they are complete.
"""

from typing import Literal, NamedTuple

import numpy as np

from epochwatt.schedule.plans import SLACK, Numbers

Arrivals = Literal["constant", "poisson"]
N_STREAMS, N_BATCHES = 50, 400  # of the simulation of one plan


class Interleaved(NamedTuple):
    """What a plan runs.

    Attributes
    ----------
    batch_size : requests of a mini-batch
    infer_s, train_s : time of one mini-batch
    n_train : mini-batches of training after one of inference, at most
    """

    batch_size: int
    infer_s: float
    n_train: int = 0
    train_s: float = 0.0


def arrivals_s(arrivals: Arrivals, rate_per_s: float, shape: tuple[int, int]) -> Numbers:
    """Return when requests arrive: r streams of k each, shape (r, k); always the same ones.

    Those of a Poisson process, or one every 1 / rate from a moment within the first of these on.
    """
    rng = np.random.default_rng(0)
    if arrivals == "constant":
        return (rng.uniform(size=(shape[0], 1)) + np.arange(shape[1])) / rate_per_s
    return rng.exponential(1 / rate_per_s, shape).cumsum(axis=1)


def latencies_s(arrivals: Numbers, plan: Interleaved) -> Numbers:
    """Return the time from each request's arrival to its answer.

    Parameters
    ----------
    arrivals : (r, k), s, of r independent streams, ascending; k whole mini-batches
    """
    n_streams = len(arrivals)
    batches = arrivals.reshape(n_streams, -1, plan.batch_size)
    done = np.empty(batches.shape[:2])
    free = batches[:, 0, -1]  # nothing runs before the first mini-batch is complete
    for i in range(batches.shape[1]):
        complete = batches[:, i, -1]
        gap = np.maximum(complete - free, 0)
        if plan.n_train:
            started = np.ceil(gap / plan.train_s - SLACK * (1 + gap / plan.train_s))
            free = free + np.minimum(started, plan.n_train) * plan.train_s
        free = np.maximum(complete, free) + plan.infer_s
        done[:, i] = free
    waited: Numbers = (done[:, :, None] - batches).reshape(n_streams, -1)
    return waited


def latencies_of_two_s(
    arrivals: tuple[Numbers, Numbers], plans: tuple[Interleaved, Interleaved]
) -> tuple[Numbers, Numbers]:
    """Return how long requests of two streams wait that share a board, which trains nothing.

    Parameters
    ----------
    arrivals : of each stream, (r, k) and (r, l), as of `latencies_s`
    """
    n_streams = len(arrivals[0])
    batches = [
        one.reshape(n_streams, -1, plan.batch_size)
        for one, plan in zip(arrivals, plans, strict=True)
    ]
    complete = np.hstack([one[:, :, -1] for one in batches])
    counts = [one.shape[1] for one in batches]
    takes = np.repeat([plan.infer_s for plan in plans], counts)
    order = np.argsort(complete, axis=1, kind="stable")
    rows, free = np.arange(n_streams), np.zeros(n_streams)
    done = np.empty(complete.shape)
    for place in order.T:
        free = np.maximum(complete[rows, place], free) + takes[place]
        done[rows, place] = free
    ends = np.split(done, counts[:1], axis=1)
    first, second = (
        (end[:, :, None] - one).reshape(n_streams, -1)
        for end, one in zip(ends, batches, strict=True)
    )
    return first, second


def played_latencies_s(
    rate_per_s: float,
    plan: Interleaved,
    arrivals: Arrivals = "poisson",
    n_streams: int = N_STREAMS,
    n_batches: int = N_BATCHES,
) -> Numbers:
    """Return how long requests wait under a plan, of some streams of some mini-batches each."""
    shape = n_streams, n_batches * plan.batch_size
    return latencies_s(arrivals_s(arrivals, rate_per_s, shape), plan)


def share_late(latencies: Numbers, max_latency_s: float) -> float:
    """Return the share of requests that are answered too late."""
    return float((latencies > max_latency_s * (1 + SLACK)).mean())
