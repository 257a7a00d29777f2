"""The self-test of the sensors, on what a sampler told."""

import pytest
from fake_device import DEVICE

from epochwatt.doctor import sensors
from epochwatt.doctor.subject import Recording, choose
from epochwatt.fakeboard.board import make_board
from epochwatt.records.samples import SampleWriter

NOTHING = {"settings": {}, "scope": None, "total": None, "nan_cells": {}, "error": None}
COUNTS = {"n_samples": 12, "n_gaps": 0, "n_late": 0, "n_failed": 0}
TIMES = {"period_s": 1.0, "step_mean_s": 1.0, "deviation_p99_s": 0.001, "read_mean_s": 0.0002}


def source(*columns, **changes):
    return {**NOTHING, **COUNTS, **TIMES, "columns": list(columns), **changes}


@pytest.fixture
def recorded(tmp_path):
    """Return a function that makes a recording of sources by name."""

    def make(jtop_cpu_s=0.0, cpu_s=0.01, **sources):
        statistics = {"wall_s": 10.0, "cpu_s": cpu_s, "sources": sources}
        return Recording(tmp_path, statistics, jtop_cpu_s)

    return make


@pytest.fixture
def board(checkout, tmp_path):
    """A fake AGX Xavier and the device that speaks of it."""
    fake = make_board(tmp_path / "board", "agx_xavier")
    checkout.write(
        "devices/fake.yaml",
        DEVICE.format(board="agx_xavier", root=fake.root, modes="asis: {}"),
    )
    return fake, choose(checkout.path, "fake")


def found(findings, level, topic):
    return [f for f in findings if (f.level, f.topic) == (level, topic)]


# -- cost and jitter -------------------------------------------------------------------------------


def test_cost_and_jitter_are_told(recorded):
    cost, jitter, about = sensors.sampler(recorded(host=source("a", "b")))
    assert cost.found == "0.06 s of CPU a minute; 10 s recorded"
    assert jitter.level == "ok"
    assert "a row each 1000 ms (12 of them), 99 % within 1.00 ms" in jitter.found
    assert "a reading takes 0.20 ms, 0 gaps" in jitter.found
    assert about.found == "host: a, b"


@pytest.mark.parametrize("n_samples", [12, 0])
def test_a_service_has_instants_of_its_own(recorded, n_samples):
    jtop = source("a", deviation_p99_s=None, read_mean_s=None, n_samples=n_samples)
    jitter = list(sensors.sampler(recorded(jtop=jtop)))[1]
    told = f"jtop: a row each 1000 ms ({n_samples} of them), at instants of its own, 0 gaps"
    assert jitter.found == told


def test_a_service_and_a_child_are_counted_in(recorded):
    child = source("a", settings={"child_cpu_s": 0.02})
    cost, *_ = sensors.sampler(recorded(jtop_cpu_s=0.5, tegrastats=child))
    assert cost.found.startswith("0.06 s of CPU a minute, tegrastats 0.12 s, jtop's service 3.00 s")
    assert cost.level == "warning"
    assert "sysfs" in cost.do


def test_a_late_sampler_is_warned_of(recorded):
    told = sensors.sampler(recorded(host=source("a", deviation_p99_s=0.02)))
    assert "99 % within 20.00 ms" in found(told, "warning", "sampler")[0].found


def test_gaps_are_warned_of_with_their_reason(recorded):
    lost = source("a", n_gaps=3, n_failed=2, n_late=1, error="OSError: gone")
    (gap,) = found(sensors.sampler(recorded(host=lost)), "warning", "sampler")
    assert gap.do.startswith("2 readings failed (OSError: gone), 1 came too late")


def test_columns_without_a_reading_are_told_together(recorded):
    dead = {"emc_mhz": 12, "emc_util_pct": 12, "x": 11}
    told = list(sensors.sampler(recorded(board=source("x", *list(dead)[:2], nan_cells=dead))))
    assert found(told, "info", "sensors")[0].found == "board: no emc_mhz, emc_util_pct"
    assert "only root may read it" in found(told, "info", "sensors")[0].do
    assert found(told, "ok", "sensors")[0].found == "board: x"


# -- power -----------------------------------------------------------------------------------------


def write(folder, name, column, values):
    writer = SampleWriter(str(folder), name, [column])
    for n, value in enumerate(values):
        writer.add(float(n), 1e9 + n, [value])
    writer.close()


def power_source(**settings):
    return source("power_module_w", scope="module", total="power_module_w", settings=settings)


def test_the_total_is_told_with_its_rule_and_what_it_does_not_see(board, recorded, tmp_path):
    write(tmp_path, "sysfs", "power_module_w", [4.0, float("nan"), 6.0])
    record = recorded(sysfs=power_source(total_rule="a + b", not_seen="the fan"))
    total, unseen = sensors.power(board[1], record)
    assert (total.level, total.found) == ("ok", "module: 5.00 W on average, from sysfs: a + b")
    assert unseen.found == "not seen: the fan"


def test_a_total_without_a_reading_is_warned_of(board, recorded, tmp_path):
    write(tmp_path, "sysfs", "power_module_w", [float("nan")])
    (total,) = sensors.power(board[1], recorded(sysfs=power_source(total_rule="a")))
    assert total.level == "warning"


def test_rails_without_a_total_are_warned_of(board, recorded):
    rails = source("rail_x_w", scope="module", settings={"no_total": "rails are not known"})
    (told,) = sensors.power(board[1], recorded(sysfs=rails))
    assert told.level == "warning"
    assert "no total: rails are not known" in told.found


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"contradictions": 3, "contradiction": "A is below B"}, "A is below B"),
        ({"errors": {"CV": "Input/output error"}}, "rail CV cannot be read"),
        ({"cannot_be_opened": {"CV": "Permission denied"}}, "rail CV cannot be read"),
        ({"interval_s": 1.0, "service_interval_s": 0.5}, "every 0.5 s, not every 1 s"),
    ],
)
def test_what_speaks_against_the_power_is_warned_of(board, recorded, tmp_path, settings, words):
    write(tmp_path, "sysfs", "power_module_w", [4.0])
    told = sensors.power(board[1], recorded(sysfs=power_source(**settings)))
    assert words in found(told, "warning", "power")[0].found


@pytest.mark.parametrize(
    ("why", "do"),
    [
        ("no jetson-stats for /usr/bin/python3: No module", "pip3 install jetson-stats"),
        ("jtop: JtopException: The jtop.service is not active", "enable --now jtop.service"),
        ("jtop: JtopException: Mismatch version jtop service", "restart jtop.service"),
        ("jtop: JtopException: I can't access jtop.service", "usermod -aG jtop"),
        ("jtop: PermissionError: denied", "usermod -aG jtop"),
        ("no answer from the jtop service within 20 s", "restart jtop.service"),
        ("something else", "mend that"),
    ],
)
def test_a_power_source_that_cannot_be_used_is_told_with_what_to_do(
    board, recorded, tmp_path, why, do
):
    write(tmp_path, "sysfs", "power_module_w", [4.0])
    told = sensors.power(board[1], recorded(sysfs=power_source(fallback=why)))
    (warning,) = found(told, "warning", "power")
    assert warning.found == why
    assert do in warning.do
    assert "power_source: sysfs" in warning.do


def test_a_host_without_a_sensor_is_warned_of(checkout, recorded):
    (told,) = sensors.power(choose(checkout.path, "host"), recorded(host=source("a")))
    assert told.level == "warning"
    assert "energy stays empty" in told.found


def test_other_power_sources_of_a_board_are_tried(board, recorded):
    fake, subject = board
    told = list(sensors.other_sources(subject, recorded(sysfs=power_source())))
    assert [f.found.partition(":")[0] for f in told] == ["tegrastats would work too"]
    (fake.root / "usr/bin/tegrastats").unlink()
    (told,) = sensors.other_sources(subject, recorded(sysfs=power_source()))
    assert told.found.startswith("tegrastats would not work")


def test_a_host_has_no_other_power_sources(checkout, recorded):
    assert list(sensors.other_sources(choose(checkout.path, "host"), recorded())) == []


def test_temperatures_are_told_without_units_that_are_off(board, checkout):
    fake, subject = board
    zone = fake.root / "sys/class/thermal/thermal_zone0/temp"
    zone.write_text("-256000\n")
    (told,) = sensors.temperatures(subject)
    assert "CPU-therm" in told.found
    assert "AO-therm" not in told.found
