"""What solvers answer with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Mode

NONE = -1  # in place of a choice: the solver saw none that keeps the budgets


class Answers(NamedTuple):
    """Of one solver to many problems.

    Attributes
    ----------
    choice : (p,), place among the choices of the space, or `NONE`
    n_profiles : (p,), mini-batches that were measured: pairs of job, mode and mini-batch size
    board_s : (p,), what these take on a board, s (`Space.board_s`); None: not worked out
    """

    choice: NDArray[np.intp]
    n_profiles: NDArray[np.intp]
    board_s: NDArray[np.float64] | None = None


def joined(parts: Sequence[Answers]) -> Answers:
    """Return answers to some problems and to others, all with `board_s`, as those to all."""
    return Answers(*(np.concatenate(some) for some in zip(*parts, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A mode, mini-batch sizes and a share of training, with what they are expected to give.

    Attributes
    ----------
    place : of the mode among those of the workloads
    mode : its parts
    batch_sizes : of each stream, in the order of the problem
    n_train : mini-batches of training after each of inference; 1 of training alone
    throughput_per_s, latency_s, power_w : as of `plans.Outcome`; the worst latency of each stream
    is_profiled : whether all of it was run, so that the numbers are measurements
    """

    place: int
    mode: Mode
    batch_sizes: tuple[int, ...] = ()
    n_train: int = 0
    throughput_per_s: float = 0.0
    latency_s: tuple[float, ...] = ()
    power_w: float
    is_profiled: bool
