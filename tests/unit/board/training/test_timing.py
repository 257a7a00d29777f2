"""Stamps become wait, copy and compute of whole mini-batches, on a host's clock and a GPU's."""

from types import SimpleNamespace

import numpy as np
import pytest
from fake_gpu import FakeGpu

from epochwatt.board.training import timing
from epochwatt.board.training.loop import AGAIN, ASK, BODY, COPY, DONE, PAUSE, STEP, Bounds


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(timing, "perf_counter", lambda: clock.now_s)
    return clock


OURS = [(ASK, 3), (COPY, 5), (STEP, 7), (DONE, 11)]
PLAIN = [(ASK, 3), (BODY, 5)]
ODD = [(ASK, 3), (BODY, 1), (COPY, 5), (BODY, 1), (STEP, 7), (DONE, 1), (STEP, 2), (DONE, 4)]
PAUSED = [(ASK, 3), (PAUSE, 50), (AGAIN, 2), (BODY, 5)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (OURS + OURS, [[3, 5, 7], [3, 5, 7]]),
        (PLAIN + PLAIN, [[3, 0, 5], [3, 0, 5]]),
        (ODD + PLAIN, [[3, 5, 9], [3, 0, 0]]),  # once told, steps alone are compute
        (PLAIN + PAUSED, [[3, 0, 5], [5, 0, 5]]),
        (PAUSED + PLAIN[:1], [[5, 0, 5]]),
        ([], []),
    ],
)
@pytest.mark.parametrize("left_in", [[], [(BODY, 9)], [(BODY, 9), (COPY, 9)]])
def test_parts_of_whole_minibatches_are_added_up(clock, parts, expected, left_in):
    timer = timing.HostTimer()
    for part, seconds in [*parts, (ASK, 40), *left_in]:
        timer.stamp(part)
        clock.now_s += seconds
    n = sum(part == ASK for part, _ in parts)
    found = timing.timed(timer, Bounds(100.0, clock.now_s, 1e9, clock.now_s + 1e9), not left_in)
    assert found.minibatch_s[: len(expected)].tolist() == expected
    assert found.minibatch_s.shape == (n, 3)
    meta = timing.times_of(found)
    whole_s = sum(seconds for _, seconds in parts)
    assert meta["placement"]["starts"][-1] == [n, 100.0 + whole_s]
    assert (meta["e2e_s"], meta["tail_s"]) == ((whole_s, 0) if left_in else (whole_s + 40, 40))
    assert meta["t_end_unix_s"] - meta["t_end_mono_s"] == 1e9
    assert (meta["n_minibatches"], meta["host_wait_s"]) == (n, None)
    assert meta["wait_s"] == found.minibatch_s[:, 0].sum()


@pytest.mark.parametrize("says_steps", [False, True])
@pytest.mark.parametrize("is_synchronised", [False, True])
def test_loop_of_others_on_a_gpu(monkeypatch, is_synchronised, says_steps):
    """The host is idle for 1 ms a mini-batch and gives the GPU 9 ms of work, far ahead of it."""
    gpu, n = FakeGpu(), 12
    monkeypatch.setattr(timing, "perf_counter", gpu.perf_counter)
    timer = timing.CudaEventTimer(gpu, is_synchronised)
    before, made = gpu.n_waited, gpu.n_events
    timer.stamp(ASK)
    for _ in range(n):
        gpu.host_s += 0.001
        timer.stamp(BODY)
        timer.stamp(COPY)
        gpu.work("copy", 0.002)
        timer.stamp(BODY)
        if says_steps:
            timer.stamp(STEP)
        gpu.work("compute", 0.007)
        if says_steps:
            timer.stamp(DONE)
        timer.stamp(ASK)
    n_waited = gpu.n_waited - before
    timer.finish()
    minibatch_s, starts = timer.minibatch_s(), timer.placement()["starts"]
    assert n <= n_waited <= n + 1 if is_synchronised else n_waited == 0
    assert gpu.n_events - made <= (16 if is_synchronised else 8 * n)
    np.testing.assert_allclose(minibatch_s[1:, 1:], [[0.002, 0.007]] * (n - 1), atol=4e-5)
    np.testing.assert_allclose(minibatch_s[1:, 0], 0.001 if is_synchronised else 0.0, atol=4e-5)
    host_wait_s = timer.host_wait_s()
    assert host_wait_s is None if is_synchronised else host_wait_s == pytest.approx(n / 1e3, 0.02)
    assert starts[0][1] == pytest.approx(5000.0, abs=1e-3)
    assert starts[-1] == [n, pytest.approx(gpu.free_s, abs=1e-4)]
