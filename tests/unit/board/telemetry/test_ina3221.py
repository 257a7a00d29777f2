"""The power sensors in both driver layouts: rails, channels that fail, averaging and steps."""

import errno
import math
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.ina3221 import LAYOUTS, Ina3221Source, sensor, timing
from epochwatt.board.telemetry.rails import ModulePower

HWMON = "sys/bus/i2c/drivers/ina3221/{}/hwmon/hwmon{}/"
CONVERSION_MS = [0.14, 0.204, 0.332, 0.588, 1.1, 2.116, 4.156, 8.244]
AVERAGES = [1, 4, 16, 64, 128, 256, 512, 1024]
NX = ["VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"]
INA238 = "sys/bus/i2c/drivers/ina238/2-0044/hwmon/hwmon{}/"


def write_hwmon(root, address, rails, number=1, samples=1, interval_ms=7):
    """Write a chip as the kernel's driver shows it; rails are (label, micro-ohm, mV, mA)."""
    folder = HWMON.format(address, number)
    for name, value in {"samples": samples, "update_interval": interval_ms, "in7_input": 1}.items():
        root.write(folder + name, f"{value}\n")
    root.write(folder + "in7_label", "sum of shunt voltages\n")
    for n, (label, micro_ohm, millivolts, milliamperes) in enumerate(rails, 1):
        root.write(f"{folder}in{n}_label", f"{label}\n")
        root.write(f"{folder}shunt{n}_resistor", f"{micro_ohm}\n")
        for name, value in ((f"in{n}_input", millivolts), (f"curr{n}_input", milliamperes)):
            if millivolts is None:
                (root.path / folder / name).mkdir(parents=True)
            else:
                root.write(folder + name, f"{value}\n")


def write_orin(root, number=3):
    """Write both chips of an AGX Orin."""
    rails = [("VDD_GPU_SOC", 2000, 20000, 150), ("VDD_CPU_CV", 2000, 19900, 700)]
    rails.append(("VIN_SYS_5V0", 2000, 5000, 1000))
    write_hwmon(root, "1-0040", rails, number, 16, 53)
    nothing, memory = ("NC", 2000, None, None), ("VDDQ_VDD2_1V8AO", 2000, 5000, 200)
    write_hwmon(root, "1-0041", [nothing, memory, nothing], number + 1, 16, 53)


@pytest.fixture
def open_orin(root):
    """Return a function that opens the source of an AGX Orin."""
    opened = []

    def make(number=3):
        write_orin(root, number)
        opened.append(Ina3221Source(str(root), "agx_orin"))
        return opened[-1]

    yield make
    for source in opened:
        source.close()


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


@pytest.mark.parametrize("number", [0, 3])
def test_agx_orin_does_not_count_a_rail_twice(open_orin, number):
    source = open_orin(number)
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


@pytest.mark.parametrize("files", [{}, {"label": "VIN"}])  # Linux 6.8 shows no label
def test_agx_thor_has_its_input_from_an_ina238_and_adds_nothing_to_it(root, files):
    """SOURCE: the INA3221 of swsususu/ThorFAN docs (MIT); VIN as the forum's topic 366461."""
    rails = [("VDD_GPU", 1000, 12040, 640), ("VDD_CPU_SOC_MSS", 1000, 12040, 960)]
    rails.append(("VIN_SYS_5V0", 2000, 5088, 1740))
    write_hwmon(root, "2-0040", rails, 5, 16, 53)
    for name, value in {"power1_input": 34608000, "in1_input": 12018, **files}.items():
        root.write(INA238.format(6) + name, f"{value}\n")
    source = Ina3221Source(str(root), "agx_thor")
    found = row(source)
    assert found == {
        "rail_vdd_gpu_w": pytest.approx(7.7056),
        "rail_vdd_cpu_soc_mss_w": pytest.approx(11.5584),
        "rail_vin_sys_5v0_w": pytest.approx(8.85312),
        "rail_vin_w": 34.608,
        "power_board_w": 34.608,
    }
    about = source.settings()
    assert (source.scope, source.total) == ("board", "power_board_w")
    assert about["power"] == "in{}_input x curr{}_input; power{}_input"
    assert about["sensor"]["update_s"] == pytest.approx(0.0505, abs=1e-4)
    assert about["sensor"]["step_w"] == {"rail_vin_w": None}  # its shunt is not shown
    assert not about["sensor"]["is_centred"]
    root.write(INA238.format(6) + "power1_input", "")
    assert math.isnan(row(source)["power_board_w"])
    source.close()


@pytest.mark.parametrize("number", [errno.ENODATA, errno.EAGAIN, errno.EREMOTEIO])
def test_whatever_error_a_driver_gives_is_a_gap_of_that_rail(open_orin, number, monkeypatch):
    source = open_orin()
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


def test_channel_that_fails_for_a_while_comes_back(open_orin, root):
    source = open_orin()
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


# -- averaging, cycle and steps --------------------------------------------------------------------


def of_board(root, kind, labels):
    return sensor(str(root), ModulePower(kind, labels).parts(), 0.1)


@pytest.mark.parametrize("interval_ms", [1, 430])
def test_nvidias_average_of_512_with_newer_and_older_drivers(root, interval_ms):
    """The filter's time constant is 512 cycles of 0.84 ms; half the averaging is the mean age."""
    rails = [(label, 2000, 5000, 100) for label in NX]
    write_hwmon(root, "1-0040", rails, samples=512, interval_ms=interval_ms)
    found = of_board(root, "orin_nx", NX)
    assert found["update_s"] == pytest.approx(0.00084, rel=0.01)
    assert found["averaging_s"] / 2 == pytest.approx(0.430, rel=0.01)
    assert found["reads"] == "mean"


def test_each_rail_of_two_chips_has_its_own_step_and_the_slowest_chip_counts(root):
    rails = [("VDD_GPU_SOC", 2000, 19800, 100), ("VDD_CPU_CV", 2000, 19800, 100)]
    rails.append(("VIN_SYS_5V0", 5000, 5040, 100))
    write_hwmon(root, "1-0040", rails, samples=16, interval_ms=3)
    memory = [("NC", 0, 0, 100), ("VDDQ_VDD2_1V8AO", 2000, 5040, 100), ("NC", 0, 0, 100)]
    write_hwmon(root, "1-0041", memory, samples=1024, interval_ms=16)
    labels = [label for label, *_ in rails]
    found = of_board(root, "agx_orin", [*labels, "VDDQ_VDD2_1V8AO"])
    steps_w = (0.396, 0.396, 0.04032)
    assert found["step_w"] == {
        f"rail_{label.lower()}_w": pytest.approx(step_w)
        for label, step_w in zip(labels, steps_w, strict=True)
    }
    # the second chip has no rail of the total
    assert found["update_s"] == pytest.approx(3 * 0.00118, rel=0.2)


@pytest.mark.parametrize(
    ("mode", "config", "averaging_s", "update_s"),
    [
        ("1\n", 0x7727, 127 * 0.0066, 0.0066),
        (None, 0x7C07, 1023 * 0.00084, 0.00084),  # only root may read the mode
        ("0\n", 0x7123, 0.0066, None),  # a conversion for each reading
        ("0\n", 0x7723, None, None),
    ],
)
def test_jetpack_4_tells_its_settings_in_the_device_tree(root, mode, config, averaging_s, update_s):
    chip = "sys/bus/i2c/drivers/ina3221x/6-0040/"
    root.write(f"{chip}iio:device0/rail_name_0", "POM_5V_IN\n")
    root.write(f"{chip}iio:device0/in_power0_input", "1000\n")
    root.write(f"{chip}iio:device0/in_voltage0_input", "5000\n")
    node = root.write(f"{chip}of_node/channel@0/ti,rail-name", "POM_5V_IN\0").parent
    (node / "ti,shunt-resistor-mohm").write_bytes(struct.pack(">I", 5))
    if mode is not None:
        root.write(f"{chip}iio:device0/running_mode", mode)
    root.write(f"{chip}of_node/ti,enable-forced-continuous", "")
    for kind in ("continuous", "trigger"):
        path = root.path / f"{chip}of_node/ti,{kind}-config"
        path.write_bytes(struct.pack(">I", config))
    found = of_board(root, "nano", ["POM_5V_IN"])
    assert found["averaging_s"] == pytest.approx(averaging_s)
    assert found["update_s"] == pytest.approx(update_s)
    assert found["step_w"] == {"rail_pom_5v_in_w": pytest.approx(0.040)}


@given(st.sampled_from(AVERAGES), st.sampled_from(CONVERSION_MS), st.integers(1, 3), st.booleans())
def test_cycle_is_known_to_a_millisecond_whatever_the_setting(
    tmp_path_factory, samples, conversion_ms, n_channels, is_old
):
    """Linux before 5.14 shows all cycles of an average, later ones show one."""
    cycle_ms = n_channels * 2 * conversion_ms
    shown_ms = cycle_ms * samples if is_old else cycle_ms
    folder = tmp_path_factory.mktemp("chip")
    (folder / "proc/sys/kernel").mkdir(parents=True)
    release = "5.10.104-tegra" if is_old else "5.15.148-tegra"
    (folder / "proc/sys/kernel/osrelease").write_text(release + "\n")
    (folder / "samples").write_text(f"{samples}\n")
    (folder / "update_interval").write_text(f"{round(shown_ms)}\n")
    found = timing(LAYOUTS[-1], str(folder), n_channels, str(folder))
    assert found.update_s == pytest.approx(cycle_ms / 1e3, abs=0.001)  # as it is shown
    assert found.averaging_s == pytest.approx((2 * samples - 1) * found.update_s)
