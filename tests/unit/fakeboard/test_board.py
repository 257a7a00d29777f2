import os
import time

import pytest

from epochwatt.board.device import board_files
from epochwatt.board.device.root_helper import INSTALLED as HELPER
from tests.fakeboard.model import Model, parts_w

NVPMODEL = "usr/sbin/nvpmodel"


def until(is_so, limit_s=20.0):
    """Wait for the living process to show something."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.02)


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


def test_a_reboot_drops_what_was_pinned_and_keeps_the_mode(agx):
    agx.run(NVPMODEL, "-m", "3")
    before, boot_id = agx.snapshot(), agx.files.text("proc/sys/kernel/random/boot_id")
    agx.run("usr/bin/jetson_clocks", "--fan")
    assert agx.snapshot() != before
    agx.reboot()
    assert agx.snapshot() == before
    assert agx.files.text("proc/sys/kernel/random/boot_id") != boot_id


def test_the_living_board_s_energy_is_what_its_rails_show(agx):
    with agx.live():
        agx.set_fault("busy", 0.5)
        begin_s, begin_mw = time.monotonic(), total_mw(agx)
        until(lambda: total_mw(agx) > begin_mw)
        until(lambda: agx.energy_j(begin_s, time.monotonic()) > 0)
        agx.set_fault("busy", None)
    power = (agx.root / "run/epochwatt-stand-in/power.csv").read_text()
    last_s, last_w = map(float, power.split()[-1].split(","))
    assert last_w == pytest.approx(total_mw(agx) / 1e3, abs=1e-6)
    assert agx.energy_j(last_s, last_s + 2.0) == pytest.approx(2.0 * last_w)


def test_a_rail_that_stops_has_nothing_to_read_and_comes_back(agx):
    rail = next(rail for rail in agx.files.facts["rails"] if rail["label"] == "GPU")
    fd = os.open(agx.root / rail["power"], os.O_RDONLY)  # opened before, as the sampler does
    with agx.live():
        agx.set_fault("rail_stops", "GPU")
        until(lambda: not os.pread(fd, 64, 0))
        assert agx.files.text(rail["curr"]) == ""
        assert agx.files.number("sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/in_power1_input")
        agx.set_fault("rail_stops", None)
        until(lambda: os.pread(fd, 64, 0))
        assert int(os.pread(fd, 64, 0)) > 0
    os.close(fd)


def test_throttling_lowers_the_clocks_and_counts(orin):
    clock = orin.files.clusters()[0][0] + "scaling_cur_freq"
    orin.run("usr/bin/jetson_clocks")
    assert orin.files.number(clock) == 2_201_600
    coolers = [name + "cur_state" for name in orin.files.facts["throttlers"]]
    with orin.live():
        orin.set_fault("throttling")
        until(lambda: orin.files.number(orin.files.facts["oc"]) > 0)
        assert orin.files.number(clock) == 1_267_200
        assert [orin.files.number(name) for name in coolers] == [3, 3]
        orin.set_fault("throttling", None)
        until(lambda: orin.files.number(clock) == 2_201_600)
        assert [orin.files.number(name) for name in coolers] == [0, 0]
        assert orin.files.number(orin.files.facts["oc"]) > 0
