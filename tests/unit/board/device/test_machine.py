"""The machine a measurement sees: bound to a row, watched, and, unless it is a board, never set."""

import json
import platform

import pytest

from epochwatt.board.device import machine
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.errors import BoardError, ConfigError


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


def test_row_of_another_unit_is_refused_with_both_named(settings):
    with pytest.raises(BoardError) as raised:
        Machine({**settings, "unit": "xavier-07"}).check()
    assert raised.value.found == platform.node()
    assert "bound to unit xavier-07" in raised.value.problem


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


@pytest.mark.parametrize("line", ["SwapTotal:", "SwapTotal: many kB", "SwapTotal: ² kB", "\0"])
def test_meminfo_of_another_form_tells_no_swap(settings, proc, line):
    (proc / "meminfo").write_text(f"{line}\nSwapFree: 9 kB\n", "utf-8")
    assert Machine(settings).events() == {}
