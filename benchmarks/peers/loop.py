"""Train as a script of anybody does, measured by a tool; it runs in an environment with the tools.

`python loop.py TOOL NETWORK ADDRESS SECONDS`: with SECONDS it trains epochs for that long, else as
many mini-batches at a time as the other side of ADDRESS asks for, all in one epoch. At its end it
tells what the tool found.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from multiprocessing.connection import Client
from time import monotonic
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from epochwatt.board.training.networks import CifarResNet18, lenet5

J_PER_KWH = 3.6e6
EPOCH_S = 2.5
NETWORKS = {  # made, shape of a sample, mini-batch, about what that takes, s
    "LeNet": (lenet5, (1, 28, 28), 16, 0.002),
    "ResNet-18": (CifarResNet18, (3, 32, 32), 4, 0.15),
}


class Loader(DataLoader):
    """Notes when it is asked for its first mini-batch."""

    asked_s = 0.0

    def __iter__(self) -> Iterator[Any]:
        self.asked_s = monotonic()
        return super().__iter__()


class Training:
    """A network, its data, and when its epochs end."""

    def __init__(self, network: str, address: str, seconds: float) -> None:
        make, shape, self.batch_size, minibatch_s = NETWORKS[network]
        n = int((EPOCH_S if seconds else 3600.0) / minibatch_s) * self.batch_size
        data = TensorDataset(torch.randn(512, *shape), torch.randint(10, (512,)))
        sampler = RandomSampler(data, replacement=True, num_samples=n)
        self.loader = Loader(data, batch_size=self.batch_size, sampler=sampler)
        self.model = make()
        self._optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self._other = Client(address)
        self._seconds, self._left = seconds, 1  # mini-batches of a turn
        self._bare = iter(DataLoader(data, batch_size=self.batch_size, sampler=sampler))
        self._alternating: list[tuple[float, float]] | None = None  # times with the tool, and bare
        self.run_s = 0.0, 0.0  # begin and end of what the tool measures, on the monotonic clock
        self.epochs_s: list[tuple[float, float]] = []  # of each loop
        self.edges_ms: list[float] = []  # what an epoch takes beside its loop

    def epochs(self) -> Iterator[None]:
        """Give each epoch its turn, to be measured and trained."""
        start_s = monotonic()
        while not self.epochs_s or monotonic() - start_s < self._seconds:
            began_s = monotonic()
            yield
            first_s, last_s = self.epochs_s[-1]
            self.edges_ms.append(1e3 * (first_s - began_s + monotonic() - last_s))
        self.run_s = start_s, monotonic()

    def train(self, minibatches: Iterable[Any], step: Any = nullcontext) -> None:
        """Train an epoch."""
        asked_s = monotonic()
        for images, labels in minibatches:
            with step():
                self._train(images, labels)
            last_s = monotonic()
            if self._alternating is not None:
                bare_asked_s = monotonic()
                images, labels = next(self._bare)
                with nullcontext():
                    self._train(images, labels)
                self._alternating.append((last_s - asked_s, monotonic() - bare_asked_s))
            self._left -= 1
            if not self._seconds and not self._left:
                self._take_turns()
            asked_s = monotonic()
        self.epochs_s.append((self.loader.asked_s, last_s))

    def _train(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self._optimiser.zero_grad()
        torch.nn.functional.cross_entropy(self.model(images), labels).backward()
        self._optimiser.step()

    def _take_turns(self) -> None:
        """Tell that the turn is over, and wait for the next."""
        self._other.send(self._alternating)
        self._left, is_alternating = self._other.recv()
        self._alternating = [] if is_alternating else None

    def tell(self, energy_j: float | list[float] | None) -> None:
        """Tell the other side the energy of the run, or of each epoch, with its moments."""
        if isinstance(energy_j, list):
            told = list(zip(energy_j, self.epochs_s, strict=True))
        else:
            told = [] if energy_j is None else [(energy_j, self.run_s)]
        self._other.send((told, self.edges_ms))


def bare(training: Training) -> None:
    """Train without any tool."""
    for _ in training.epochs():
        training.train(training.loader)


def epochwatt(training: Training) -> list[float]:
    """Train with `EpochMonitor`."""
    from epochwatt import EpochMonitor

    monitor = EpochMonitor("peers", folder="measured", batch_size=training.batch_size)
    energies_j = []
    for _ in training.epochs():
        training.train(monitor.epoch(training.loader))
        energies_j.append(monitor.last.energy_wh * 3600.0)
    monitor.close()
    return energies_j


def zeus(training: Training) -> list[float]:
    """Train with a window of `ZeusMonitor` an epoch."""
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[], cpu_indices=[0])
    energies_j = []
    for _ in training.epochs():
        monitor.begin_window("epoch", sync_execution=False)
        training.train(training.loader)
        window = monitor.end_window("epoch", sync_execution=False)
        energies_j.append(sum(window.cpu_energy.values()))
    return energies_j


def codecarbon(training: Training) -> float:
    """Train within an `OfflineEmissionsTracker` as it is by default."""
    from codecarbon import OfflineEmissionsTracker

    tracker = OfflineEmissionsTracker(country_iso_code="FRA", log_level="error")
    tracker.start()
    bare(training)
    tracker.stop()
    return float(tracker.final_emissions_data.cpu_energy) * J_PER_KWH


def perun_(training: Training) -> float:
    """Train in a function that perun's decorator watches."""
    import perun
    from perun.data_model.data import MetricType

    found: list[float] = []

    def keep(node: Any) -> None:
        found.append(float(node.metrics[MetricType.CPU_ENERGY].sum))

    def train() -> None:
        perun.register_callback(keep)
        bare(training)

    perun.perun(format="json")(train)()
    return found[0]


def carbontracker(training: Training) -> list[float]:
    """Train with `CarbonTracker`, which is told of each epoch."""
    from carbontracker.constants import PUE_2023
    from carbontracker.tracker import CarbonTracker

    tracker = CarbonTracker(
        epochs=10**6, epochs_before_pred=0, monitor_epochs=-1, components="cpu", verbose=0
    )
    for _ in training.epochs():
        tracker.epoch_start()
        training.train(training.loader)
        tracker.epoch_end()
    energies_kwh = tracker.tracker.total_energy_per_epoch() / PUE_2023
    tracker.stop()
    return list(energies_kwh * J_PER_KWH)


def traceml(training: Training) -> None:
    """Train with `trace_step` round each mini-batch; this process is a child of `traceml run`."""
    import traceml_ai

    traceml_ai.init(mode="auto")
    for _ in training.epochs():
        training.train(training.loader, lambda: traceml_ai.trace_step(training.model))


TOOLS = {
    tool.__name__.strip("_"): tool
    for tool in (bare, epochwatt, zeus, codecarbon, perun_, carbontracker, traceml)
}


def main() -> None:
    """Train, measured by a tool."""
    tool, network, address, seconds = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    training = Training(network, address, float(seconds))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        training.tell(TOOLS[tool](training))


if __name__ == "__main__":
    main()
