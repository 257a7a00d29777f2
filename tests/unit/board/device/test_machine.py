"""The machine a measurement sees: bound to a row, watched, and, unless it is a board, never set."""

import platform

import pytest

from epochwatt.board.device import host, machine
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


def test_row_of_another_unit_is_refused_with_both_named(settings):
    with pytest.raises(BoardError) as raised:
        Machine({**settings, "unit": "xavier-07"}).check()
    assert raised.value.found == platform.node()
    assert "bound to unit xavier-07" in raised.value.problem


def test_cpu_time_between_two_looks_is_the_utilisation(settings, tmp_path, monkeypatch):
    proc = tmp_path / "proc"
    proc.mkdir()
    #                                user nice system idle iowait irq softirq steal guest
    (proc / "stat").write_text("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3 4\n")
    asked = []

    def sleep(over_s):
        asked.append(over_s)
        (proc / "stat").write_text("cpu  130 0 110 740 120 0 0 0 90 0\ncpu0 1 2 3 4\n")

    monkeypatch.setattr(machine.time, "sleep", sleep)
    assert Machine(settings).busy_pct(3.0) == pytest.approx(40.0)
    assert asked == [3.0]


def test_variables_that_change_speed_are_named_and_no_others(monkeypatch):
    faster = {"CUDA_MODULE_LOADING": "LAZY", "LD_PRELOAD": "tcmalloc.so", "MALLOC_ARENA_MAX": "1"}
    others = {"SECRET": "x", "CUDA_HOME": "/usr/local/cuda", "PYTORCH_VERSION": "2.1"}
    monkeypatch.setattr(host.os, "environ", {**faster, **others})
    assert host.describe()["environment"] == faster


@pytest.mark.parametrize(
    ("maker", "part", "model"),
    [
        ("0x41", "0xd07", "Cortex-A57"),  # Nano
        ("0x4e", "0x004", "NVIDIA Carmel"),  # Xavier
        ("0x41", "0xd42", "Cortex-A78AE"),  # Orin
        ("0x41", "0xfff", "ARM core, maker 0x41, part 0xfff"),
    ],
)
def test_a_cpu_of_which_the_kernel_prints_only_numbers_is_named(monkeypatch, maker, part, model):
    rows = f"processor\t: 0\nCPU implementer\t: {maker}\nCPU part\t: {part}\n"
    told = {"/proc/cpuinfo": 2 * rows}
    monkeypatch.setattr(host, "_read", lambda path: told.get(path, ""))
    assert host.describe()["machine"]["cpu_model"] == model
