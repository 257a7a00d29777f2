"""CPU clocks of a host: steps, set, read back, put back, also after a kill."""

import multiprocessing
import os
import signal

import pytest
from cpufreq_tree import BEFORE, LISTED, clamping, limits, make_cpufreq, set_limits, strict

from epochwatt.board.device import cpu_clocks, notes
from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.machine import Machine
from epochwatt.errors import BoardError


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(CpuClocks, "patience_s", 0.0)


@pytest.fixture
def root(tmp_path):
    """A machine with two CPUs that list four clocks."""
    return make_cpufreq(tmp_path / "root")


def a_host(root):
    """Return the machine of these files, as another job opens it."""
    medium = {"root": root, "mount": "", "block_device": ""}
    return Machine({"backend": "host", "root": root, "kind": "", "unit": "", "storage": medium})


def test_without_a_list_there_are_five_steps_those_between_whole_hundreds(tmp_path):
    root = make_cpufreq(tmp_path, listed=(), lowest=800000, highest=4750000)
    assert CpuClocks(root).steps_mhz() == [800.0, 1800.0, 2800.0, 3800.0, 4750.0]


def test_files_that_the_user_may_not_write_leave_the_clocks_alone(tmp_path, as_stranger):
    make_cpufreq(tmp_path)
    tmp_path.chmod(0o755)
    closed = tmp_path / "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"
    for path in tmp_path.glob("sys/devices/system/cpu/cpu*/cpufreq/scaling_*_freq"):
        path.chmod(0o444 if path == closed else 0o666)

    def look():
        clocks = CpuClocks(".")
        return clocks.steps_mhz(), clocks.why_fixed()

    steps_mhz, why = as_stranger(tmp_path, look)
    assert steps_mhz == []
    assert why.startswith("this user may not write ")
    assert why.endswith("cpu1/cpufreq/scaling_max_freq")


@pytest.mark.parametrize("khz", [LISTED, LISTED[::-1], (2400000, 1200000, 3000000, 1800000)])
def test_no_order_of_clocks_puts_a_minimum_above_a_maximum(root, monkeypatch, khz):
    monkeypatch.setattr(cpu_clocks, "write", strict)
    host = a_host(root)
    for clock in khz:
        assert host.change({"cpu_mhz": clock / 1e3}, "on")["unmet"] == {}
        assert limits(root) == [(clock, clock)] * 2
    host.restore()
    assert limits(root) == [BEFORE, BEFORE]


def test_everything_is_as_before_whatever_was_set_in_between(root):
    set_limits(root, 1, 1800000, 2400000)
    before, host = limits(root), a_host(root)
    assert not host.left_over()
    for mhz in (3000.0, 1200.0):
        host.change({"cpu_mhz": mhz}, "on")
    assert host.left_over()
    host.restore()
    assert limits(root) == before
    assert not host.left_over()
    set_limits(root, 0, 1800000, 1800000)  # somebody's own wish, after us
    host.restore()
    assert limits(root)[0] == (1800000, 1800000)


def killed(what):
    """Run a function in a process that then gets SIGKILL."""

    def run():
        what()
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_after_a_kill_the_next_job_puts_back_what_was_before_the_first_change(root, monkeypatch):
    set_limits(root, 0, 1800000, 3000000)
    before = limits(root)
    killed(lambda: a_host(root).change({"cpu_mhz": 1200.0}, "on"))
    assert limits(root) == [(1200000, 1200000)] * 2

    def die_at_the_third(path, value, n=[0]):  # noqa: B006
        n[0] += 1
        if n[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return strict(path, value)

    with monkeypatch.context() as patch:  # between two writes; the note stays the first's
        patch.setattr(cpu_clocks, "write", die_at_the_third)
        killed(lambda: a_host(root).change({"cpu_mhz": 1800.0}, "on"))
    assert limits(root) == [(1800000, 1800000), (1200000, 1200000)]
    host = a_host(root)
    assert host.left_over()
    host.restore()
    assert limits(root) == before
    assert not host.left_over()


def test_what_cannot_be_put_back_is_an_error_and_waits_for_the_next_start(root, monkeypatch):
    host = a_host(root)
    host.change({"cpu_mhz": 1800.0}, "on")
    with monkeypatch.context() as patch:
        patch.setattr(cpu_clocks, "write", clamping(2200000))
        with pytest.raises(BoardError, match="could not be put back") as caught:
            host.restore()
    assert "scaling_max_freq is 2200000, it was 3000000" in caught.value.found
    assert host.left_over()
    a_host(root).restore()
    assert limits(root) == [BEFORE, BEFORE]


def test_after_a_start_of_the_machine_nothing_is_put_back(root, monkeypatch):
    a_host(root).change({"cpu_mhz": 1800.0}, "on")
    monkeypatch.setattr(notes.host, "boot_id", lambda: "another start")
    assert not a_host(root).left_over()
    a_host(root).restore()
    assert limits(root) == [(1800000, 1800000)] * 2  # of files; the kernel's are new
