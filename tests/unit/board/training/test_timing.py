"""The clocks of the loop come out as planted: the host's, and CUDA events on a made-up GPU."""

import numpy as np
import pytest

from epochwatt.board.training import loop, timing

WAIT_S, COPY_S, COMPUTE_S, OTHER_S = 0.024, 0.003, 0.015, 0.002


class Machine:
    """A host clock and a GPU that works after it; stands for `torch.cuda` as well."""

    def __init__(self):
        self.host_s = 0.0
        self.gpu_free_s = 0.0
        self.done = []  # what happened, in order

    def perf_counter(self):
        return self.host_s

    time = perf_counter

    def work(self, host_s, gpu_s=0.0):
        self.host_s += host_s
        if gpu_s:
            self.gpu_free_s = max(self.gpu_free_s, self.host_s) + gpu_s

    def Event(self, enable_timing):
        assert enable_timing
        return Event(self)

    def train(self, timer, n, copy, step):
        """Run the loop; `copy` and `step` are (host, GPU) seconds. Return E2E."""

        def loader():
            for index in range(n):
                self.work(WAIT_S)
                yield index

        def keep(_):
            self.done.append("keep")
            self.work(OTHER_S)

        bounds = loop.run_epoch(
            loader(), lambda _: self.work(*copy), lambda _: self.work(*step), keep, timer
        )
        return bounds.t_end_mono_s - bounds.t_start_mono_s


class Event:
    """A CUDA event of the made-up GPU: its time may be read only once the host has waited."""

    def __init__(self, machine):
        self.machine = machine
        self.passed_s = None

    def record(self):
        self.passed_s = max(self.machine.host_s, self.machine.gpu_free_s)

    def synchronize(self):
        self.machine.done.append("synchronize")
        self.machine.host_s = max(self.machine.host_s, self.passed_s)

    def elapsed_time(self, later):
        if later.passed_s > self.machine.host_s:
            raise RuntimeError("CUDA error: device not ready")
        return 1000.0 * (later.passed_s - self.passed_s)


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(timing, "perf_counter", machine.perf_counter)
    monkeypatch.setattr(loop, "time", machine)
    return machine


def test_host_timer_gives_wait_copy_and_compute_as_planted(machine):
    timer = timing.HostTimer(5)
    e2e_s = machine.train(timer, 5, copy=(COPY_S,), step=(COMPUTE_S,))
    np.testing.assert_allclose(timer.minibatch_s(), [[WAIT_S, COPY_S, COMPUTE_S]] * 5)
    assert e2e_s - timer.minibatch_s().sum() == pytest.approx(5 * OTHER_S)


@pytest.mark.parametrize("make", [timing.HostTimer, lambda n: timing.CudaEventTimer(n, Machine())])
@pytest.mark.parametrize(
    ("n_stamps", "n_finished"), [(0, 0), (1, 0), (3, 0), (4, 1), (7, 1), (9, 2)]
)
def test_only_finished_minibatches_are_given(make, n_stamps, n_finished):
    timer = make(2)
    for _ in range(n_stamps):
        timer.stamp()
    assert timer.n_stamps == n_stamps
    assert timer.minibatch_s().shape == (n_finished, 3)
    assert (timer.minibatch_s() >= 0).all()
