"""Play what a plan gives when it is run: the scheduler of `serve-and-train`, on a played clock.

So a plan and what runs it have one rule for training beside requests that come at random:
`training.interleave.scheduler` begins a mini-batch of training only where it will have ended when
the next mini-batch of requests is expected. `simulation` plays Fulcrum's rule, which begins one
whenever nothing waits, for the study of solvers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epochwatt.board.training.interleave.arrivals import POISSON, arrivals
from epochwatt.board.training.interleave.plan import QUEUE
from epochwatt.board.training.interleave.scheduler import Interleaver, Plan
from epochwatt.schedule.plans import SLACK

N_EVENTS = 40_000  # requests, and mini-batches of training between them


class AsRun(NamedTuple):
    """Outcome of a plan."""

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


def at_random(
    rate_per_s: float,
    batch_size: int,
    infer_s: float,
    n_train: int,
    train_s: float,
    max_latency_s: float,
) -> AsRun:
    """Return what a plan gives with Poisson arrivals, always the same ones.

    Parameters
    ----------
    infer_s, train_s : of one mini-batch
    n_train : mini-batches of training after one of inference, with steady arrivals; where there is
        one, as many as fit are run, as `serve-and-train` does by itself
    """
    seconds = N_EVENTS / (1 + n_train / batch_size) / rate_per_s
    plan = Plan(rate_per_s, batch_size, None if n_train else 0, QUEUE * batch_size)
    times = arrivals(POISSON, rate_per_s, seconds, 0)
    return run_as(plan, infer_s, train_s, times, seconds, max_latency_s)


def run_as(
    plan: Plan,
    infer_s: float,
    train_s: float,
    arrivals_s: Sequence[float],
    seconds: float,
    max_latency_s: float = np.inf,
) -> AsRun:
    """Return what a plan gives with these arrivals, s after the beginning, as of `at_random`."""
    clock = _PlayedClock()

    def serve() -> None:
        clock.sleep_until(clock.now() + infer_s)

    def train() -> None:
        clock.sleep_until(clock.now() + train_s)

    log = Interleaver(plan, serve, train, [train_s], clock).run(arrivals_s, seconds)
    waits_s = np.array(log.end_s) - np.array(log.arrival_s)
    refused = np.array(log.refused, bool)
    served = waits_s[np.isfinite(waits_s)]
    n_late = int((served > max_latency_s * (1 + SLACK)).sum() + refused.sum())
    return AsRun(
        n_late / max(len(served) + int(refused.sum()), 1),
        float(np.quantile(served, 0.99)) if len(served) else float("nan"),
        len(log.train_end_s) / log.t_end_s if log.t_end_s else 0.0,
    )
