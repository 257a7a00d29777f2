"""The self-test of the sensors, on what a sampler finding."""

import pytest
from fake_board import make_board
from fake_device import DEVICE

from epochwatt.board.records.samples import SampleWriter
from epochwatt.doctor import sensors
from epochwatt.doctor.subject import Recording, choose

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


REASONS = [
    ("no jetson-stats for /usr/bin/python3: No module", "pip3 install jetson-stats"),
    ("jtop: JtopException: The jtop.service is not active", "enable --now jtop.service"),
    ("jtop: JtopException: Mismatch version jtop service", "restart jtop.service"),
    ("jtop: JtopException: I can't access jtop.service", "usermod -aG jtop"),
    ("jtop: PermissionError: denied", "usermod -aG jtop"),
    ("jtop: JtopException: Mismatch of Python versions between library", "one Python for both"),
    ("jtop: ValueError: unsupported pickle protocol: 5", "one Python for both"),
    ("no answer from the jtop service within 20 s", "restart jtop.service"),
    ("something else", "fix that"),
]


def test_a_power_source_that_cannot_be_used_is_reported_with_what_to_do(board, recorded, tmp_path):
    write(tmp_path, "sysfs", "power_module_w", [4.0])
    for why, do in REASONS:
        findings = sensors.power(board[1], recorded(sysfs=power_source(fallback=why)))
        (warning,) = matching(findings, "warning", "power")
        assert warning.message == why
        assert do in warning.do
        assert "power_source: sysfs" in warning.do
