"""The timed loop: what belongs to which interval, and the planted epoch with the real loader."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from epochwatt.board.training import loop, timing
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.loop import run_epoch


class SlowLoader:
    """Takes 8 s of a clock to start, 1 s per mini-batch and 4 s to end."""

    def __init__(self, clock):
        self.clock = clock

    def __iter__(self):
        self.clock.now_s += 8.0
        for index in range(3):
            self.clock.now_s += 1.0
            yield index
        self.clock.now_s += 4.0


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(timing, "perf_counter", lambda: clock.now_s)
    stands_for_time = SimpleNamespace(
        perf_counter=lambda: clock.now_s, time=lambda: clock.now_s + 1e9
    )
    monkeypatch.setattr(loop, "time", stands_for_time)
    return clock


def test_worker_start_belongs_to_the_first_wait_and_shut_down_to_the_overhead(clock):
    timer = timing.HostTimer()
    bounds = run_epoch(SlowLoader(clock), lambda m: m, lambda m: m, lambda _: None, timer)
    assert timer.minibatch_s()[:, 0].tolist() == [9.0, 1.0, 1.0]
    assert bounds.t_end_mono_s - bounds.t_start_mono_s == 9.0 + 1.0 + 1.0 + 4.0


FETCH_MS, COMPUTE_MS, OTHER_MS = 24.0, 15.0, 2.0
STEADY_WAIT_MS = {0: 24.0, 1: 7.0, 2: 0.0}  # fetch / max(1, w) - compute - other, at least 0
N_PLANTED, N_SETTLING = 40, 6
ATTEMPTS = 3  # a machine that others use too may disturb one measurement, hardly three


def take(planted_ms):
    """Sleep until so much time has passed: a plain sleep of a busy machine ends late."""
    end_s = time.perf_counter() + planted_ms / 1000
    time.sleep((planted_ms - 0.5) / 1000)
    while time.perf_counter() < end_s:
        pass


class SleepingSource:
    """Samples that take `FETCH_MS` to be read.

    They are text: to receive a tensor from a worker costs the host up to 1 ms that nobody planted.
    """

    def __len__(self):
        return N_PLANTED

    def read(self, index):
        take(FETCH_MS)
        return "raw", str(index)


def planted_epoch(num_workers):
    """Train the planted epoch; return milliseconds by name, medians of the steady mini-batches."""
    factors = {"batch_size": 1, "num_workers": num_workers, "prefetch_factor": 2}
    minibatches = TimedMinibatches(SleepingSource(), str.upper, num_workers)
    loader = make_loader(minibatches, N_PLANTED, factors, torch.Generator())
    timer = timing.HostTimer()
    kept = []  # (start, end) of the other work, stamped by itself

    def step(_):
        take(COMPUTE_MS)

    def keep(_):
        start_s = time.perf_counter()
        take(OTHER_MS)
        kept.append((start_s, time.perf_counter()))

    bounds = run_epoch(loader, lambda m: m, step, keep, timer)
    wait, copy, compute = 1000 * np.median(timer.minibatch_s()[N_SETTLING:], axis=0)
    kept_s = np.diff(kept).ravel()
    shut_down_s = bounds.t_end_mono_s - kept[-1][1]
    e2e_s = bounds.t_end_mono_s - bounds.t_start_mono_s
    overhead_s = e2e_s - timer.minibatch_s().sum() - shut_down_s
    fetch_s, _ = minibatches.seconds()
    return {
        "wait": wait,
        "copy": copy,
        "compute": compute,
        "other, stamped by itself": 1000 * np.median(kept_s[N_SETTLING:]),
        "other, what E2E leaves": 1000 * overhead_s / N_PLANTED,
        "fetch": 1000 * fetch_s / N_PLANTED,
    }


def off(measured, planted):
    """Return what lies outside max(1 ms, 3 %) of what was planted."""
    return {
        name: (measured[name], planted_ms)
        for name, planted_ms in planted.items()
        if abs(measured[name] - planted_ms) > max(1.0, 0.03 * planted_ms)
    }


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_planted_epoch_comes_back(num_workers):
    planted = {
        "wait": STEADY_WAIT_MS[num_workers],
        "copy": 0.0,
        "compute": COMPUTE_MS,
        "other, stamped by itself": OTHER_MS,
        "other, what E2E leaves": OTHER_MS,
    }
    for _ in range(ATTEMPTS):
        measured = planted_epoch(num_workers)
        wrong = off(measured, planted)
        if not wrong:
            break
    assert wrong == {}
    assert measured["fetch"] >= FETCH_MS  # counted in the workers, on their own clocks
