"""The GPU check: its parts on a GPU in simulated time, and what it does without one."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from fake_gpu import FakeGpu

from benchmarks import gpu_check, memory, memory_steps
from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt import monitor
from epochwatt.board.telemetry.which_gpu import NONE
from epochwatt.board.training import allocated, loop, timing

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


def test_epoch_monitor_tells_a_script_what_was_planted(gpu, monkeypatch):
    monkeypatch.setattr(monitor, "time", gpu.cuda)
    monkeypatch.setattr(monitor, "_current_gpu", lambda: (gpu.cuda, torch.device("cpu"), NONE))
    monkeypatch.setattr(gpu_check, "_monitored", lambda *_: ({"LeNet": [1.0]}, True))
    found = gpu_check.monitor(gpu, plan=gpu_check.Plan(8, load_s=0.020, compute_s=0.080))
    rows = {row.what: row for row in found.rows}
    assert rows["script, synchronised: wait, off by"].met
    for kind in gpu_check.TIMINGS:
        assert rows[f"script, {kind}: its parts / E2E"].met


def test_forecasts_of_memory_are_held_against_the_allocator(gpu, monkeypatch):
    """2 % more than is forecast, by networks that take more than a page of code."""
    cases = [{"network": "lenet", "batch_size": 2}, {"network": "resnet18", "batch_size": 4}]

    def allocator(task, case):
        subject = memory_steps.subject(case["network"])
        manner = allocated.Manner(on_gpu=task == "on_gpu")
        peak = int(1.02 * allocated.forecast(subject, case["batch_size"], manner).peak)
        return {"allocated": peak, "reserved": 2 * peak, "blas": 0}

    monkeypatch.setattr(memory, "draw", lambda seed: cases[seed - 2 : seed - 1])
    monkeypatch.setattr(memory, "in_process", allocator)
    found = gpu_check.memory(gpu)
    median, worst, kept = found.rows
    assert median.values == pytest.approx([100.0 * (1.0 - 1.0 / 1.02)], abs=0.01)
    assert (median.met, worst.met) == (False, True)
    assert kept.values == pytest.approx([1.0], abs=0.01)
    assert len(found.details["trainings"]) == len(cases)


@pytest.mark.thorough
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
