"""Play the arrivals of streams under a plan: how long each request waits.

The board runs one mini-batch at a time. One of inference starts as soon as its last request is
there and nothing runs; in the time between, up to n mini-batches of training run, each of which is
started only while no mini-batch of inference waits, and never stopped. Mini-batches of two streams
run in the order in which they are complete. That is Fulcrum's rule; `as_run` plays that of
`serve-and-train`.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.schedule.plans import SLACK, Numbers

Arrivals = Literal["constant", "poisson"]
N_STREAMS, N_BATCHES = 50, 400  # of the simulation of one plan


class Interleaved(NamedTuple):
    """Mini-batches that a plan runs; all but the batch size may differ from stream to stream: (r,).

    Attributes
    ----------
    batch_size : requests of a mini-batch
    infer_s, train_s : time of one mini-batch
    n_train : mini-batches of training after one of inference, at most
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
    queue: int  # mini-batches that may wait; a further one is refused


class Played(NamedTuple):
    """Outcome of arrivals under a plan."""

    latency_s: Numbers  # (r, k), from each request's arrival to its answer; infinite: refused
    n_trained: Numbers  # (r,), mini-batches of training


def arrivals_s(arrivals: Arrivals, rate_per_s: ArrayLike, shape: tuple[int, int]) -> Numbers:
    """Return when requests arrive: r streams of k each, shape (r, k); always the same ones.

    Those of a Poisson process, or one every 1 / rate from a moment within the first of these on.

    `rate_per_s`: of several rates (n,) the shape is (n, r, k).
    """
    rng, rate = np.random.default_rng(0), np.asarray(rate_per_s, float)[..., None, None]
    if arrivals == "constant":
        times: Numbers = (rng.uniform(size=(shape[0], 1)) + np.arange(shape[1])) / rate
        return times
    return np.asarray((rng.standard_exponential(shape) * (1 / rate)).cumsum(axis=-1))


def play(arrivals: Numbers, plan: Interleaved, slot: Slot | None = None) -> Played:
    """Play the arrivals of independent streams.

    Parameters
    ----------
    arrivals : (r, k), of r streams, ascending; k whole mini-batches; infinite: none comes
    slot : None: it begins as the first mini-batch is complete, and does not end
    """
    batches = arrivals.reshape(len(arrivals), -1, plan.batch_size)
    done, n_trained = np.empty(batches.shape[:2]), np.zeros(len(batches))
    most = np.asarray(plan.n_train, float)  # may be more than fits an integer
    train_s = np.where(most > 0, plan.train_s, 1.0)
    free: Numbers = batches[:, 0, -1]
    end_s, settled_s = np.inf, np.full(len(batches), -np.inf)
    if slot is not None:
        free, end_s, settled_s = np.zeros(len(batches)), slot.end_s, slot.settled_s
    for i in range(batches.shape[1]):
        complete = batches[:, i, -1]
        begin = np.maximum(free, settled_s)
        n_fit = np.maximum(np.minimum(complete, end_s) - begin, 0) / train_s
        n = np.minimum(np.ceil(n_fit - SLACK * (1 + n_fit)), most)
        n_trained += n
        start = np.maximum(complete, np.where(n > 0, begin + n * train_s, free))
        infer_s = np.asarray(plan.infer_s)
        is_refused = np.zeros(len(batches), bool)
        if slot is not None:
            infer_s = np.where(start < settled_s, slot.settling_infer_s, infer_s)
            is_refused = start > complete + slot.queue * infer_s
        done[:, i] = np.where(is_refused, np.inf, start + infer_s)
        free = np.where(is_refused, start, start + infer_s)
    return Played((done[:, :, None] - batches).reshape(len(batches), -1), n_trained)


def latencies_s(arrivals: Numbers, plan: Interleaved) -> Numbers:
    """Return the time from each request's arrival to its answer; arrivals as of `play`."""
    return play(arrivals, plan).latency_s


def latencies_of_two_s(
    arrivals: tuple[Numbers, Numbers], plans: tuple[Interleaved, Interleaved]
) -> tuple[Numbers, Numbers]:
    """Return how long requests of two streams wait that share a board, which trains nothing.

    `arrivals`: of each stream, (r, k) and (r, l), as of `latencies_s`.
    """
    n_streams = len(arrivals[0])
    batches = [
        one.reshape(n_streams, -1, plan.batch_size)
        for one, plan in zip(arrivals, plans, strict=True)
    ]
    complete = np.hstack([one[:, :, -1] for one in batches])
    counts = [one.shape[1] for one in batches]
    takes = np.repeat([np.asarray(plan.infer_s, float) for plan in plans], counts)
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
    rate_per_s: ArrayLike,
    plan: Interleaved,
    arrivals: Arrivals = "poisson",
    n_streams: int = N_STREAMS,
    n_batches: int = N_BATCHES,
) -> Numbers:
    """Return how long requests wait under a plan, of r streams of k requests each, (r, k).

    Parameters
    ----------
    rate_per_s : of several plans (n,), of equal mini-batch sizes: the shape is (n, r, k)
    plan : of several, what differs is (n,)
    """
    times = arrivals_s(arrivals, rate_per_s, (n_streams, n_batches * plan.batch_size))
    infer_s, n_train, train_s = (
        np.repeat(np.broadcast_to(part, np.shape(rate_per_s)), n_streams) for part in plan[1:]
    )
    of_streams = Interleaved(plan.batch_size, infer_s, n_train, train_s)
    return latencies_s(times.reshape(-1, times.shape[-1]), of_streams).reshape(times.shape)
