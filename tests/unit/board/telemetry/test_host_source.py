"""What the kernel counts, from a made-up /proc and /sys and from the real one."""

import math
import os

import pytest

from epochwatt.board.telemetry.host import HostSource

TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def source(root, clock, tmp_path, data_device):
    """The source of a machine whose disk holds the data set; the first row is taken."""
    root.disk(data_device, 100, 1000, 2000)
    source = HostSource(str(root), 100, str(tmp_path), clock)
    source.read()
    yield source
    source.close()


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


def test_rates_are_means_since_the_row_before(source, root, clock, data_device):
    clock.t_s = 1010.0
    source.start()
    source.read()
    root.cpu(busy=300, idle=550)
    root.disk(data_device, 150, 1000 + 4096, 2000 + 8192)
    root.process(100, ticks=(2 * TICKS, TICKS, TICKS, 0), io=(3 << 20, 5 << 20), children=[])
    clock.t_s = 1012.0
    found = row(source)
    seconds = 2.0
    assert found["cpu_util_pct"] == pytest.approx(100 * 300 / 850)
    assert found["read_iops"] == pytest.approx(50 / seconds, rel=1e-5)
    assert found["read_mib_s"] == pytest.approx(2 / seconds, rel=1e-5)
    assert found["write_mib_s"] == pytest.approx(4 / seconds, rel=1e-5)
    assert found["tree_cpu_pct"] == pytest.approx(100 * 4 / seconds / os.cpu_count(), rel=1e-5)
    assert found["tree_read_mib_s"] == pytest.approx(3 / seconds, rel=1e-5)
    assert found["tree_write_mib_s"] == pytest.approx(5 / seconds, rel=1e-5)


def test_clocks_and_temperature_are_columns_where_they_can_be_read(root, clock, tmp_path):
    for n, khz in ((0, 1190400), (3, 729600)):
        root.write(f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_cur_freq", f"{khz}\n")
    root.write("sys/class/thermal/thermal_zone0/type", "GPU-therm\n")
    root.write("sys/class/thermal/thermal_zone0/temp", "99000\n")
    root.write("sys/class/thermal/thermal_zone1/type", "CPU-therm\n")
    root.write("sys/class/thermal/thermal_zone1/temp", "41500\n")
    source = HostSource(str(root), 100, str(tmp_path), clock)
    found = row(source)
    assert list(found)[-3:] == ["cpu0_mhz", "cpu3_mhz", "cpu_temp_c"]
    assert found["cpu0_mhz"] == pytest.approx(1190.4)
    assert found["cpu_temp_c"] == 41.5
    assert source.settings()["cpu_thermal_zone"] == "CPU-therm"
    # BOARD: a core that is switched off still has its file, which then cannot be read
    root.write("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "<unknown>\n")
    assert math.isnan(row(source)["cpu3_mhz"])
    source.close()


def test_cores_of_a_cluster_have_one_clock_named_by_the_first_that_is_on(root, clock, tmp_path):
    cpu = "sys/devices/system/cpu/"
    for first, khz in ((0, 1190400), (2, 729600)):
        root.write(f"{cpu}cpufreq/policy{first}/scaling_cur_freq", f"{khz}\n")
        for n in (first, first + 1):
            folder = root.path / cpu / f"cpu{n}"
            folder.mkdir()
            (folder / "cpufreq").symlink_to(f"../cpufreq/policy{first}")
    root.write(f"{cpu}cpu2/online", "0\n")
    source = HostSource(str(root), 100, str(tmp_path), clock)
    clocks = {name: value for name, value in row(source).items() if name.endswith("_mhz")}
    assert clocks == {"cpu0_mhz": 1190.4, "cpu3_mhz": 729.6}
    source.close()
