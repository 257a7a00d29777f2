"""Which sources a machine has."""

import logging
import os
import sys
import types

import pytest

from epochwatt.board.telemetry.discover import sources
from epochwatt.board.telemetry.source import Source


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
        module = types.ModuleType("epochwatt.board.telemetry.jtop_source")
        module.open_jtop = open_jtop
        monkeypatch.setitem(sys.modules, "epochwatt.board.telemetry.jtop_source", module)

    return put


def test_gpu_that_is_not_the_trainers_is_told_and_left_out(
    root, tmp_path, monkeypatch, fake_nvml, caplog
):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    refused = {}
    found = sources(os.getpid(), str(tmp_path), str(root), gpu="77", refused=refused)
    assert names(found) == ["host"]
    assert "NVML knows GPU-1" in refused["nvml"]
    assert refused["nvml"] in caplog.text


def test_board_with_its_sensors_has_a_total(nano, tmp_path):
    found = sources(os.getpid(), str(tmp_path), str(nano), "sysfs")
    power = found[-1]
    assert power.total == "power_module_w"
    assert power.read()[-1] == 2.5
    assert "fallback" not in power.settings()
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
