"""The self-test of the sensors, on what a sampler finding."""

import pytest
from fake_board import make_board
from fake_device import DEVICE

from epochwatt.doctor import sensors
from epochwatt.doctor.subject import Recording, choose
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


def matching(findings, level, topic):
    return [f for f in findings if (f.level, f.topic) == (level, topic)]


# -- cost and jitter -------------------------------------------------------------------------------


def test_cost_and_jitter_are_reported(recorded):
    cost, jitter, row = sensors.sampler(recorded(host=source("a", "b")))
    assert cost.message == "0.06 s of CPU a minute; 10 s recorded"
    assert jitter.level == "ok"
    assert "a row every 1000 ms (12 of them), 99 % within 1.00 ms" in jitter.message
    assert "a reading takes 0.20 ms, 0 gaps" in jitter.message
    assert row.message == "host: a, b"


@pytest.mark.parametrize("n_samples", [12, 0])
def test_a_service_samples_at_its_own_times(recorded, n_samples):
    jtop = source("a", deviation_p99_s=None, read_mean_s=None, n_samples=n_samples)
    jitter = list(sensors.sampler(recorded(jtop=jtop)))[1]
    expected = f"jtop: a row every 1000 ms ({n_samples} of them), at its own times, 0 gaps"
    assert jitter.message == expected


def test_a_service_and_a_child_are_counted_in(recorded):
    child = source("a", settings={"child_cpu_s": 0.02})
    cost, *_ = sensors.sampler(recorded(jtop_cpu_s=0.5, tegrastats=child))
    assert cost.message.startswith(
        "0.06 s of CPU a minute, tegrastats 0.12 s, jtop's service 3.00 s"
    )
    assert cost.level == "warning"
    assert "sysfs" in cost.do


def test_a_late_sampler_gives_a_warning(recorded):
    findings = sensors.sampler(recorded(host=source("a", deviation_p99_s=0.02)))
    assert "99 % within 20.00 ms" in matching(findings, "warning", "sampler")[0].message


def test_gaps_give_a_warning_with_their_reason(recorded):
    lost = source("a", n_gaps=3, n_failed=2, n_late=1, error="OSError: gone")
    (gap,) = matching(sensors.sampler(recorded(host=lost)), "warning", "sampler")
    assert gap.do.startswith("2 readings failed (OSError: gone), 1 came too late")


def test_columns_without_a_reading_are_reported_together(recorded):
    dead = {"emc_mhz": 12, "emc_util_pct": 12, "x": 11}
    findings = list(sensors.sampler(recorded(board=source("x", *list(dead)[:2], nan_cells=dead))))
    assert matching(findings, "info", "sensors")[0].message == "board: no emc_mhz, emc_util_pct"
    assert "only root may read it" in matching(findings, "info", "sensors")[0].do
    assert matching(findings, "ok", "sensors")[0].message == "board: x"


# -- power -----------------------------------------------------------------------------------------


def write(folder, name, column, values):
    writer = SampleWriter(str(folder), name, [column])
    for n, value in enumerate(values):
        writer.add(float(n), 1e9 + n, [value])
    writer.close()


def power_source(**settings):
    return source("power_module_w", scope="module", total="power_module_w", settings=settings)


def test_the_total_is_reported_with_its_rule_and_what_it_does_not_see(board, recorded, tmp_path):
    write(tmp_path, "sysfs", "power_module_w", [4.0, float("nan"), 6.0])
    record = recorded(sysfs=power_source(total_rule="a + b", not_seen="the fan"))
    total, unseen = sensors.power(board[1], record)
    assert (total.level, total.message) == ("ok", "module: 5.00 W on average, from sysfs: a + b")
    assert unseen.message == "not included: the fan"


def test_a_total_without_a_reading_gives_a_warning(board, recorded, tmp_path):
    write(tmp_path, "sysfs", "power_module_w", [float("nan")])
    (total,) = sensors.power(board[1], recorded(sysfs=power_source(total_rule="a")))
    assert total.level == "warning"


def test_rails_without_a_total_give_a_warning(board, recorded):
    rails = source("rail_x_w", scope="module", settings={"no_total": "rails are not known"})
    (finding,) = sensors.power(board[1], recorded(sysfs=rails))
    assert finding.level == "warning"
    assert "no total: rails are not known" in finding.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"contradictions": 3, "contradiction": "A is below B"}, "A is below B"),
        ({"errors": {"CV": "Input/output error"}}, "rail CV cannot be read"),
        ({"cannot_be_opened": {"CV": "Permission denied"}}, "rail CV cannot be read"),
        ({"interval_s": 1.0, "service_interval_s": 0.5}, "every 0.5 s, not every 1 s"),
    ],
)
def test_contradictions_of_the_power_gives_a_warning(board, recorded, tmp_path, settings, words):
    write(tmp_path, "sysfs", "power_module_w", [4.0])
    findings = sensors.power(board[1], recorded(sysfs=power_source(**settings)))
    assert words in matching(findings, "warning", "power")[0].message


@pytest.mark.parametrize(
    ("why", "do"),
    [
        ("no jetson-stats for /usr/bin/python3: No module", "pip3 install jetson-stats"),
        ("jtop: JtopException: The jtop.service is not active", "enable --now jtop.service"),
        ("jtop: JtopException: Mismatch version jtop service", "restart jtop.service"),
        ("jtop: JtopException: I can't access jtop.service", "usermod -aG jtop"),
        ("jtop: PermissionError: denied", "usermod -aG jtop"),
        ("jtop: JtopException: Mismatch of Python versions between library", "one Python for both"),
        ("jtop: ValueError: unsupported pickle protocol: 5", "one Python for both"),
        ("no answer from the jtop service within 20 s", "restart jtop.service"),
        ("something else", "fix that"),
    ],
)
def test_a_power_source_that_cannot_be_used_is_reported_with_what_to_do(
    board, recorded, tmp_path, why, do
):
    write(tmp_path, "sysfs", "power_module_w", [4.0])
    findings = sensors.power(board[1], recorded(sysfs=power_source(fallback=why)))
    (warning,) = matching(findings, "warning", "power")
    assert warning.message == why
    assert do in warning.do
    assert "power_source: sysfs" in warning.do


def test_why_the_sensors_files_are_not_read_is_reported(board, recorded):
    why = "sysfs cannot be read: Permission denied"
    warning = next(sensors.power(board[1], recorded(sysfs=power_source(not_sysfs=why))))
    assert warning.level == "warning"
    assert why in warning.message
    assert "read those files" in warning.do


def test_a_host_without_a_sensor_gives_a_warning(checkout, recorded):
    (finding,) = sensors.power(choose(checkout.path, "host"), recorded(host=source("a")))
    assert finding.level == "warning"
    assert "energy stays empty" in finding.message


def test_other_power_sources_of_a_board_are_tried(board, recorded):
    fake, subject = board
    findings = list(sensors.other_sources(subject, recorded(sysfs=power_source())))
    assert [f.message.partition(":")[0] for f in findings] == ["tegrastats would work too"]
    (fake.root / "usr/bin/tegrastats").unlink()
    (finding,) = sensors.other_sources(subject, recorded(sysfs=power_source()))
    assert finding.message.startswith("tegrastats would not work")


def test_a_host_has_no_other_power_sources(checkout, recorded):
    assert list(sensors.other_sources(choose(checkout.path, "host"), recorded())) == []


def test_temperatures_are_reported_without_units_that_are_off(board, checkout):
    fake, subject = board
    zone = fake.root / "sys/class/thermal/thermal_zone0/temp"
    zone.write_text("-256000\n")
    (finding,) = sensors.temperatures(subject)
    assert "CPU-therm" in finding.message
    assert "AO-therm" not in finding.message
