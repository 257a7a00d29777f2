import pytest

from epochwatt.board.device import board_files
from epochwatt.board.device.root_helper import INSTALLED as HELPER
from tests.fakeboard.model import Model, parts_w

NVPMODEL = "usr/sbin/nvpmodel"


def total_mw(board):
    """Return the module's power as somebody reads it who knows the layout."""
    total = 0.0
    for rail in board.files.facts["rails"]:
        if rail["label"] in board.kind.total:
            volt, curr = board.files.number(rail["volt"]), board.files.number(rail["curr"])
            power_mw = volt * curr / 1000.0
            if "power" in rail:
                power_mw = board.files.number(rail["power"]) * rail["unit_uw"] / 1000.0
            total += power_mw
    return total


def test_it_starts_in_its_default_mode_and_its_rails_add_up_to_its_power(board):
    default = next(mode for mode in board.kind.modes if mode.id == board.kind.release.default_mode)
    assert len(board.files.online()) == default.cores
    assert board.run(NVPMODEL, "-q").stdout.split()[-1] == str(default.id)
    model = Model(str(board.root))
    for load in (0.0, 0.5, 1.0):
        power_w = model.step(0.05, load)
        clocks = board.files.set_clocks(load, load)
        online = len(board.files.online()) / len(board.files.cpus())
        wanted_w = sum(parts_w(board.kind.watts, clocks, load, load, online).values())
        losses = 1.12 if len(board.kind.total) == 1 else 1.0
        assert power_w == pytest.approx(losses * wanted_w, abs=0.05)  # a current is whole mA
        assert total_mw(board) / 1e3 == pytest.approx(power_w)


def test_the_root_helper_puts_back_all_that_the_tools_change(board):
    steps = board_files.tables(str(board.root))
    words = [4, *(table[n] if table else 0 for n, table in ((8, steps.cpu_khz), (3, steps.gpu_hz)))]
    before = board.snapshot()
    board.run(HELPER, "custom-mode", *map(str, words), "0")  # with JetPack 6 it needs a reboot
    assert board.run(HELPER, "pin-clocks").returncode == 0
    assert board.run(HELPER, "fan-max").returncode == 0
    after = board.snapshot()
    changed = {name.rpartition("/")[2] for name in after if before.get(name) != after[name]}
    emc = board.files.emc.get("locked", "railgate_enable").rpartition("/")[2]
    assert {"railgate_enable", emc} <= changed
    assert ("disable" in changed) == bool(board.kind.board.idle_states)
    assert changed & {"temp_control", "nvfancontrol"}
    assert board.run(HELPER, "restore").returncode == 0
    assert board.snapshot() == before
