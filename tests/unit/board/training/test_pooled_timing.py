"""Pooled CUDA events, on a made-up GPU with a clock of its own."""

import pytest

from epochwatt.board.training import timing


class FakeGpu:
    """Stands for `torch.cuda`: a host clock moved by hand, a stream that works after it."""

    def __init__(self):
        self.host_s = 0.0
        self.busy_until_s = 0.0
        self.n_events = 0
        self.n_synchronised = 0

    def launch(self, gpu_s, host_s=0.0):
        """Put work of `gpu_s` into the stream; launching costs the host `host_s`."""
        self.host_s += host_s
        self.busy_until_s = max(self.busy_until_s, self.host_s) + gpu_s

    def synchronize(self):
        self.n_synchronised += 1
        self.host_s = max(self.host_s, self.busy_until_s)

    def Event(self, enable_timing):
        assert enable_timing
        self.n_events += 1
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, gpu):
        self.gpu = gpu
        self.passed_s = None

    def record(self):
        self.passed_s = max(self.gpu.host_s, self.gpu.busy_until_s)

    def query(self):
        return self.passed_s <= self.gpu.host_s

    def synchronize(self):
        self.gpu.n_synchronised += 1
        self.gpu.host_s = max(self.gpu.host_s, self.passed_s)

    def elapsed_time(self, later):
        assert later.passed_s >= self.passed_s
        return 1000.0 * (later.passed_s - self.passed_s)


@pytest.fixture
def gpu(monkeypatch):
    gpu = FakeGpu()
    monkeypatch.setattr(timing, "perf_counter", lambda: gpu.host_s)
    return gpu


def run(timer, gpu, n, load_s, copy_s, launch_s, compute_s):
    """Train `n` mini-batches; return E2E on the host's clock."""
    start_s = gpu.host_s
    timer.stamp()
    for _ in range(n):
        gpu.host_s += load_s
        timer.stamp()
        gpu.launch(copy_s)
        timer.stamp()
        gpu.launch(compute_s, host_s=launch_s)
        timer.stamp()
        timer.stamp()
    timer.finish()
    return gpu.host_s - start_s


def test_a_gpu_slower_than_the_loader_does_not_wait_though_the_host_does(gpu):
    timer = timing.make_timer(50, "pooled", gpu)
    run(timer, gpu, 50, load_s=0.004, copy_s=0.001, launch_s=0.0, compute_s=0.020)
    assert timer.minibatch_s()[5:].mean(axis=0) == pytest.approx([0.0, 0.001, 0.020])
    assert timer.host_wait_s() == pytest.approx(50 * 0.004)


@pytest.mark.parametrize("gpu_timing", ["pooled", "synchronised"])
def test_the_parts_add_up_to_the_whole_either_way(gpu, gpu_timing):
    timer = timing.make_timer(30, gpu_timing, gpu)
    e2e_s = run(timer, gpu, 30, load_s=0.030, copy_s=0.002, launch_s=0.010, compute_s=0.010)
    assert timer.minibatch_s().sum() == pytest.approx(e2e_s, rel=0.01)
