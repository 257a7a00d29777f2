"""Which sources a machine has."""

import logging
import os
import sys
import types

import pytest

from epochwatt.telemetry import discover
from epochwatt.telemetry.discover import sources
from epochwatt.telemetry.source import Source


def names(found):
    for source in found:
        source.close()
    return [source.name for source in found]


@pytest.fixture
def nano(root):
    """Turn the made-up machine into a Jetson Nano with its sensor."""
    root.write("proc/device-tree/model", "NVIDIA Jetson Nano Developer Kit\0")
    root.write("proc/device-tree/compatible", "nvidia,p3450-0000\0nvidia,p3448\0nvidia,tegra210\0")
    folder = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    root.write(f"{folder}/rail_name_0", "POM_5V_IN\n")
    root.write(f"{folder}/in_power0_input", "2500\n")
    root.write(f"{folder}/in_voltage0_input", "5000\n")
    root.write(f"{folder}/in_current0_input", "500\n")
    return root


@pytest.fixture
def module_jtop(monkeypatch):
    """Return a function that puts another `open_jtop` in the place of the real one."""

    def put(open_jtop):
        module = types.ModuleType("epochwatt.telemetry.jtop_source")
        module.open_jtop = open_jtop
        monkeypatch.setitem(sys.modules, "epochwatt.telemetry.jtop_source", module)

    return put


def test_machine_with_everything_has_all_sources(root, tmp_path, monkeypatch, fake_nvml):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    monkeypatch.setattr("epochwatt.telemetry.nvml.REFRESH_S", 0.0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    zone = "sys/class/powercap/intel-rapl:0"
    root.write(f"{zone}/name", "package-0")
    root.write(f"{zone}/energy_uj", "1")
    root.write(f"{zone}/max_energy_range_uj", "1000")
    assert names(sources(os.getpid(), str(tmp_path), str(root))) == ["host", "nvml", "rapl"]


def test_gpu_that_is_not_the_trainers_is_told_and_left_out(
    root, tmp_path, monkeypatch, fake_nvml, caplog
):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    refused = {}
    found = sources(os.getpid(), str(tmp_path), str(root), gpu="77", refused=refused)
    assert names(found) == ["host"]
    assert "NVML knows GPU-1" in refused["nvml"]
    assert refused["nvml"] in caplog.text


def test_training_on_the_cpu_reads_no_gpu(root, tmp_path, monkeypatch, fake_nvml):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    refused = {}
    assert names(sources(os.getpid(), str(tmp_path), str(root), "none", "none", refused)) == [
        "host"
    ]
    assert refused == {}


def test_plain_machine_has_host_counters(root, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert names(sources(os.getpid(), str(tmp_path), str(root))) == ["host"]


def test_source_that_cannot_be_opened_is_told_and_left_out(root, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pynvml", None)

    def broken(*arguments, **options):
        raise OSError("no /proc")

    monkeypatch.setattr(discover, "HostSource", broken)
    with caplog.at_level(logging.WARNING):
        assert sources(os.getpid(), str(tmp_path), str(root)) == []
    assert "cannot be used: no /proc" in caplog.text


def test_board_tells_of_itself_and_asks_no_gpu_library(nano, tmp_path, monkeypatch, fake_nvml):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    assert names(sources(os.getpid(), str(tmp_path), str(nano))) == ["host", "board"]


def test_board_with_its_sensors_has_a_total(nano, tmp_path):
    found = sources(os.getpid(), str(tmp_path), str(nano), "sysfs")
    power = found[-1]
    assert power.total == "power_module_w"
    assert power.read()[-1] == 2.5
    assert "fallback" not in power.settings()
    assert names(found) == ["host", "board", "sysfs"]


def test_board_without_sensors_is_told(root, tmp_path, caplog):
    root.write("proc/device-tree/model", "NVIDIA Jetson Nano 2GB Developer Kit\0")
    with caplog.at_level(logging.WARNING):
        found = sources(os.getpid(), str(tmp_path), str(root), "sysfs")
    assert names(found) == ["host", "board"]
    assert "no such sensor" in caplog.text


def test_clocks_are_the_boards_and_processes_the_machines(nano, tmp_path):
    nano.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1479000\n")
    host = sources(os.getpid(), str(tmp_path), str(nano))[0]
    found = dict(zip(host.columns, host.read(), strict=True))
    assert found["cpu0_mhz"] == 1479.0
    assert found["ram_used_mib"] > 4.0  # the made-up machine has no more than that
    host.close()


def test_tegrastats_that_is_missing_is_replaced(nano, tmp_path):
    found = sources(os.getpid(), str(tmp_path), str(nano), "tegrastats")
    assert "tegrastats cannot be used" in found[-1].settings()["fallback"]
    assert names(found) == ["host", "board", "sysfs"]


def test_tegrastats_that_prints_is_used(nano, tmp_path):
    tool = nano.write("usr/bin/tegrastats", "#!/bin/sh\necho POM_5V_IN 2700/2911\nexec sleep 60\n")
    tool.chmod(0o755)
    found = sources(os.getpid(), str(tmp_path), str(nano), "tegrastats")
    assert found[-1].read()[-5] == 2.7
    assert names(found) == ["host", "board", "tegrastats"]


def test_jtop_is_asked_for_the_kind_of_board(nano, tmp_path, module_jtop):
    class Jtop(Source):
        name = "jtop"

    asked = []
    module_jtop(lambda *arguments: asked.append(arguments) or Jtop())
    assert names(sources(os.getpid(), str(tmp_path), str(nano), "jtop")) == [
        "host",
        "board",
        "jtop",
    ]
    assert asked == [("nano", 1.0, None)]


def test_jtop_that_cannot_be_reached_is_replaced(nano, tmp_path, module_jtop):
    def nobody(kind, interval_s, not_sysfs):
        raise OSError("the service is not active")

    module_jtop(nobody)
    found = sources(os.getpid(), str(tmp_path), str(nano), "jtop")
    assert found[-1].settings()["fallback"] == "jtop cannot be used: the service is not active"
    assert names(found) == ["host", "board", "sysfs"]


def test_where_nothing_is_asked_for_the_sensors_files_come_first(nano, tmp_path, module_jtop):
    module_jtop(lambda *arguments: pytest.fail("jtop was asked"))
    found = sources(os.getpid(), str(tmp_path), str(nano), "auto")
    assert "fallback" not in found[-1].settings()
    assert names(found) == ["host", "board", "sysfs"]


@pytest.mark.parametrize("spoil", ["gone", "silent", "part"])
def test_where_they_give_no_total_jtop_is_read_and_says_why(
    nano, tmp_path, module_jtop, caplog, spoil
):
    class Jtop(Source):
        name = "jtop"

    asked = []
    module_jtop(lambda *arguments: asked.append(arguments) or Jtop())
    device = nano.path / "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    if spoil == "gone":
        (device / "in_power0_input").unlink()
        (device / "in_current0_input").unlink()
    else:
        (device / "in_power0_input").write_text("no number")
    if spoil == "part":  # another rail answers
        nano.write("sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/rail_name_1", "POM_5V_GPU\n")
        nano.write("sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power1_input", "100\n")
    with caplog.at_level(logging.WARNING):
        found = sources(os.getpid(), str(tmp_path), str(nano), "auto")
    assert names(found) == ["host", "board", "jtop"]
    ((_, _, why),) = asked
    assert why.startswith("sysfs cannot be read: ")
    assert why in caplog.text


def test_where_neither_can_be_read_both_reasons_are_given(root, tmp_path, module_jtop, caplog):
    root.write("proc/device-tree/model", "NVIDIA Jetson Nano Developer Kit\0")

    def nobody(kind, interval_s, not_sysfs):
        raise OSError("the service is not active")

    module_jtop(nobody)
    with caplog.at_level(logging.WARNING):
        found = sources(os.getpid(), str(tmp_path), str(root), "auto")
    assert names(found) == ["host", "board"]
    assert "no such sensor" in caplog.text
    assert "the service is not active" in caplog.text
