"""The GPU check: its parts on a GPU in simulated time, and what it does without one."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fake_gpu import FakeGpu

from benchmarks import gpu_check
from benchmarks.gpu_check import Sampled, timed_epoch
from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt.board.training import loop, timing
from epochwatt.board.training.timing import CudaEventTimer, placed

IDLE_W, BUSY_W = 60.0, 300.0


class SimulatedGpu:
    """What `RealGpu` is, in simulated time."""

    def __init__(self, **options):
        self.cuda = FakeGpu(**options)

    def now(self):
        return self.cuda.host_s

    def sleep(self, seconds):
        self.cuda.host_s += seconds

    def load(self):
        return "a mini-batch"

    def copy(self, minibatch):
        self.cuda.work("copy", 0.0004)
        self.cuda.synchronize()
        return minibatch

    def burn(self, seconds):
        self.cuda.work("compute", seconds, host_s=0.0005)


@pytest.fixture
def gpu(monkeypatch):
    gpu = SimulatedGpu(drift=80e-6)
    monkeypatch.setattr(timing, "perf_counter", gpu.now)
    monkeypatch.setattr(loop, "time", gpu.cuda)
    return gpu


def missed(rows):
    return [row.what for row in rows if row.met is False]


def test_sound_timers_meet_every_budget(gpu):
    result = gpu_check.timers(gpu, pairs=3)
    assert missed(result.rows) == []
    assert sum(row.met is not None for row in result.rows) >= 14


def test_stalls_placed_by_the_hosts_clock_are_noticed(gpu, monkeypatch):
    """The defect that this check is for: the GPU is behind, and the host's last ask is taken."""

    def by_the_host(self):
        return placed("gpu" if self.method == "cuda_events_pooled" else "host", self.asked_s(), 0.0)

    monkeypatch.setattr(CudaEventTimer, "placement", by_the_host)
    assert "loader-bound, pooled: end of a wait, off by" in missed(gpu_check.timers(gpu, 1).rows)


def sampled(gpu, window, gain=1.0):
    """Return what NVML would have told of the simulated GPU: power, and a counter with `gain`."""
    t_s = np.arange(window[0] - 0.2, window[1] + 0.2, 0.02)
    rng = np.random.default_rng(5)
    t_s += rng.uniform(0, 0.02, t_s.size)
    busy = np.zeros(t_s.size, dtype=bool)
    busy_s = np.zeros(t_s.size)
    for work in gpu.cuda.log:
        if work.what == "compute":
            busy |= (t_s >= work.start_s) & (t_s < work.end_s)
            busy_s += np.clip(t_s, work.start_s, work.end_s) - work.start_s
    table = {
        "t_mono_s": t_s,
        # a card tells milliwatts, and no two readings are the same: its steps are seen in them
        "power_gpu_w": (np.where(busy, BUSY_W, IDLE_W) + rng.normal(0, 0.5, t_s.size)).round(3),
        "energy_gpu_j": gain * ((t_s - t_s[0]) * IDLE_W + busy_s * (BUSY_W - IDLE_W)),
    }
    counts = {"n_negative": 0, "stuck_s": 0.0, "n_failed": 0, "n_samples": t_s.size}
    sensor = {"reads": "instant", "averaging_s": None, "update_s": None, "step_w": {}}
    about = {
        "scope": "gpu",
        "total": "power_gpu_w",
        "step_mean_s": 0.02,
        "period_s": 0.02,
        **counts,
    }
    return Sampled(table, {**about, "settings": {"sensor": sensor}})


@pytest.mark.parametrize("kind", gpu_check.TIMINGS)
@pytest.mark.parametrize(("gain", "n_missed"), [(1.0, 0), (1.3, 1)])
def test_energy_of_planted_stalls_is_compared_with_the_counter(gpu, kind, gain, n_missed):
    epoch = timed_epoch(gpu, gpu_check.STALLING[kind], kind)
    window = epoch.bounds.t_start_mono_s, epoch.bounds.t_end_mono_s
    told = sampled(gpu, window, gain)
    result = gpu_check.stall_rows(kind, told, epoch)
    assert [row.what for row in result.rows] == [f"{kind}: stall energy / counter"]
    assert len(missed(result.rows)) == n_missed
    assert len(missed(gpu_check.power_rows(told.table, window))) == n_missed


def test_sensor_that_cannot_tell_stalls_has_to_say_so(gpu):
    """An average over more than a stall gives no number; then a flag is all that is asked for."""
    epoch = timed_epoch(gpu, gpu_check.STALLING["pooled"], "pooled")
    told = sampled(gpu, (epoch.bounds.t_start_mono_s, epoch.bounds.t_end_mono_s))
    told.about["settings"]["sensor"] |= {"reads": "mean", "averaging_s": 1.0}
    result = gpu_check.stall_rows("pooled", told, epoch)
    assert result.details["stall_energy_j"] is None
    assert [row.what for row in result.rows] == ["pooled: stall energy is empty, and flagged"]
    assert missed(result.rows) == []


def test_torch_counts_the_operations_that_hand_and_twin_count():
    on_the_cpu = SimpleNamespace(torch=torch, device=torch.device("cpu"))
    result = gpu_check.flops(on_the_cpu, ["lenet"])
    assert [row.what.split(",")[0] for row in result.rows] == [
        "FLOPs of two layers",
        "FLOPs of lenet",
    ]
    assert missed(result.rows) == []


def broken(gpu):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def fine(gpu):
    return Result([Row("a ratio", [1.0], "", 2, at_most(1.1)), Row("another", [3.0], "W", 1)])


@pytest.mark.parametrize(
    ("built", "reason"), [("12.8", "sees none"), (None, "is built without CUDA")]
)
def test_machine_without_a_gpu_says_so(monkeypatch, capsys, tmp_path, built, reason):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", built)
    assert gpu_check.main(["--out", str(tmp_path)]) == 0
    assert reason in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("parts", "status"), [([fine], 0), ([broken], 1)])
def test_whole_command_on_a_gpu(gpu, monkeypatch, capsys, tmp_path, parts, status):
    gpu.torch = SimpleNamespace(__version__="9.9", version=SimpleNamespace(cuda="99"))
    gpu.cuda.get_device_name = lambda index: "NVIDIA Simulated"
    monkeypatch.setattr(gpu_check, "why_not", lambda: None)
    monkeypatch.setattr(gpu_check, "RealGpu", lambda torch: gpu)
    named = [("timers", lambda gpu: gpu_check.timers(gpu, 1)), *((p.__name__, p) for p in parts)]
    monkeypatch.setattr(gpu_check, "PARTS", named)
    assert gpu_check.main(["--out", str(tmp_path)]) == status
    assert "NVIDIA Simulated" in capsys.readouterr().out
    told = json.loads((tmp_path / "nvidia-simulated.json").read_text("utf-8"))["gpu_check"]
    assert len(told["details"]["parts"]["timers"]["GPU-bound, pooled"]) == gpu_check.GPU_BOUND.n


def test_the_check_needs_nothing_of_the_workflow_to_start():
    """A system's own torch has neither Snakemake nor the libraries of the configuration."""
    code = """
import sys
for name in "snakemake yaml pydantic matplotlib torchvision PIL sklearn psutil pynvml".split():
    sys.modules[name] = None
from benchmarks import gpu_check, results
results.host.describe()
sys.exit(gpu_check.main([]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={
            "PYTHONPATH": f"{REPOSITORY}/src",
            "CUDA_VISIBLE_DEVICES": "",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no GPU to check here" in done.stdout
