"""The machine a measurement sees: bound to a row, watched, and, unless it is a board, never set."""

import json
import os
import platform

import pytest

from epochwatt.device import host, machine, page_cache
from epochwatt.device.jetson import JetsonBoard
from epochwatt.device.machine import Machine, open_machine
from epochwatt.errors import BoardError, ConfigError

MEMINFO = "MemTotal: 7860000 kB\nSwapTotal:       3930000 kB\nSwapFree:        3900000 kB\n"


@pytest.fixture
def settings(tmp_path):
    """What the configuration says of a machine that is bound to nothing; its files are made up."""
    medium = {"root": str(tmp_path), "mount": "", "block_device": ""}
    return {
        **{"backend": "host", "root": str(tmp_path), "kind": "", "unit": "", "storage": medium},
        **{"power_source": "none", "settle": None},
    }


@pytest.fixture
def proc(tmp_path):
    """The folder of the made-up machine's /proc."""
    (tmp_path / "proc").mkdir()
    return tmp_path / "proc"


def test_backend_says_what_kind_of_machine_is_opened(settings):
    assert type(open_machine(settings)) is Machine
    assert open_machine(settings).backend == "host"
    assert type(open_machine({**settings, "backend": "jetson"})) is JetsonBoard
    assert type(open_machine({**settings, "backend": "fake"})) is JetsonBoard


def test_host_is_described_as_ever(settings):
    about = Machine(settings).describe()
    assert about["machine"] == host.describe()["machine"]
    assert about["software"] == host.describe()["software"]


def test_host_as_it_is_is_not_touched_and_its_answer_can_be_written(settings):
    applied = Machine(settings).apply({}, "on")
    assert json.loads(json.dumps(applied, allow_nan=False)) == {
        **{"requested": {}, "resolved": {}, "read_back": {}, "verified": True, "unverified": []},
        **{"dvfs": "on", "fan": "as it is"},
    }


@pytest.mark.parametrize(("mode", "dvfs"), [({"cores": 1}, "on"), ({}, "off")])
def test_host_refuses_what_only_a_board_can_be_set_to(settings, mode, dvfs):
    with pytest.raises(ConfigError, match="no Jetson board") as caught:
        Machine(settings).apply(mode, dvfs)
    assert caught.value.allowed == 'an empty power mode with dvfs: "on"'


def test_host_has_nothing_to_put_back(settings):
    opened = Machine(settings)
    assert not opened.left_over()
    opened.restore()
    opened.restore()


def test_row_that_is_bound_to_this_host_passes(settings):
    Machine(settings).check()
    Machine({**settings, "unit": platform.node()}).check()


def test_row_of_another_unit_is_refused_with_both_named(settings):
    with pytest.raises(BoardError) as raised:
        Machine({**settings, "unit": "xavier-07"}).check()
    assert raised.value.found == platform.node()
    assert "bound to unit xavier-07" in raised.value.problem


def test_data_set_on_another_medium_is_refused(settings):
    medium = {**settings["storage"], "block_device": "no-such-disk"}
    with pytest.raises(BoardError, match="no-such-disk"):
        Machine({**settings, "storage": medium}).check()


def test_swap_in_use_is_told_and_left_out_where_the_machine_does_not(settings, proc):
    assert Machine(settings).events() == {}
    (proc / "meminfo").write_text(MEMINFO)
    assert Machine(settings).events() == {"swap_kib": 30000}


def test_cpu_time_between_two_looks_is_the_utilisation(settings, proc, monkeypatch):
    #                                user nice system idle iowait irq softirq steal guest
    (proc / "stat").write_text("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3 4\n")
    asked = []

    def sleep(over_s):
        asked.append(over_s)
        (proc / "stat").write_text("cpu  130 0 110 740 120 0 0 0 90 0\ncpu0 1 2 3 4\n")

    monkeypatch.setattr(machine.time, "sleep", sleep)
    assert Machine(settings).busy_pct(3.0) == pytest.approx(40.0)
    assert asked == [3.0]


def test_utilisation_that_the_machine_does_not_tell_is_none(settings, proc):
    assert Machine(settings).busy_pct(0.0) is None
    (proc / "stat").write_text("cpu 1 2\n")
    assert Machine(settings).busy_pct(0.0) is None
    (proc / "stat").write_text("cpu  100 0 100 700 100 0 0 0 50 0\n")
    assert Machine(settings).busy_pct(0.0) is None  # nothing went by


def test_this_machine_tells_its_utilisation(settings):
    assert 0.0 <= Machine({**settings, "root": "/"}).busy_pct(0.1) <= 100.0


def test_page_cache_is_dropped_as_ever(settings, monkeypatch):
    dropped = []
    monkeypatch.setattr(page_cache, "drop", lambda paths: dropped.append(paths) or "advised")
    assert Machine(settings).drop_page_cache(["a", "b"]) == "advised"
    assert dropped == [["a", "b"]]


@pytest.mark.parametrize("line", ["SwapTotal:", "SwapTotal: many kB", "SwapTotal: ² kB", "\0"])
def test_meminfo_of_another_form_tells_no_swap(settings, proc, line):
    (proc / "meminfo").write_text(f"{line}\nSwapFree: 9 kB\n", "utf-8")
    assert Machine(settings).events() == {}


@pytest.mark.parametrize("line", ["cpu a b c d e", "cpu 1 2 3", "", "cpu 1 2 3 4 ² 6 7 8", "cpu\0"])
def test_cpu_times_of_another_form_are_no_utilisation(settings, proc, line):
    (proc / "stat").write_text(line, "utf-8")
    assert Machine(settings).busy_pct(0.0) is None


def test_modes_of_a_host_are_threads_and_nothing_is_set(settings):
    host_machine, n_cpus = Machine(settings), os.cpu_count()
    host_machine.check_modes([{"cores": n} for n in range(1, n_cpus + 1)], "on")
    assert host_machine.change({"cores": 1}, "on")["unmet"] == {}
    for odd in ({"cores": n_cpus + 1}, {"cores": 0}, {"cores": 1, "cpu_mhz": 1000.0}):
        with pytest.raises(ConfigError):
            host_machine.check_modes([{"cores": 1}, odd], "on")
    with pytest.raises(ConfigError):
        host_machine.check_modes([{"cores": 1}], "off")
