"""The sampler beside the real jtop service, both versions in use, on a made-up AGX Orin."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from jtop_service import HWMON, JtopService, make_board, write

from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry.client import QUIT_S, Sampler

VERSIONS = {"7.2.2": ["nvidia-ml-py==13.615.71"], "4.3.2": []}
USED_BY_BOTH = ["smbus2==0.6.1", "distro==1.9.0"]
EPOCH_S = 4.0
GPU_MV = "sys/" + HWMON.format("1-0040", 3) + "/in1_input"


def _namespace_refused() -> str:
    """Return why no service can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "the jtop service runs as root only"
    try:
        subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "true"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no namespace to hide the service in: {error}"
    return ""


REFUSED = _namespace_refused()
pytestmark = [
    *(pytest.mark.workflow, pytest.mark.thorough),
    pytest.mark.skipif(bool(REFUSED), reason=REFUSED or "-"),
]


@pytest.fixture(scope="module", params=VERSIONS)
def jetson_stats(request, tmp_path_factory):
    """A virtual environment with nothing but one version of jetson-stats: version, interpreter."""
    folder = tmp_path_factory.mktemp("venv")
    python = folder / "bin/python"
    packages = [f"jetson-stats=={request.param}", *USED_BY_BOTH, *VERSIONS[request.param]]
    uv = [sys.executable, "-m", "uv", "--quiet"]
    try:
        for words in (
            ["venv", "--clear", "--python", sys.executable, folder],
            ["pip", "install", "--no-deps", "--python", python, *packages],
        ):
            subprocess.run([*uv, *words], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"jetson-stats {request.param} cannot be had: {error.stderr[-300:]}")
    return request.param, python


@pytest.fixture
def service(jetson_stats, tmp_path):
    with JtopService(jetson_stats[1], tmp_path) as running:
        yield running


@pytest.fixture
def start(service, tmp_path, monkeypatch):
    """Return a function that starts the real sampler with a power source."""
    monkeypatch.setattr(sys, "executable", str(service.inside))
    started = []

    def make(power):
        root = str(service.board)
        started.append(Sampler.start(os.getpid(), str(tmp_path), 1, root=root, power=power))
        return started[-1]

    yield make
    for sampler in started:
        sampler.stop()


def record(sampler, folder, seconds=EPOCH_S):
    """Sample for some time; return the statistics."""
    folder.mkdir()
    sampler.begin(str(folder))
    time.sleep(seconds)
    return sampler.end()


def test_rails_and_totals(jetson_stats, start, tmp_path):
    """Ours adds what stands side by side; jtop's also what hangs below, and 4.x a USB-C port."""
    version = jetson_stats[0]
    sampler = start("jtop")
    assert sampler.sources["jtop"] == "module"
    about = record(sampler, tmp_path / "epoch")["sources"]["jtop"]
    assert (about["n_failed"], about["total"]) == (0, "power_module_w")
    assert about["settings"]["jetson_stats"] == version
    assert about["settings"]["service_interval_s"] == 1.0
    assert about["settings"]["total_of"] == ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"]
    assert about["settings"]["left_out"] == (["1-00081"] if version == "4.3.2" else [])
    samples = read_samples(str(tmp_path / "epoch"), "jtop")
    assert len(samples["t_mono_s"]) >= EPOCH_S
    told = {name: set(values) for name, values in samples.items() if name.endswith("_w")}
    assert told == {
        "rail_vdd_gpu_soc_w": {8.0},
        "rail_vdd_cpu_cv_w": {4.0},
        "rail_vin_sys_5v0_w": {9.0},
        "rail_vddq_vdd2_1v8ao_w": {2.0},
        "power_module_w": {21.0},
        "power_jtop_w": {26.0 if version == "4.3.2" else 23.0},
    }
    others = {"gpu_mhz": 918.0, "gpu_util_pct": 62.5, "emc_mhz": 2133.0, "emc_util_pct": 30.0}
    others |= {"fan_pct": 20.0, "temp_cpu_c": 48.5}
    assert {name: set(samples[name]) for name in others} == {n: {v} for n, v in others.items()}
    assert np.isnan(samples["temp_cv0_c"]).all()
    assert samples["sample_way_s"].max() < 3.0


def test_samples_follow_the_rails_and_the_total_is_that_of_the_sensors_files(
    service, start, tmp_path
):
    record(start("sysfs"), tmp_path / "files", seconds=0.5)
    assert set(read_samples(str(tmp_path / "files"), "sysfs")["power_module_w"]) == {21.0}
    sampler = start("jtop")
    (tmp_path / "epoch").mkdir()
    sampler.begin(str(tmp_path / "epoch"))
    write(service.board / GPU_MV, 30000)
    time.sleep(EPOCH_S)
    sampler.end()
    total_w = read_samples(str(tmp_path / "epoch"), "jtop")["power_module_w"]
    assert (total_w[0], total_w[-1]) == (21.0, 25.0)


def test_each_sample_once_at_the_instant_at_which_the_service_read_the_rail(
    service, start, tmp_path
):
    """The rail shows the time: its voltage is a count of milliseconds."""
    sampler = start("jtop")
    begin_s, over = time.monotonic(), threading.Event()

    def tick():
        while not over.wait(0.002):
            write(service.board / GPU_MV, round(1e3 * (time.monotonic() - begin_s)))

    clock = threading.Thread(target=tick)
    clock.start()
    try:
        time.sleep(1.5)
        before_s = time.monotonic()
        about = record(sampler, tmp_path / "epoch", seconds=10.0)["sources"]["jtop"]
    finally:
        over.set()
        clock.join()
    samples = read_samples(str(tmp_path / "epoch"), "jtop")
    t_s = samples["t_mono_s"]
    shown_s = begin_s + samples["rail_vdd_gpu_soc_w"] / 0.4  # 400 mA
    assert t_s[0] <= before_s < t_s[1]
    assert t_s[-1] >= before_s + 10.0
    assert len(set(shown_s)) == len(t_s) == about["n_samples"]
    assert np.allclose(np.diff(t_s), 1.0, atol=0.5)
    error_s = np.median(np.abs(shown_s - t_s))
    assert error_s < 0.1  # where a reading of the newest sample is half a second off


def test_rail_that_is_lost_takes_the_total_with_it(service, start, tmp_path):
    """jtop's own total shrinks by that rail, and nothing says so."""
    sampler = start("jtop")
    (service.board / GPU_MV).unlink()
    time.sleep(2.5)
    about = record(sampler, tmp_path / "epoch", seconds=2.0)["sources"]["jtop"]
    samples = read_samples(str(tmp_path / "epoch"), "jtop")
    assert np.isnan(samples["rail_vdd_gpu_soc_w"]).all()
    assert np.isnan(samples["power_module_w"]).all()
    assert about["n_failed"] == 0
    assert (samples["power_jtop_w"] < 19.0).all()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_service_that_is_lost_is_a_gap(service, start, tmp_path, number):
    """Killed, it ends the client; stopped, it leaves the client waiting: no window waits long."""
    sampler = start("jtop")
    service.signal(number)
    about = record(sampler, tmp_path / "epoch", seconds=6.0)["sources"]["jtop"]
    assert about["n_failed"] >= 5
    assert "no new sample from jtop for" in about["error"]
    samples = read_samples(str(tmp_path / "epoch"), "jtop")
    assert len(samples["t_mono_s"]) <= 2  # from before
    before_s = time.monotonic()
    sampler.stop()
    assert time.monotonic() - before_s < QUIT_S + 1.0


@pytest.mark.skipif(Path("/run/jtop.sock").exists(), reason="a jtop service runs here")
def test_no_service_falls_back_to_the_sensors_files(jetson_stats, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(jetson_stats[1]))
    make_board(tmp_path / "board")
    root = str(tmp_path / "board")
    with Sampler.start(os.getpid(), str(tmp_path), 1, root=root, power="jtop") as sampler:
        assert "jtop" not in sampler.sources
        about = record(sampler, tmp_path / "epoch", seconds=0.5)["sources"]["sysfs"]
    assert "jtop.service is not active" in about["settings"]["fallback"]


def test_sampler_stays_as_it_was(start, tmp_path):
    """7.x changes how Python starts processes, and its thread is no part of what is prioritised."""
    sampler = start("jtop")
    record(sampler, tmp_path / "epoch", seconds=0.5)
    threads = [int(name) for name in os.listdir(f"/proc/{sampler.pid}/task")]
    others = [thread for thread in threads if thread != sampler.pid]
    assert len(others) == 2  # the client's, and the one that stands in when a reading hangs
    assert os.SCHED_OTHER in [os.sched_getscheduler(thread) for thread in others]
    os.kill(sampler.pid, signal.SIGINT)  # the trainer's affair
    about = record(sampler, tmp_path / "after", seconds=1.5)
    assert about["sources"]["jtop"]["n_failed"] == 0
    children = Path(f"/proc/{sampler.pid}/task/{sampler.pid}/children")
    assert not children.exists() or children.read_text() == ""
