"""Play the arrivals of a stream under a plan: how long each request waits.

The board runs one mini-batch at a time. One of inference starts as soon as its last request is
there and nothing runs; in the time between, up to n mini-batches of training run, each of which is
started only while no mini-batch of inference waits, and never stopped.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.schedule.plans import SLACK, Numbers

N_BATCHES, N_STREAMS = 400, 50  # of a simulation with random arrivals


class Interleaved(NamedTuple):
    """What a plan runs; all but the batch size may differ from stream to stream: (r,).

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
    """A stretch of time that begins at 0 with nothing waiting, while clocks may still settle.

    Attributes
    ----------
    end_s : no training begins later
    settled_s : (r,), no training begins earlier
    settling_infer_s : (r,), time of a mini-batch of inference that begins earlier
    queue : mini-batches that may wait; a further one is refused
    """

    end_s: float
    settled_s: Numbers
    settling_infer_s: Numbers
    queue: int


class Played(NamedTuple):
    """What came of it.

    Attributes
    ----------
    latency_s : (r, k), from each request's arrival to its answer; infinite: refused
    n_trained : (r,), mini-batches of training
    """

    latency_s: Numbers
    n_trained: Numbers


def play(arrivals_s: Numbers, plan: Interleaved, slot: Slot | None = None) -> Played:
    """Play the arrivals of independent streams.

    Parameters
    ----------
    arrivals_s : (r, k), of r streams, ascending; k whole mini-batches; infinite: none comes
    slot : None: it begins as the first mini-batch is complete, and does not end
    """
    batches = arrivals_s.reshape(len(arrivals_s), -1, plan.batch_size)
    done, n_trained = np.empty(batches.shape[:2]), np.zeros(len(batches))
    most = np.asarray(plan.n_train)
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


def poisson_share(rate_per_s: float, max_latency_s: float, plan: Interleaved) -> float:
    """Return the share of requests that are answered in time where arrivals are a Poisson process.

    Of `N_STREAMS` streams of `N_BATCHES` mini-batches, always the same ones.
    """
    shape = N_STREAMS, N_BATCHES * plan.batch_size
    gaps_s = np.random.default_rng(0).exponential(1 / rate_per_s, shape)
    waited = play(gaps_s.cumsum(axis=1), plan).latency_s
    return float((waited <= max_latency_s * (1 + SLACK)).mean())
