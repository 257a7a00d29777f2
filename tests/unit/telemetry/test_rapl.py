"""The processor's energy counters: every package once, across a wrap."""

import math

import pytest

from epochwatt.telemetry.rapl import RaplSource


@pytest.fixture
def zone(root):
    """Return a function that sets a zone's counter."""

    def write(name, kind, energy_uj, range_uj=1000000):
        root.write(f"sys/class/powercap/{name}/name", f"{kind}\n")
        root.write(f"sys/class/powercap/{name}/energy_uj", f"{energy_uj}\n")
        root.write(f"sys/class/powercap/{name}/max_energy_range_uj", f"{range_uj}\n")

    return write


@pytest.fixture
def source(root, zone, clock):
    """Two packages with their sub-zones, and the platform zone that counts them again."""
    zone("intel-rapl:0", "package-0", 1000)
    zone("intel-rapl:0:0", "core", 500)
    zone("intel-rapl:1", "package-1", 2000)
    zone("intel-rapl:2", "psys", 9000)
    zone("intel-rapl-mmio:0", "package-0", 1000)
    source = RaplSource(str(root), clock, clock.sleep)
    source.start()
    yield source
    source.close()


def test_power_is_energy_of_all_packages_over_time(source, zone, clock):
    zone("intel-rapl:0", "package-0", 301000)
    zone("intel-rapl:1", "package-1", 202000)
    zone("intel-rapl:2", "psys", 999999)
    clock.t_s = source._marks[1][0] + 0.1 - 1e-6
    power_w, energy_j = source.read()
    assert energy_j == pytest.approx(0.5)
    assert power_w == pytest.approx(5.0)


def test_counter_that_wraps_goes_on(source, zone, clock):
    zone("intel-rapl:0", "package-0", 900000)
    assert source.read()[1] == pytest.approx(0.899)
    zone("intel-rapl:0", "package-0", 100000)
    assert source.read()[1] == pytest.approx(0.899 + 0.2)


def test_first_row_has_a_power(source, clock):
    power_w, energy_j = source.read()
    assert (power_w, energy_j) == (0.0, 0.0)


def test_rows_close_together_share_the_mean_of_a_longer_time(source, zone, clock):
    clock.sleep(0.1)
    source.read()
    zone("intel-rapl:0", "package-0", 1000 + 110000)
    clock.sleep(0.001)
    power_w, _ = source.read()
    assert power_w == pytest.approx(0.11 / 0.111, rel=0.1)  # not 110 W


def test_new_window_counts_from_zero(source, zone, clock):
    zone("intel-rapl:0", "package-0", 500000)
    source.read()
    source.start()
    zone("intel-rapl:0", "package-0", 600000)
    assert source.read()[1] == pytest.approx(0.1)


def test_source_is_usable_only_where_every_package_can_be_read(root, zone, clock):
    assert not RaplSource(str(root)).usable()
    zone("intel-rapl:0", "package-0", 0)
    assert RaplSource(str(root)).usable()
    zone("intel-rapl:1", "package-1", 0)
    (root.path / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert not RaplSource(str(root)).usable()


def test_power_before_the_start_is_unknown(root, zone, clock):
    zone("intel-rapl:0", "package-0", 0)
    clock.t_s = -1e-6  # the marks are at 0
    assert math.isnan(RaplSource(str(root), clock).read()[0])


def test_settings_tell_where_the_counters_wrap(source):
    assert source.settings()["max_energy_range_j"] == [1.0, 1.0]
