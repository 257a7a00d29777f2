"""What an INA3221's driver shows of its averaging, its cycle and its steps."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.ina3221 import LAYOUTS, sensor, timing
from epochwatt.board.telemetry.rails import ModulePower

HWMON = "sys/bus/i2c/drivers/ina3221/{}/hwmon/hwmon1/"
IIO = "sys/bus/i2c/drivers/ina3221x/{}/"
CONVERSION_MS = [0.14, 0.204, 0.332, 0.588, 1.1, 2.116, 4.156, 8.244]
AVERAGES = [1, 4, 16, 64, 128, 256, 512, 1024]


def hwmon(root, address, rails, samples=1, interval_ms=7):
    """Write a chip as the kernel's driver shows it; rails are (label, micro-ohm, mV)."""
    folder = HWMON.format(address)
    root.write(folder + "samples", f"{samples}\n")
    root.write(folder + "update_interval", f"{interval_ms}\n")
    for n, (label, micro_ohm, millivolt) in enumerate(rails, 1):
        root.write(f"{folder}in{n}_label", f"{label}\n")
        root.write(f"{folder}in{n}_input", f"{millivolt}\n")
        root.write(f"{folder}curr{n}_input", "100\n")
        root.write(f"{folder}shunt{n}_resistor", f"{micro_ohm}\n")
    return str(root.path / folder)


def iio(root, rails, config=0x7727, mode="1\n", tree=("ti,enable-forced-continuous",)):
    """Write a chip as NVIDIA's driver shows it; its settings stand in the device tree."""
    chip = IIO.format("6-0040")
    for n, (label, milliohm, millivolt) in enumerate(rails):
        root.write(f"{chip}iio:device0/rail_name_{n}", f"{label}\n")
        root.write(f"{chip}iio:device0/in_power{n}_input", "1000\n")
        root.write(f"{chip}iio:device0/in_voltage{n}_input", f"{millivolt}\n")
        node = root.write(f"{chip}of_node/channel@{n}/ti,rail-name", f"{label}\0").parent
        (node / "ti,shunt-resistor-mohm").write_bytes(struct.pack(">I", milliohm))
    if mode is not None:
        root.write(f"{chip}iio:device0/running_mode", mode)
    for name in tree:
        root.write(f"{chip}of_node/{name}", "")
    for kind in ("continuous", "trigger"):
        path = root.path / f"{chip}of_node/ti,{kind}-config"
        path.write_bytes(struct.pack(">I", config))


def of_board(root, kind, labels, period_s=0.1):
    return sensor(str(root), ModulePower(kind, labels).parts(), period_s)


NX = ["VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"]


@pytest.mark.parametrize("interval_ms", [1, 430])
def test_nvidias_average_of_512_with_newer_and_older_drivers(root, interval_ms):
    """The filter's time constant is 512 cycles of 0.84 ms; half the averaging is the mean age."""
    hwmon(root, "1-0040", [(label, 2000, 5000) for label in NX], 512, interval_ms)
    found = of_board(root, "orin_nx", NX)
    assert found["update_s"] == pytest.approx(0.00084, rel=0.01)
    assert found["averaging_s"] / 2 == pytest.approx(0.430, rel=0.01)
    assert found["reads"] == "mean"


def test_each_rail_of_two_chips_has_its_own_step_and_the_slowest_chip_counts(root):
    rails = [("VDD_GPU_SOC", 2000, 19800), ("VDD_CPU_CV", 2000, 19800), ("VIN_SYS_5V0", 5000, 5040)]
    hwmon(root, "1-0040", rails, 16, 3)
    hwmon(root, "1-0041", [("NC", 0, 0), ("VDDQ_VDD2_1V8AO", 2000, 5040), ("NC", 0, 0)], 1024, 16)
    labels = [label for label, _, _ in rails] + ["VDDQ_VDD2_1V8AO"]
    found = of_board(root, "agx_orin", labels)
    assert found["step_w"] == {
        "rail_vdd_gpu_soc_w": pytest.approx(0.396),
        "rail_vdd_cpu_cv_w": pytest.approx(0.396),
        "rail_vin_sys_5v0_w": pytest.approx(0.04032),
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
    iio(root, [("POM_5V_IN", 5, 5000)], config, mode)
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
