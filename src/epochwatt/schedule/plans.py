"""Compute what a plan gives: training throughput, worst latency and power.

Requests of a stream arrive every 1 / rate seconds and are collected to mini-batches of b, so one is
complete every T = b / rate seconds. It runs at once; then whole mini-batches of training follow, as
many as end before the next one is complete:

    n = floor((T - t_infer) / t_train)
    throughput = n / T
    worst latency = (b - 1) / rate + t_infer

The first request of a mini-batch waits for all others of it. A plan is stable if t_infer <= T. Of
two streams a mini-batch may find one of the other stream running, and waits for it: with
t_1 + t_2 <= T_1 and <= T_2 never for a second one, which makes this the condition that we ask for.
It is sufficient and not necessary.

All functions work on arrays of any shapes that fit each other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.schedule.problem import PowerRule

Numbers = NDArray[np.float64]
SLACK = 1e-9  # relative: times that fit to the last digit fit


class Outcome(NamedTuple):
    """Outcomes of plans, arrays of one shape."""

    throughput_per_s: Numbers  # mini-batches of training a second; 0 without training
    latency_s: Numbers  # of the request that waits longest; 0 without inference
    power_w: Numbers  # by the rule of the problem
    n_train: Numbers  # mini-batches of training in each period
    is_stable: NDArray[np.bool_]  # whether the streams are served as fast as they arrive


def train_alone(train_s: ArrayLike, train_w: ArrayLike) -> Outcome:
    """Return what training gives that has the board for itself."""
    train_s, train_w = _arrays(train_s, train_w)
    ones = np.ones(train_s.shape)
    return Outcome(1 / train_s, 0 * ones, train_w, ones, ones.astype(bool))


def serve(
    rate_per_s: ArrayLike, batch_size: ArrayLike, infer_s: ArrayLike, infer_w: ArrayLike
) -> Outcome:
    """Return what one stream gives that has the board for itself."""
    rate, batch, infer_s, infer_w = _arrays(rate_per_s, batch_size, infer_s, infer_w)
    zeros = np.zeros(infer_s.shape)
    is_stable = infer_s <= batch / rate * (1 + SLACK)
    return Outcome(zeros, (batch - 1) / rate + infer_s, infer_w, zeros, is_stable)


def serve_and_train(
    rate_per_s: ArrayLike,
    batch_size: ArrayLike,
    infer: tuple[ArrayLike, ArrayLike],
    train: tuple[ArrayLike, ArrayLike],
    power_rule: PowerRule = "highest",
) -> Outcome:
    """Return what a stream and training in its gaps give.

    `infer`, `train`: time, s, and power, W, of one mini-batch of each.
    """
    rate, batch, infer_s, infer_w, train_s, train_w = _arrays(
        rate_per_s, batch_size, *infer, *train
    )
    alone = serve(rate, batch, infer_s, infer_w)
    period_s = batch / rate
    n_train = np.floor(np.maximum(period_s - infer_s, 0) / train_s * (1 + SLACK))
    n_train = np.where(alone.is_stable, n_train, 0)
    if power_rule == "highest":
        power_w = np.where(n_train > 0, np.maximum(infer_w, train_w), infer_w)
    else:
        busy_s = infer_s + n_train * train_s
        power_w = (infer_s * infer_w + n_train * train_s * train_w) / busy_s
    return alone._replace(throughput_per_s=n_train / period_s, power_w=power_w, n_train=n_train)


def serve_two(
    rates_per_s: tuple[ArrayLike, ArrayLike],
    batch_sizes: tuple[ArrayLike, ArrayLike],
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    power_rule: PowerRule = "highest",
) -> tuple[Outcome, Outcome]:
    """Return what two streams give that share a board, each with its own latency.

    `first`, `second`: time, s, and power, W, of one mini-batch of each stream.
    """
    rate_1, rate_2, size_1, size_2, time_1, power_1, time_2, power_2 = _arrays(
        *rates_per_s, *batch_sizes, *first, *second
    )
    period_1, period_2 = size_1 / rate_1, size_2 / rate_2
    both_s = time_1 + time_2
    is_stable = both_s <= np.minimum(period_1, period_2) * (1 + SLACK)
    if power_rule == "highest":
        power_w = np.maximum(power_1, power_2)
    else:
        share_1, share_2 = time_1 / period_1, time_2 / period_2
        power_w = (share_1 * power_1 + share_2 * power_2) / (share_1 + share_2)
    zeros = np.zeros(both_s.shape)
    return (
        Outcome(zeros, (size_1 - 1) / rate_1 + both_s, power_w, zeros, is_stable),
        Outcome(zeros, (size_2 - 1) / rate_2 + both_s, power_w, zeros, is_stable),
    )


def _arrays(*values: ArrayLike) -> list[Numbers]:
    return list(np.broadcast_arrays(*(np.asarray(value, float) for value in values)))
