"""Epochs with planted times for a GPU: a loader that sleeps, copies and matrix products.

`RealGpu` is the GPU of this machine. A test puts one in simulated time in its place.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from epochwatt.board.training import timing
from epochwatt.board.training.loop import Bounds, run_epoch

SIZES = (256, 512, 1024, 2048, 4096, 8192)
SHORTEST_S = 1e-4  # of a product: launching it costs the host a tenth
CALIBRATION_S = 0.3


class Plan(NamedTuple):
    """An epoch: n mini-batches, s of the loader and of the GPU for each."""

    n: int
    load_s: float
    compute_s: float


class Epoch(NamedTuple):
    """What an epoch told, and what was planted."""

    bounds: Bounds
    minibatch_s: np.ndarray  # (n, 3), s
    placement: dict[str, Any]
    loaded_s: np.ndarray  # (n,), how long the loader really took
    got_s: np.ndarray  # (n,), when it handed over, on the monotonic clock

    @property
    def e2e_s(self) -> float:
        """Length of the epoch."""
        return self.bounds.t_end_mono_s - self.bounds.t_start_mono_s


class RealGpu:
    """The GPU that torch calls `cuda`.

    Parameters
    ----------
    torch : the module
    device : where to compute; a test without a GPU takes the CPU
    """

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self.torch, self.cuda = torch, torch.cuda
        self.device = torch.device(device)
        self._minibatch = torch.randn(16, 3, 64, 64)  # pageable, as the loop's
        for size in SIZES:
            self._factor = torch.randn(size, size, device=self.device)
            self._product = torch.empty_like(self._factor)
            self._each_s = self._product_s()
            if self._each_s >= SHORTEST_S:
                break

    def _product_s(self) -> float:
        """Return how long a product takes once the clocks have risen, s."""
        rounds, until_s = [], time.perf_counter() + CALIBRATION_S
        while time.perf_counter() < until_s:
            start_s = time.perf_counter()
            for _ in range(10):
                self._multiply()
            self.cuda.synchronize()
            rounds.append((time.perf_counter() - start_s) / 10)
        return float(np.median(rounds[len(rounds) // 2 :]))

    def _multiply(self) -> None:
        self.torch.mm(self._factor, self._factor, out=self._product)

    now = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)

    def load(self) -> Any:
        """Return a mini-batch in memory."""
        return self._minibatch

    def copy(self, minibatch: Any) -> Any:
        """Move it to the GPU."""
        return minibatch.to(self.device)

    def burn(self, seconds: float) -> None:
        """Launch products that keep the GPU busy for about so long."""
        for _ in range(max(1, round(seconds / self._each_s))):
            self._multiply()


def _loader(gpu: Any, plan: Plan, loaded_s: list[float], got_s: list[float]) -> Iterator[Any]:
    for _ in range(plan.n):
        start_s = gpu.now()
        gpu.sleep(plan.load_s)
        minibatch = gpu.load()
        got_s.append(gpu.now())
        loaded_s.append(got_s[-1] - start_s)
        yield minibatch


def _keep(loss: Any) -> None:
    """Take what a step returns."""


def timed_epoch(gpu: Any, plan: Plan, gpu_timing: str) -> Epoch:
    """Run an epoch as a session does; `gpu_timing` is `synchronised` or `pooled`."""
    loaded_s: list[float] = []
    got_s: list[float] = []
    timer = timing.make_timer(plan.n, gpu_timing, gpu.cuda)
    loader = _loader(gpu, plan, loaded_s, got_s)
    bounds = run_epoch(loader, gpu.copy, lambda moved: gpu.burn(plan.compute_s), _keep, timer)
    minibatch_s = timer.minibatch_s()
    return Epoch(bounds, minibatch_s, timer.placement(), np.array(loaded_s), np.array(got_s))


def bare_epoch_s(gpu: Any, plan: Plan) -> float:
    """Run the same epoch without a clock in it; return how long it took, s."""
    start_s: float = gpu.now()
    for minibatch in _loader(gpu, plan, [], []):
        moved = gpu.copy(minibatch)
        gpu.burn(plan.compute_s)
        _keep(moved)
    gpu.cuda.synchronize()
    return float(gpu.now() - start_s)
