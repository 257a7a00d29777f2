"""Both CUDA timers on a GPU in simulated time: what was planted comes out, and when it was."""

import numpy as np
import pytest
from fake_gpu import FakeGpu, overlap_s, plan, planted

from epochwatt.board.training import loop, timing
from epochwatt.epochs import placement

RANDOM = np.random.default_rng(20261122)
PEAK_W, STALL_W = 12.0, 3.0


class Trained:
    """An epoch that was simulated: what a record would hold, and the truth."""

    def __init__(self, monkeypatch, plan, gpu_timing, gpu):
        monkeypatch.setattr(timing, "perf_counter", gpu.perf_counter)
        monkeypatch.setattr(loop, "time", gpu)
        self.gpu = gpu
        timer = timing.make_timer(gpu_timing, gpu)
        self.n_waited_before = gpu.n_waited
        self.bounds = loop.run_epoch(
            plan.loader(gpu), plan.copy(gpu), plan.step(gpu), lambda _: None, timer
        )
        self.n_waited = gpu.n_waited - self.n_waited_before
        self.minibatch_s = timer.minibatch_s().astype(np.float32)
        self.placement = timer.placement()
        self.window = self.bounds.t_start_mono_s, self.bounds.t_end_mono_s

    def meta(self):
        start_s, end_s = self.window
        return {
            "timing_method": "whatever",
            "placement": self.placement,
            "t_start_mono_s": start_s,
            "t_end_mono_s": end_s,
        }

    def stalls(self):
        return placement.stall_times(self.meta(), self.minibatch_s)

    def truth(self):
        """Return the planted stalls: the first begins with the epoch."""
        starts, ends = planted(self.gpu)
        starts[0] = self.window[0]
        return starts, ends

    def energy_j(self, starts, ends):
        """Return what the board took in some intervals: one power while it computes, one else."""
        computes = [work for work in self.gpu.log if work.what == "compute"]
        busy_s = overlap_s(
            starts, ends, [work.start_s for work in computes], [work.end_s for work in computes]
        )
        return STALL_W * float((ends - starts).sum()) + (PEAK_W - STALL_W) * busy_s


CASES = {
    "GPU-bound, the host far ahead": plan(
        2000, load_s=0.001, compute_s=0.013, launch_s=0.0005, copy_waits=False
    ),
    "GPU-bound, far ahead, long copies": plan(  # was: "stalls overlap or are out of order"
        2000, load_s=0.001, copy_s=0.003, launch_s=0.0005, copy_waits=False
    ),
    "GPU-bound, as torch copies": plan(2000, load_s=0.001, compute_s=0.013),
    "loader-bound": plan(400, load_s=0.035, compute_s=0.013),
    "mixed": plan(
        1500,
        load_s=np.where(np.arange(1500) % 500 < 250, 0.004, 0.030) * RANDOM.uniform(0.7, 1.3, 1500),
        compute_s=RANDOM.uniform(0.008, 0.018, 1500),
        copy_waits=False,
    ),
    "loader-bound first, GPU-bound then": plan(
        1200, load_s=np.repeat([0.030, 0.001], 600), launch_s=0.004, copy_waits=False
    ),
    "a slow first mini-batch": plan(
        300, load_s=np.append(2.5, np.full(299, 0.006)), compute_s=0.013, copy_waits=False
    ),
    "five mini-batches": plan(5, load_s=0.02),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=["pooled", "synchronised"])
def trained(request, case, monkeypatch):
    return Trained(monkeypatch, case, request.param, FakeGpu(drift=80e-6))


def test_wait_copy_and_compute_are_what_was_planted(trained, case):
    wait_s, copy_s, compute_s = trained.minibatch_s.sum(axis=0, dtype=float)
    starts, ends = trained.truth()
    done_s = np.array([work.end_s for work in trained.gpu.log if work.what == "compute"])
    assert copy_s == pytest.approx(case.copy_s.sum(), rel=0.03)  # 3 us of each call to CUDA
    assert wait_s + copy_s == pytest.approx((ends - starts).sum(), rel=0.01)
    assert compute_s == pytest.approx((done_s - ends).sum(), rel=0.001)
    assert wait_s + copy_s + compute_s <= (trained.window[1] - trained.window[0]) * 1.0001


def test_stalls_are_placed_where_they_were(trained):
    starts, ends = trained.truth()
    told_starts, told_ends = trained.stalls()
    planted_s, told_s = (ends - starts).sum(), (told_ends - told_starts).sum()
    both_s = overlap_s(starts, ends, told_starts, told_ends)
    assert both_s >= 0.98 * planted_s - 0.002
    assert both_s >= 0.98 * told_s - 0.002
    assert (told_starts[1:] >= told_ends[:-1] - 1e-9).all()


def test_drift_of_the_gpus_clock_is_taken_out(monkeypatch):
    case = plan(3000, load_s=0.035)  # 105 s
    trained = Trained(monkeypatch, case, "pooled", FakeGpu(drift=500e-6))
    true_starts, _ = trained.truth()
    told_starts, _ = trained.stalls()
    assert np.abs(told_starts - true_starts)[1:].max() < 0.001  # 52 ms if it were left in


# the host loads 0.8 s; with pooled timing it begins while the GPU computes its 13 ms
@pytest.mark.parametrize(("gpu_timing", "wait_s"), [("pooled", 0.787), ("synchronised", 0.800)])
def test_railgating_adds_its_wake_up_to_the_wait(monkeypatch, gpu_timing, wait_s):
    """Known and documented: the event after an idle time passes once the GPU is awake."""
    case = plan(20, load_s=0.8, copy_s=0.005, workers=False)
    asleep = Trained(monkeypatch, case, gpu_timing, FakeGpu(railgate_s=0.5, wake_s=0.008))
    assert asleep.minibatch_s[1:] == pytest.approx(
        np.tile([wait_s + 0.008, 0.005, 0.015], (19, 1)), abs=4e-5
    )
