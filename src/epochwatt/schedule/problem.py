"""State what is to be scheduled, and what solvers answer with.

Fulcrum (arXiv 2509.20205) states the problem in words: one training job and one inference stream
share a board, and the application runs whole mini-batches of one or the other. The formulas of this
package are our reading of it; the paper's own are not public.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode

Jobs = Literal["train", "infer", "train_and_infer", "two_infer"]
PowerRule = Literal["highest", "mean"]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Requests of inference that arrive at a steady rate."""

    rate_per_s: float  # requests a second
    max_latency_s: float  # from a request's arrival until its answer, of every request

    def __post_init__(self) -> None:
        _positive(self, "rate_per_s", "max_latency_s")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Jobs of one board, and their budgets."""

    max_power_w: float  # of the board
    streams: tuple[Stream, ...] = ()  # of inference; none, one or two
    trains: bool = False  # whether a training job takes the time that inference leaves
    # `highest`: no job may draw more than the budget while it runs; `mean`: the mean over the time
    # in which something runs may not. Idle gaps are left out, so it is an upper bound of the mean
    # over all time
    power_rule: PowerRule = "highest"

    def __post_init__(self) -> None:
        _positive(self, "max_power_w")
        if self.power_rule not in ("highest", "mean"):
            raise ConfigError(
                "no such rule of power", found=self.power_rule, allowed="highest, mean"
            )
        jobs = len(self.streams), self.trains
        if jobs not in ((0, True), (1, False), (1, True), (2, False)):
            raise ConfigError(
                "these jobs cannot be scheduled together",
                found=f"{jobs[0]} streams of inference{' and training' if self.trains else ''}",
                allowed="training, one stream, one stream and training, or two streams",
            )

    @property
    def jobs(self) -> Jobs:
        """One of the four kinds of jobs."""
        if len(self.streams) == 2:
            return "two_infer"
        return ("train_and_infer" if self.trains else "infer") if self.streams else "train"


def _positive(problem: Problem | Stream, *names: str) -> None:
    for name in names:
        value = getattr(problem, name)
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{name} is {value!r}", allowed="a finite number above zero")


NONE = -1  # in place of a choice: the solver saw none that keeps the budgets


class Answers(NamedTuple):
    """Of one solver to many problems."""

    choice: NDArray[np.intp]  # (p,), place among the choices of the space, or `NONE`
    # (p,), mini-batches that were measured: pairs of job, mode and mini-batch size
    n_profiles: NDArray[np.intp]
    # (p,), what these take on a board, s (`Space.board_s`); None: not worked out
    board_s: NDArray[np.float64] | None = None


def joined(parts: Sequence[Answers]) -> Answers:
    """Return answers to some problems and to others, all with `board_s`, as those to all."""
    return Answers(*(np.concatenate(some) for some in zip(*parts, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A mode, mini-batch sizes and a share of training, with what they are expected to give."""

    place: int  # of the mode among those of the workloads
    mode: Mode  # its parts
    batch_sizes: tuple[int, ...] = ()  # of each stream, in the order of the problem
    n_train: int = 0  # mini-batches of training after each of inference; 1 of training alone
    throughput_per_s: float = 0.0  # as of `plans.Outcome`; the worst latency of each stream
    latency_s: tuple[float, ...] = ()
    power_w: float
    is_profiled: bool  # whether all of it was run, so that the numbers are measurements
