"""The power sensors' files in both driver layouts, with channels that fail."""

import errno
import math
import os

import pytest

from epochwatt.board.telemetry.ina3221 import Ina3221Source

IIO = "sys/bus/i2c/drivers/ina3221x/{}/iio:device{}/"
HWMON = "sys/bus/i2c/drivers/ina3221/{}/hwmon/hwmon{}/"


class Sensors:
    """Writes a board's sensors as the drivers of JetPack 4 and 5 show them."""

    def __init__(self, root):
        self.root = root

    def iio(self, address, rails, device=0):
        """Write a chip; rails are (label, mV, mA, mW)."""
        folder = IIO.format(address, device)
        for n, (label, millivolts, milliamperes, milliwatts) in enumerate(rails):
            self.root.write(f"{folder}rail_name_{n}", f"{label}\n")
            self.root.write(f"{folder}in_voltage{n}_input", f"{millivolts}\n")
            self.root.write(f"{folder}in_current{n}_input", f"{milliamperes}\n")
            if milliwatts is not None:
                self.root.write(f"{folder}in_power{n}_input", f"{milliwatts}\n")

    def hwmon(self, address, rails, number=3):
        """Write a chip; rails are (label, mV, mA); mV of None: reading it is an error."""
        folder = HWMON.format(address, number)
        self.root.write(f"{folder}samples", "16\n")
        self.root.write(f"{folder}update_interval", "53\n")
        self.root.write(f"{folder}in7_label", "sum of shunt voltages\n")
        self.root.write(f"{folder}in7_input", "1\n")
        for n, (label, millivolts, milliamperes) in enumerate(rails, 1):
            self.root.write(f"{folder}in{n}_label", f"{label}\n")
            self.root.write(f"{folder}shunt{n}_resistor", "2000\n")
            if millivolts is None:
                self.fail(f"{folder}in{n}_input")
                self.fail(f"{folder}curr{n}_input")
            else:
                self.root.write(f"{folder}in{n}_input", f"{millivolts}\n")
                self.root.write(f"{folder}curr{n}_input", f"{milliamperes}\n")

    def fail(self, name):
        """Put something there that can be opened and not be read."""
        path = self.root.path / name
        if path.is_file():
            path.unlink()
        path.mkdir(parents=True)

    def orin(self, number=3):
        self.hwmon(
            "1-0040",
            [("VDD_GPU_SOC", 20000, 150), ("VDD_CPU_CV", 19900, 700), ("VIN_SYS_5V0", 5000, 1000)],
            number,
        )
        rails = [("NC", None, None), ("VDDQ_VDD2_1V8AO", 5000, 200), ("NC", None, None)]
        self.hwmon("1-0041", rails, number + 1)


@pytest.fixture
def sensors(root):
    return Sensors(root)


@pytest.fixture
def open_source(root):
    """Return a function that opens the source of a kind of board."""
    opened = []

    def make(kind, **options):
        opened.append(Ina3221Source(str(root), kind, **options))
        return opened[-1]

    yield make
    for source in opened:
        source.close()


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


@pytest.mark.parametrize("number", [0, 3])
def test_agx_orin_does_not_count_a_rail_twice(sensors, open_source, number):
    sensors.orin(number)
    source = open_source("agx_orin")
    found = row(source)
    assert found["rail_vddq_vdd2_1v8ao_w"] == pytest.approx(1.0)
    assert found["power_module_w"] == pytest.approx(3.0 + 13.93 + 5.0)
    assert not any("nc" in name for name in found)
    about = source.settings()
    assert about["power"] == "in{}_input x curr{}_input"
    assert about["chips"][0] == {"address": "1-0040", "samples": "16", "update_interval_ms": "53"}
    assert about["shunt"]["VIN_SYS_5V0"] == "2000"
    assert about["sensor"]["update_s"] == pytest.approx(0.053 / 16)  # a driver that counts them in
    assert about["sensor"]["step_w"]["rail_vin_sys_5v0_w"] == pytest.approx(0.1)
    assert (source.scope, source.total) == ("module", "power_module_w")


@pytest.mark.parametrize("number", [errno.ENODATA, errno.EBUSY, errno.EAGAIN, errno.EREMOTEIO])
def test_whatever_error_a_driver_gives_is_a_gap_of_that_rail(
    sensors, open_source, number, monkeypatch
):
    sensors.orin()
    source = open_source("agx_orin")
    pread, broken = os.pread, source._channels[1].fds[1]

    def refusing(fd, size, offset):
        if fd == broken:
            raise OSError(number, os.strerror(number))
        return pread(fd, size, offset)

    monkeypatch.setattr(os, "pread", refusing)
    found = row(source)
    assert math.isnan(found["rail_vdd_cpu_cv_w"])
    assert found["rail_vdd_gpu_soc_w"] == pytest.approx(3.0)
    assert os.strerror(number) in source.settings()["errors"]["VDD_CPU_CV"]


def test_channel_that_fails_for_a_while_comes_back(sensors, open_source, root):
    sensors.orin()
    source = open_source("agx_orin")
    path = HWMON.format("1-0040", 3) + "curr3_input"
    root.write(path, "")
    found = row(source)
    assert math.isnan(found["rail_vin_sys_5v0_w"])
    assert math.isnan(found["power_module_w"])
    assert found["rail_vdd_gpu_soc_w"] == pytest.approx(3.0)
    root.write(path, "2000\n")
    assert row(source)["rail_vin_sys_5v0_w"] == pytest.approx(10.0)
    source.start()
    assert source.settings()["errors"] == {}
