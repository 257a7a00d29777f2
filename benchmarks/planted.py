"""Are the parts of an epoch right? Planted times through the real loader and loop.

The loader takes 24 ms for a mini-batch, compute 15, other work 2. Without workers all of the
loader's time is waited for; one worker loads while the loop is busy for 17 ms, so 7 remain; two
workers deliver every 12 ms, so none does.
"""

import time
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.results import Result, Row, near
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.loop import run_epoch
from epochwatt.board.training.timing import HostTimer

LOADER_MS, COMPUTE_MS, OTHER_MS = 24.0, 15.0, 2.0
TRUE_WAIT_MS = {0: 24.0, 1: 7.0, 2: 0.0}  # by number of workers
N_MINIBATCHES, N_ROUNDS = 60, 3
SPIN_S = 0.0005
NOT_STEADY = 6  # mini-batches at the start: worker start, then what was loaded ahead meanwhile


def pause(milliseconds: float) -> None:
    """Sleep, and spin through the end: a sleep alone is late by what the kernel rounds up."""
    end_s = perf_counter() + milliseconds / 1000
    time.sleep(max(0.0, milliseconds / 1000 - SPIN_S))
    while perf_counter() < end_s:
        pass


class PlantedSamples:
    """Samples that take their time; a mini-batch here is one sample.

    Sample and label are words: handing a tensor from one process to another takes 0.3 to 0.5 ms, a
    true wait, but not the one that is planted here.
    """

    def __len__(self) -> int:
        return N_MINIBATCHES

    def read(self, index: int) -> tuple[str, str]:
        pause(LOADER_MS)
        return "sample", "label"


def planted_epoch(num_workers: int, n_minibatches: int) -> dict[str, list[float]]:
    """Measure one planted epoch.

    Returns milliseconds: `wait`, `compute` and `other` (its own stamps) of each steady mini-batch,
    and `overhead` (one value): what the record calls overhead, per mini-batch, but for the time
    after the last mini-batch, in which the workers are shut down.
    """
    minibatches = TimedMinibatches(PlantedSamples(), lambda raw: raw, num_workers)
    factors = {"batch_size": 1, "num_workers": num_workers, "prefetch_factor": 2}
    loader = make_loader(minibatches, n_minibatches, factors, torch.Generator())
    timer, other_s = HostTimer(), list[tuple[float, float]]()

    def other(loss: Any) -> None:
        start_s = perf_counter()
        pause(OTHER_MS)
        other_s.append((start_s, perf_counter()))

    bounds = run_epoch(loader, lambda m: m, lambda m: pause(COMPUTE_MS), other, timer)
    minibatch_s = timer.minibatch_s()
    # without the shutting down of the workers
    overhead_s = other_s[-1][1] - bounds.t_start_mono_s - minibatch_s.sum()
    return {
        "wait": (1000 * minibatch_s[NOT_STEADY:, 0]).tolist(),
        "compute": (1000 * minibatch_s[NOT_STEADY:, 2]).tolist(),
        "other": (1000 * np.diff(other_s)[NOT_STEADY:, 0]).tolist(),
        "overhead": [1000 * overhead_s / n_minibatches],
    }


def run(quick: bool = False) -> Result:
    """Measure planted epochs with 0, 1 and 2 workers in turn; `quick` only shows that it works."""
    rounds = [
        {w: planted_epoch(w, 12 if quick else N_MINIBATCHES) for w in TRUE_WAIT_MS}
        for _ in range(1 if quick else N_ROUNDS)
    ]
    rows = []
    for num_workers, wait_ms in TRUE_WAIT_MS.items():
        for key, what, truth_ms in (
            ("wait", "steady wait", wait_ms),
            ("compute", "compute", COMPUTE_MS),
            ("other", "other work, its own stamps", OTHER_MS),
            ("overhead", "overhead in the record", OTHER_MS),
        ):
            values = [value for epochs in rounds for value in epochs[num_workers][key]]
            # within 1 ms or 3 %, whichever is more
            budget = near(truth_ms, max(1.0, 0.03 * truth_ms))
            rows.append(Row(f"planted epoch, w={num_workers}: {what}", values, "ms", 2, budget))
    return Result(rows)
