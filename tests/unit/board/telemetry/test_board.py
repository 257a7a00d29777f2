"""Clocks, loads, fan, throttling and temperatures in the layouts of all releases."""

import math

import pytest

from epochwatt.board.device import board_files
from epochwatt.board.telemetry import nvml
from epochwatt.board.telemetry.board import BoardSource


@pytest.fixture
def open_source(root):
    opened = []

    def make():
        opened.append(BoardSource(str(root)))
        return opened[-1]

    yield make
    for source in opened:
        source.close()


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


@pytest.mark.parametrize(
    ("clock", "load"),
    [
        (
            "sys/kernel/debug/bpmp/debug/clk/emc/rate",
            "sys/kernel/actmon_avg_activity/mc_all",
        ),
        ("sys/kernel/debug/clk/override.emc/clk_rate", "sys/kernel/debug/cactmon/mc_all"),
    ],
)
def test_memory(root, open_source, clock, load):
    root.write(clock, "2133000000\n")
    root.write(load, "533250\n")
    source = open_source()
    found = row(source)
    assert found["emc_mhz"] == 2133.0
    assert found["emc_util_pct"] == pytest.approx(25.0)
    root.write(clock, "0\n")
    assert math.isnan(row(source)["emc_util_pct"])
    assert source.settings()["files"]["emc_mhz"].endswith(clock)


def test_throttling_is_the_largest_state_of_what_slows_the_board(root, open_source):
    devices = [("pwm-fan", 3), ("cpu-throttle-alert", 0), ("gpu-balanced", 2), ("cpufreq-cpu0", 1)]
    for n, (kind, state) in enumerate(devices):
        root.write(f"sys/class/thermal/cooling_device{n}/type", f"{kind}\n")
        root.write(f"sys/class/thermal/cooling_device{n}/cur_state", f"{state}\n")
    source = open_source()
    assert row(source)["throttle_state"] == 2.0
    assert "pwm-fan" not in source.settings()["throttle_state"]
    root.write("sys/class/thermal/cooling_device2/cur_state", "?\n")
    assert row(source)["throttle_state"] == 1.0


def test_temperatures_by_zone(root, open_source):
    zones = [("CPU-therm", 41500), ("PMIC-Die", 100000), ("cv0-thermal", -256000), ("tj", 50250)]
    for n, (kind, value) in enumerate(zones):
        root.write(f"sys/class/thermal/thermal_zone{n}/type", f"{kind}\n")
        root.write(f"sys/class/thermal/thermal_zone{n}/temp", f"{value}\n")
    source = open_source()
    found = row(source)
    assert found["temp_cpu_c"] == 41.5
    assert math.isnan(found["temp_cv0_c"])
    assert found["temp_tj_c"] == 50.25
    assert "temp_pmic_c" not in found
    root.write("sys/class/thermal/thermal_zone2/temp", "39000\n")  # its unit was switched on
    assert row(source)["temp_cv0_c"] == 39.0


def test_thors_gpu_has_no_file_of_its_load_so_nvml_is_asked(root, open_source, monkeypatch):
    """Of a board in a folder it would be this machine's GPU."""
    gpu = root.write("sys/class/devfreq/gpu-gpc-0/cur_freq", "1386000000\n").parent
    monkeypatch.setattr(nvml, "open_load", lambda: lambda: 98.0)
    assert math.isnan(row(open_source())["gpu_util_pct"])
    monkeypatch.setattr(board_files, "find_gpu", lambda root: str(gpu))
    source = BoardSource("/")
    found = row(source)
    assert (found["gpu_mhz"], found["gpu_util_pct"]) == (1386.0, 98.0)
    assert source.settings()["files"]["gpu_util_pct"] == "NVML"
    source.close()
