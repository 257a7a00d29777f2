"""The self-test: what it finds on a machine, how it is shown, what ends it."""

import os
import re
import subprocess

import pytest
from fake_device import LIBRARIES

from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.storage import Medium
from epochwatt.doctor import examine
from epochwatt.doctor.subject import choose


@pytest.fixture
def subject(checkout):
    """The device `host` of a small checkout."""
    return choose(checkout.path, None)


def medium(device="", mount="/", source="overlay"):
    return Medium(mount, source, device, "unknown", None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("nvme0n1p1", "nvme0n1p2", True),
        ("nvme0n1p1", "nvme1n1p1", False),
        ("mmcblk0p1", "mmcblk1p1", False),
        ("sda1", "sda12", True),
        ("sda", "sdaa", False),
    ],
)
def test_partitions_of_one_disk_are_one_disk(one, other, same):
    assert (examine.disk_of(medium(one)) == examine.disk_of(medium(other))) is same


@pytest.fixture
def disks(monkeypatch):
    """Say by the last word of its path which disk a file lies on."""

    def lie(**device_of):
        def medium_of(path, root="/"):
            return medium(device_of[os.path.basename(path)])

        monkeypatch.setattr(examine.storage, "medium_of", medium_of)

    return lie


def test_results_on_a_medium_under_test_give_a_warning(subject, disks):
    disks(measured="mmcblk0p1", results="nvme0n1p2", sets="mmcblk0p3", data="sda1")
    findings = list(examine.results_place(subject))
    assert [(f.level, f.message.split()[0]) for f in findings] == [
        ("ok", "measured/"),
        ("warning", "measured/"),
        ("ok", "results/"),
    ]
    assert findings[1].message.endswith("storage that is measured: flash")


@pytest.fixture
def quick(monkeypatch):
    """No second of load, no import of torch."""
    monkeypatch.setattr(examine, "libraries", lambda subject: LIBRARIES)
    monkeypatch.setattr("epochwatt.board.device.machine.Machine.busy_pct", lambda self, over_s: 1.0)


def test_a_host_is_looked_at_for_real_and_no_setting_is_changed(checkout, quick, monkeypatch):
    """Programs are started only for the interpreter's answers."""
    started, run = [], subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda words, **rest: started.append(words) or run(words, **rest)
    )
    monkeypatch.setattr("epochwatt.board.device.page_cache.drop", None)
    lines, status = examine.doctor_lines(None, 0.3, checkout.path)
    text = "\n".join(lines)
    assert status == 0
    assert lines[0].endswith("device host, a test's machine")
    # on a busy machine it is a warning
    assert re.search(r"^\w+ +sampler +\d+\.\d\d s of CPU a minute", text, re.M)
    assert re.search(r"^\w+ +sampler +host: a row every 1000 ms", text, re.M)
    assert re.search(r"^ok +sensors +host: .*cpu_util_pct", text, re.M)
    assert list((checkout.path / "measured").iterdir()) == []
    program = ["-m", "epochwatt.board.training.trial", "sampler"]
    assert [words[1:4] for words in started] == [program]


def test_a_check_that_fails_is_a_problem_and_ends_no_other(checkout, quick, monkeypatch):
    """A missing library, and a disk that does not answer."""

    def broken(subject):
        raise OSError("no such disk")

    installed = {**LIBRARIES, "torch": None, "errors": {"torch": "ModuleNotFoundError: no torch"}}
    monkeypatch.setattr(examine, "libraries", lambda subject: installed)
    monkeypatch.setattr(examine, "media", broken)
    lines, status = examine.doctor_lines(None, 0.1, checkout.path)
    text = " ".join(" ".join(lines).split())
    assert status == 1
    assert "problem storage no such disk" in text
    assert "without torch (ModuleNotFoundError: no torch)" in text
    assert "python:" in text
    assert any(" sampler " in line for line in lines)


def test_beside_a_running_measurement_it_examines_what_does_not_disturb(checkout, monkeypatch):
    monkeypatch.setattr("epochwatt.board.device.machine.Machine.busy_pct", lambda self, over_s: 1.0)
    started = []
    monkeypatch.setattr(subprocess, "run", lambda words, **rest: started.append(words))
    with machine_lock().acquire({"run": "another"}):
        lines, status = examine.doctor_lines(None, 0.1, checkout.path)
    text = "\n".join(lines)
    assert status == 0
    assert started == []
    assert re.search(r"^info +interpreter +left out: it would disturb", text, re.M)
    assert re.search(r"^info +sampler +left out: it would disturb", text, re.M)
    assert "run another" in text
    assert re.search(r"^ok +storage ", text, re.M)
    assert list((checkout.path / "measured").iterdir()) == []
