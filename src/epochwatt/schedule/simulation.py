"""Play the arrivals of a stream under a plan: how long each request waits.

The board runs one mini-batch at a time. One of inference starts as soon as its last request is
there and nothing runs; in the time between, up to n mini-batches of training run, each of which is
started only while no mini-batch of inference waits, and never stopped.
"""

from typing import NamedTuple

import numpy as np

from epochwatt.schedule.plans import SLACK, Numbers

N_BATCHES, N_STREAMS = 400, 50  # of a simulation with random arrivals


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


def latencies_s(arrivals_s: Numbers, plan: Interleaved) -> Numbers:
    """Return the time from each request's arrival to its answer.

    Parameters
    ----------
    arrivals_s : (r, k), of r independent streams, ascending; k whole mini-batches
    """
    n_streams = len(arrivals_s)
    batches = arrivals_s.reshape(n_streams, -1, plan.batch_size)
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


def poisson_share(rate_per_s: float, max_latency_s: float, plan: Interleaved) -> float:
    """Return the share of requests that are answered in time where arrivals are a Poisson process.

    Of `N_STREAMS` streams of `N_BATCHES` mini-batches, always the same ones.
    """
    shape = N_STREAMS, N_BATCHES * plan.batch_size
    gaps_s = np.random.default_rng(0).exponential(1 / rate_per_s, shape)
    waited = latencies_s(gaps_s.cumsum(axis=1), plan)
    return float((waited <= max_latency_s * (1 + SLACK)).mean())
