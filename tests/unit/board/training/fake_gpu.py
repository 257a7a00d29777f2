"""A GPU in simulated time: what `torch.cuda` is to the timers, with a truth to compare with.

The host has a clock that moves with what it does. The GPU has one stream, which works off what it
was given in order, and a clock of its own, which is off and drifts against the host's. An event is
stamped when the stream reaches it, in half microseconds, and is told in float32 milliseconds.
"""

from math import floor
from typing import NamedTuple

import numpy as np

TICK_S = 0.5e-6  # resolution of CUDA's events


class Work(NamedTuple):
    """What the stream did, in true seconds."""

    what: str  # copy, compute
    start_s: float
    end_s: float


class FakeGpu:
    """Stands for `torch.cuda`; its `perf_counter` and `time` are the simulated host's clock.

    Parameters
    ----------
    call_s : what one call costs the host
    drift : by which part the GPU's clock runs faster than the host's
    railgate_s : idle for longer, the GPU is switched off; None: never
    wake_s : what it takes to come back
    """

    def __init__(self, call_s=3e-6, drift=0.0, railgate_s=None, wake_s=0.0):
        self.host_s = 5000.0  # true time is the host's
        self.free_s = 0.0  # the stream has worked off what it was given
        self.call_s, self.drift = call_s, drift
        self.railgate_s, self.wake_s = railgate_s, wake_s
        self.log = []
        self.n_events = 0
        self.n_waited = 0  # how often the host had to wait for the GPU

    def perf_counter(self):
        return self.host_s

    time = perf_counter

    def reach(self, busy_s=0.0):
        """Give the stream something to do; return when it begins with it."""
        self.host_s += self.call_s
        start_s = max(self.host_s, self.free_s)
        if self.railgate_s is not None and start_s - self.free_s > self.railgate_s:
            start_s += self.wake_s
        self.free_s = start_s + busy_s
        return start_s

    def work(self, what, gpu_s, host_s=0.0):
        """Launch a kernel of `gpu_s`; launching costs the host `host_s`."""
        self.host_s += host_s
        start_s = self.reach(gpu_s)
        self.log.append(Work(what, start_s, start_s + gpu_s))

    def wait_until(self, moment_s):
        """Let the host wait."""
        if moment_s > self.host_s:
            self.n_waited += 1
            self.host_s = moment_s

    def synchronize(self):
        """Let the host wait for the stream."""
        self.host_s += self.call_s
        self.wait_until(self.free_s)

    def clock_s(self, true_s):
        """Return what the GPU's clock shows at a moment."""
        return TICK_S * floor((true_s * (1.0 + self.drift) + 77.7) / TICK_S)

    def Event(self, enable_timing):
        assert enable_timing
        self.n_events += 1
        return FakeEvent(self)


class FakeEvent:
    """A CUDA event: like the real one it tells no time before the host could know it has passed."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.passed_s = None

    def record(self):
        self.passed_s = self.gpu.reach()

    def query(self):
        self.gpu.host_s += self.gpu.call_s
        return self.passed_s <= self.gpu.host_s

    def synchronize(self):
        self.gpu.host_s += self.gpu.call_s
        self.gpu.wait_until(self.passed_s)

    def elapsed_time(self, later):
        if max(self.passed_s, later.passed_s) > self.gpu.host_s:
            raise RuntimeError("CUDA error: device not ready")
        clock_s = self.gpu.clock_s
        return float(np.float32(1000.0 * (clock_s(later.passed_s) - clock_s(self.passed_s))))


class Plan(NamedTuple):
    """An epoch to simulate; seconds of each mini-batch, arrays (n,)."""

    load_s: np.ndarray  # what the loader takes for it
    copy_s: np.ndarray  # on the GPU
    launch_s: np.ndarray  # of its kernels, on the host
    compute_s: np.ndarray  # on the GPU
    copy_waits: bool = True  # as torch's `.to` from pageable memory; False: the host runs ahead
    workers: bool = True  # the loader works beside the loop; False: inside of it

    def loader(self, gpu):
        """Yield the mini-batches, each when it is ready; shutting down takes 20 ms."""
        ready_s = gpu.host_s
        for n, load_s in enumerate(self.load_s):
            ready_s = (ready_s if self.workers else gpu.host_s) + load_s
            gpu.host_s = max(gpu.host_s, ready_s)
            yield n
        gpu.host_s += 0.020

    def copy(self, gpu):
        """Return the loop's `copy`."""

        def copy(n):
            gpu.work("copy", self.copy_s[n])
            if self.copy_waits:
                gpu.synchronize()
            return n

        return copy

    def step(self, gpu):
        """Return the loop's `step`."""

        def step(n):
            gpu.work("compute", self.compute_s[n], self.launch_s[n])
            return n

        return step


def plan(n, load_s, copy_s=0.0004, launch_s=0.002, compute_s=0.013, **options):
    """Return a plan of n mini-batches; each of the times is a number or an array (n,)."""
    times = (load_s, copy_s, launch_s, compute_s)
    return Plan(*(np.broadcast_to(np.asarray(t, dtype=float), n) for t in times), **options)


def planted(gpu):
    """Return when the GPU stalled, from its log: from the end of one step to that of the next copy.

    Returns
    -------
    starts, ends : float (n,), true seconds; the first one starts with the epoch and is left open
    """
    copies = [work for work in gpu.log if work.what == "copy"]
    computes = [work for work in gpu.log if work.what == "compute"]
    starts = np.array([np.nan] + [work.end_s for work in computes[:-1]])
    return starts, np.array([work.end_s for work in copies])


def overlap_s(starts, ends, other_starts, other_ends):
    """Return for how long both of two lists of intervals hold, s."""
    low = np.maximum(np.asarray(starts)[:, None], np.asarray(other_starts)[None, :])
    high = np.minimum(np.asarray(ends)[:, None], np.asarray(other_ends)[None, :])
    return float((high - low).clip(min=0.0).sum())
