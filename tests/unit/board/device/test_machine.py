"""The machine a measurement sees: bound to a row, watched, and, unless it is a board, never set."""

import platform

import pytest

from epochwatt.board.device import machine
from epochwatt.board.device.machine import Machine
from epochwatt.errors import BoardError


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
