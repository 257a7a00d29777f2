"""Make two networks in one process, to train and to answer (board side: Python 3.6; imports torch).

Samples are made up (random pixels or words) and lie in the host's memory, transformed: what is
measured is neither storage nor pre-processing. Of each mini-batch the copy to the device counts.
"""

from typing import Any, Callable, List, Tuple

import torch

from epochwatt.board.training.interleave.scheduler import HostClock
from epochwatt.board.training.loaders import TimedMinibatches
from epochwatt.board.training.session import MadeUpSamples
from epochwatt.board.training.workloads import Trainer, make_trainer, workload_of
from epochwatt.columns import Factors

WARM_UP, TIMED = 2, 10  # turns before the measurement: not timed, then at least so many timed
IN_A_ROW = 5  # mini-batches of training in a turn: the first finds the caches cold

Job = Callable[[], None]


def make_job(factors: Factors, batch_size: int, device: torch.device) -> Job:
    """Return what runs one mini-batch of a workload and waits until it is done.

    Parameters
    ----------
    factors : `model`, `task` (`train` or `infer`), `seed` and, of an own network, `network`
    device : where the network lives

    Raises ConfigError: a network that is not there.
    """
    workload = workload_of(factors)
    transform = workload.transform
    if factors["task"] == "infer" and workload.transform_to_infer is not None:
        transform = workload.transform_to_infer
    made_up = MadeUpSamples(workload.made_up(), batch_size)
    minibatch = TimedMinibatches(made_up, transform, 0)[list(range(batch_size))]
    return _job(make_trainer(factors, device), minibatch, device)


def _job(trainer: Trainer, minibatch: Any, device: torch.device) -> Job:
    waits = device.type == "cuda"

    def run() -> None:
        trainer.step(trainer.copy(minibatch))
        if waits:
            torch.cuda.current_stream(device).synchronize()

    return run


def time_before(
    serve: Job, train: Job, seconds: float, clock: Any = HostClock
) -> Tuple[List[float], List[float]]:
    """Run both in turn, as they will be; return the times of single mini-batches, s.

    Parameters
    ----------
    seconds : how long, at least; what disturbs the machine seldom shows in the longest of them
    """
    for _ in range(WARM_UP):
        _turn(serve, train, clock)
    turns: List[List[float]] = []
    end_s = clock.now() + seconds
    while len(turns) < TIMED or clock.now() < end_s:
        turns.append(_turn(serve, train, clock))
    return [turn[0] for turn in turns], [t_s for turn in turns for t_s in turn[1:]]


def _turn(serve: Job, train: Job, clock: Any) -> List[float]:
    """Serve once and train `IN_A_ROW` times; return how long each took, s."""
    times_s = []
    for job in [serve] + [train] * IN_A_ROW:
        start_s = clock.now()
        job()
        times_s.append(clock.now() - start_s)
    return times_s
