"""What `EpochMonitor` costs a training loop: measured / bare, in interleaved pairs on one core.

The two epochs of a pair take turns (turns.py). The sampler runs on the same core. What is done at
an epoch's begin and end is told apart: it lies in the first and the last turn.
"""

import os
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.results import Result, Row, at_most
from benchmarks.turns import Loop, Turns, take_turns
from epochwatt import EpochMonitor
from epochwatt.board.training.networks import CifarResNet18, lenet5

BUDGET = at_most(1.005)
MEASURE_S = 60.0  # for each network; as many pairs as fit
NETWORKS = {  # made, samples of an epoch, shape of one
    "LeNet": (lenet5, 4000, (1, 28, 28)),
    "ResNet-18": (CifarResNet18, 400, (3, 32, 32)),
}


def loop_of(minibatches: Iterable, network: torch.nn.Module) -> Loop:
    """Return a loop that trains a network as a script does."""
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01)

    def loop(turns: Turns) -> None:
        keep = turns.keeper(lambda loss: None)
        for images, labels in minibatches:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(images), labels).backward()
            optimiser.step()
            keep(0.0)

    return loop


def run(quick: bool = False) -> Result:
    """Train pairs of epochs; `quick` trains one."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    torch.set_num_threads(1)
    rows = []
    try:
        for name, (make, n_samples, shape) in NETWORKS.items():
            rows += _rows(name, make, n_samples, shape, 0.0 if quick else MEASURE_S)
    finally:
        os.sched_setaffinity(0, cpus)
    return Result(rows)


def _rows(
    name: str, make: type, n_samples: int, shape: tuple[int, ...], seconds: float
) -> list[Row]:
    data = TensorDataset(torch.randn(n_samples, *shape), torch.randint(10, (n_samples,)))
    loader = DataLoader(data, batch_size=16)
    ratios, begins_ms, ends_ms = [], [], []
    until_s = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        monitor = EpochMonitor(name, folder=folder)
        monitor.begin_window("start")  # the sampler has to be started by the main thread
        monitor.end_window("start")
        while not ratios or time.monotonic() < until_s:
            loops = [loop_of(each, make()) for each in (monitor.epoch(loader), loader)]
            order = loops if len(ratios) % 2 == 0 else loops[::-1]
            turns = take_turns(pool, *order)
            ours, bare = turns if len(ratios) % 2 == 0 else turns[::-1]
            n = min(len(ours.turns_s), len(bare.turns_s)) - 1
            ratios.append(sum(ours.turns_s[1:n]) / sum(bare.turns_s[1:n]))
            begins_ms.append(1e3 * (ours.turns_s[0] - bare.turns_s[0]))
            ends_ms.append(1e3 * (ours.turns_s[-1] - bare.turns_s[-1]))
        monitor.close()
    return [
        Row(f"{name}, EpochMonitor / bare", ratios, "", 4, BUDGET),
        Row(f"{name}, begin of an epoch", begins_ms, "ms", 1),
        Row(f"{name}, end of an epoch, with its record", ends_ms, "ms", 1),
    ]
