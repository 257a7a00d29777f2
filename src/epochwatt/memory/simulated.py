"""Simulate time and energy of a training that is asked about, where its board is simulated."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epochwatt.counting.kernel_counts import KernelCounts, kernel_counts_of
from epochwatt.memory.networks import Asked
from epochwatt.study.devices import Devices
from epochwatt.twin import nearest
from epochwatt.twin.boards import number
from epochwatt.twin.network import Network
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.predicted import Question
from epochwatt.twin.what_if import simulate, usual_settings

if TYPE_CHECKING:
    from epochwatt.memory.fit import Request


class Epoch(NamedTuple):
    """A simulated epoch."""

    e2e_s: float
    energy_wh: float


class Simulator(NamedTuple):
    """Simulates epochs, and says how far they can be trusted."""

    epoch: Callable[["Request"], Epoch | None]  # None: it cannot be simulated
    source: str  # of its numbers, or why there are none
    held_out: str  # errors of the simulation on numbers that it has not seen


def simulator(device: str, asked: Asked, root: Path) -> Simulator:
    """Return what simulates a network on a device; one that is not simulated has no epochs."""
    twin = load_twin_with_modes((), root)
    if device not in twin.boards:
        boards = ", ".join(twin.boards)
        return Simulator(lambda request: None, f"{device} is not simulated (only {boards})", "")
    usual = usual_settings(device, Devices(root).get(device, "--device"))
    samples = asked.samples

    @cache
    def work(task: str, precision: str) -> KernelCounts:
        return kernel_counts_of(asked.count_kernels(task, precision), asked.name)

    def epoch(request: "Request") -> Epoch:
        counts = work(request.task, request.precision)
        if request.checkpointing:
            counts = _with_second_forward(counts)
        question = Question(
            device,
            counts.model,
            usual["storage"],
            request.num_workers,
            request.batch_size,
            usual["power_mode"],
        )
        question = question._replace(
            scale=(request.samples or samples.n_samples) / samples.n_samples
        )
        made = simulate(question, twin, Network(counts, samples, "")).epoch
        return Epoch(number(made.e2e_s), number(made.energy_wh))

    medians = nearest.median_errors_pct(nearest.validation(root), device)
    words = [
        f"{name.split('_')[0]} {value:.0f} % (n = {n})" for name, (value, n) in medians.items()
    ]
    held_out = f"median held-out error on {device}: {', '.join(words)}"
    if not words:
        held_out = f"no held-out errors: {nearest.VALIDATION} is missing (make validate)"
    mode = f"{usual['power_mode']}, {usual['storage']}"
    return Simulator(epoch, f"simulated, not measured: power mode {mode}", held_out)


def _with_second_forward(counts: KernelCounts) -> KernelCounts:
    """Return the counts of training that computes the forward pass again during backward."""
    again = np.concatenate([np.arange(len(counts.kind)), np.flatnonzero(counts.phase == "forward")])
    columns = {
        field.name: getattr(counts, field.name)[again]
        for field in fields(counts)
        if isinstance(getattr(counts, field.name), np.ndarray)
    }
    return replace(counts, **columns)
